"""Simple expectations become tests of a repository; what says more is left to a template of one's own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fleet.config.propose import ServiceSection
from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.fix.gate.expectations import stated
from fleet.fix.gate.regression import regression_test, shown_by
from fleet.fix.model import CommandEnd, RegressionTest
from tests.fix import sample
from tests.fix.gate_world import task_of
from tests.fix.test_tree_jail import SERVER

STATED: dict[str, list[list[tuple[str, str, object]]]] = {
    "result.status == 404": [[("status", "==", 404)]],
    "result.status != 500 && result.text.contains('hello')": [
        [("status", "!=", 500)],
        [("text", "has", "hello")],
    ],
    '!("secret" in result.text)': [[("text", "lacks", "secret")]],
    "result.status in [200, 404] || result.ok": [[("status", "in", [200, 404]), ("ok", "==", True)]],
    "(result.status < 500 || !result.ok) && !(result.status == 403)": [
        [("status", "<", 500), ("ok", "!=", True)],
        [("status", "!=", 403)],
    ],
    'result.content_type == "text/plain"': [[("content_type", "==", "text/plain")]],
    'result.allow_origin != "http://a && b"': [[("allow_origin", "!=", "http://a && b")]],
}
MORE = """
true
result.turns < 11
results[0].value == results[1].value
result.status == 404 ||
result.status != 200 || result.p95_ms <= history.site_p95_ms * 3.0
result.text == 3
result.text < 'b'
result.status == 1 && result.ok || result.status == 2
!(result.ok && result.status == 3)
result.status
result.tool_calls.exists(t, t == "x")
size(result.text) > 3
result.status in []
result.ok == 1
"""


@pytest.mark.parametrize("text", STATED)
def test_what_is_simple_is_stated(text: str) -> None:
    assert stated(text) == tuple(tuple(group) for group in STATED[text])


@pytest.mark.parametrize("text", ["", *MORE.strip().splitlines()])
def test_what_says_more_is_not(text: str) -> None:
    assert stated(text) is None


ANSWERS = {  # the server greets each path with 200, and /none with 404
    "result.status == 404": "/none",
    "result.status in [404, 410]": "/none",
    "result.text.contains('none')": "/none",
    "!result.ok": "/none",
    "result.status == 404 || result.text.contains('goodbye')": "/none",
    "result.content_type == 'text/plain' && result.status != 200": "/none",
}


OWN_FIXTURE = """
import socket, subprocess, sys, time
import pytest

@pytest.fixture
def live_server():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "server.py", str(port)])
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    server.kill()
    server.wait()
"""


def test_their_tests_fail_for_the_items_reason_and_pass_when_it_holds(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text(OWN_FIXTURE)
    tests: dict[str, tuple[RegressionTest, str]] = {}
    cases = [*((text, "") for text in ANSWERS), ("!result.ok", "live_server")]
    for (text, fixture), path in product(cases, ("/some", "")):
        path = path or ANSWERS[text]
        one = task_of(sample.Sample(tmp_path, (), {}), sample.DEFECTS[2], title=f'GET {path}: it\'s "not" so')
        service = ServiceSection(command=("{python}", "server.py", "{port}"))
        regression = one.repository.regression.model_copy(update={"fixture": fixture})
        repository = one.repository.model_copy(update={"service": service, "regression": regression})
        given = replace(one, repository=repository, calls=(ReproCall("qa_fetch", {"url": "{site}" + path}),))
        made = regression_test(given, sample.PROFILE, "", [{}], expected=text)
        assert f"def test_get_{path[1:]}_it_s_not_so({fixture or 'service'})" in made.text
        name = f"test_{len(tests)}"
        (tmp_path / "tests" / f"{name}.py").write_text(made.text)
        tests[f"tests.{name}"] = made, path
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml=ended.xml", "-ojunit_logging=system-out"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert shown_by(made, CommandEnd(done.returncode, "exited", done.stdout, done.stderr, 0.1)), done.stdout
    cases_ended = ElementTree.parse(tmp_path / "ended.xml").iter("testcase")
    ended = {one.attrib["classname"]: one for one in cases_ended}
    assert ended.keys() == tests.keys()
    for name, (made, path) in tests.items():
        shows = path == "/some"
        assert (ended[name].find("failure") is not None) == shows
        output = "".join(one.text or "" for one in ended[name])
        line = shown_by(made, CommandEnd(1, "exited", output.encode(), b"", 0.1))
        assert line.startswith(f"{made.marker} status 200, expected ") == shows, output


def test_an_expectation_that_says_more_needs_a_template() -> None:
    one = task_of(sample.Sample(Path("/nowhere"), (), {}), sample.DEFECTS[2])
    with pytest.raises(FixError, match="no shipped template tests for what a probe expects"):
        regression_test(one, sample.PROFILE, "", [{}, {}], expected="result.turns < 11")
