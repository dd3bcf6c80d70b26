"""Regression tests as text: values cannot become code, and only the defect itself prints the marker."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from fleet.config.propose import RegressionSection
from fleet.errors import FixError
from fleet.findings.repro import ReproCall
from fleet.fix.gate.regression import regression_test, shown_by
from fleet.fix.gate.variants import make_variants
from fleet.fix.model import CommandEnd, FixTask, RegressionTest
from tests.fix import sample
from tests.fix.gate_world import task_of

NAME = "0123456789ab"
RESULT = {"text": "cannot open app.wasm: No such file or directory (os error 2)", "status": 500}


def task(defect: int = 0, title: str = "", path: str = "", template: str = "") -> FixTask:
    one = task_of(sample.Sample(Path("/nowhere"), (), {}), sample.DEFECTS[defect], name=NAME, title=title)
    old = one.repository.regression
    section = RegressionSection(path=path or old.path, template=template or old.template, command=old.command)
    return replace(one, repository=one.repository.model_copy(update={"regression": section}))


@pytest.mark.parametrize(("defect", "oracle"), [(0, "compiler-broken"), (2, "script-injection")])
def test_a_value_is_a_literal_whatever_it_says(defect: int, oracle: str) -> None:
    title = '"""\nimport os; os.system(\'x\') #{{ 7 * 7 }} {% raw %} \\'
    made = regression_test(task(defect, title), sample.PROFILE, oracle, [RESULT, RESULT])
    module = ast.parse(made.text)
    assert "7 * 7" in str(ast.get_docstring(module))
    imported = {name.name for node in ast.walk(module) if isinstance(node, ast.Import) for name in node.names}
    plain = ast.parse(regression_test(task(defect), sample.PROFILE, oracle, [RESULT, RESULT]).text)
    assert imported == {
        name.name for node in ast.walk(plain) if isinstance(node, ast.Import) for name in node.names
    }
    assert made.marker not in made.text


@pytest.mark.parametrize(
    ("oracle", "only"),
    [
        ("trace", 'f"{ROOT}/"'),
        ("server-error", "status >= 500"),
        ("documented-route", "status >= 400"),
        ("malformed-json", "json.loads"),
        ("script-injection", "the page holds it"),
    ],
)
def test_a_service_is_asked_for_one_thing_alone(oracle: str, only: str) -> None:
    """Not for what other items would show; and a leak is one with a path of the repository in any words."""
    text = regression_test(task(2), sample.PROFILE, oracle, [RESULT, RESULT]).text
    ast.parse(text)
    assert only in text
    others = {"json.loads", "status >= 500", "it is allowed", "it redirects", "expected", 'f"{ROOT}/"'}
    assert not [one for one in others - {only} if one in text]


@pytest.mark.parametrize(
    ("defect", "oracle", "most"),
    [
        (0, "compiler-broken", 24),
        (1, "compiler-broken", 24),
        (0, "compiler-internal-error", 27),
        (0, "compiler-endless", 26),
        (3, "server-error", 23),
        (2, "trace", 26),
        (2, "malformed-json", 28),
    ],
)
def test_a_test_is_short_and_uses_the_fixture_of_the_repository(defect: int, oracle: str, most: int) -> None:
    """Blank lines included: at most 20 with code."""
    one = task(defect)
    own = one.repository.regression.model_copy(update={"fixture": "live_server"})
    one = replace(one, repository=one.repository.model_copy(update={"regression": own}))
    text = regression_test(one, sample.PROFILE, oracle, [RESULT, RESULT]).text
    ast.parse(text)
    assert len(text.splitlines()) <= most
    assert len([line for line in text.splitlines() if line]) <= 20
    if defect > 1:
        assert "(live_server):" in text
        assert not {"import subprocess", "import socket"} & set(text.splitlines())


def test_only_its_marker_on_a_failed_run_counts() -> None:
    test = RegressionTest("tests/x.py", "", f"QA-FLEET {NAME} SHOWN:")
    said = f"before\nQA-FLEET {NAME} SHOWN: status 101\nafter".encode()

    def shown(code: int = 1, how: str = "exited", output: bytes = said) -> str:
        return shown_by(test, CommandEnd(code, how, output, b"", 0.1))  # type: ignore[arg-type]

    assert shown() == f"QA-FLEET {NAME} SHOWN: status 101"
    assert shown(code=0) == ""
    assert shown(how="timeout") == ""
    assert shown(how="lost") == ""
    assert shown(output=b"ImportError: no module") == ""
    assert shown(output=b"QA-FLEET ffffffffffff SHOWN: another item") == ""
    assert shown(output=f"E   print('QA-FLEET {NAME} SHOWN: in a source')".encode()) == ""


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.jinja"
    own.write_text("ITEM = {{ item }}\nCALLS = {{ calls }}\nprint('QA-FLEET ' + ITEM + ' SHOWN: x')\n")
    made = regression_test(task(template=str(own)), sample.PROFILE, "compiler-broken", [])
    assert made.text.startswith(f"ITEM = '{NAME}'\nCALLS = [{{'tool': 'qa_compile'")
    assert made.path == f"tests/test_qa_{NAME}.py"
    own.write_text("# QA-FLEET {% raw %}" + NAME + "{% endraw %} SHOWN:\n")
    with pytest.raises(FixError, match="writes its marker in full"):
        regression_test(task(template=str(own)), sample.PROFILE, "compiler-broken", [])
    own.write_text("{{ item.__class__.__mro__ }}\n")
    with pytest.raises(FixError, match=r"unsafe|has no attribute"):
        regression_test(task(template=str(own)), sample.PROFILE, "compiler-broken", [])


def test_what_no_template_can_say_is_refused() -> None:
    with pytest.raises(FixError, match="no shipped template tests for compiler-metamorphic"):
        regression_test(task(), sample.PROFILE, "compiler-metamorphic", [])
    with pytest.raises(FixError, match="no shipped template tests for what a probe expects"):
        regression_test(task(), sample.PROFILE, "", [])
    with pytest.raises(FixError, match="outside of the tree"):
        regression_test(task(path="tests/../../x.py"), sample.PROFILE, "compiler-broken", [])


def test_neighbours_are_the_same_for_one_run_and_others_for_the_next() -> None:
    for defect in range(len(sample.DEFECTS)):
        one = task(defect)
        first, again = make_variants(one, sample.PROFILE), make_variants(one, sample.PROFILE)
        other = make_variants(replace(one, run="another1"), sample.PROFILE)
        assert first == again
        assert first.neighbours != other.neighbours
        assert len(first.neighbours) >= 5
        assert all(each.calls != one.calls for each in first.neighbours)
        assert sum(each.keeps for each in first.neighbours) >= 1
        assert first.controls


def test_a_neighbour_of_a_page_differs_in_every_call_alike() -> None:
    found = make_variants(task(2), sample.PROFILE).neighbours
    renamed = next(one for one in found if one.keeps and "qacanary" not in str(one.calls))
    assert [call.args["canary"] for call in renamed.calls] == [renamed.calls[0].args["canary"]] * 2
    assert isinstance(renamed.calls[0], ReproCall)


@pytest.mark.parametrize("template", ["pytest-rust", "templates/own.jinja", ""])
def test_a_template_is_shipped_or_an_absolute_path(template: str) -> None:
    with pytest.raises(ValidationError, match="pytest-compiler or pytest-service, or the absolute path"):
        RegressionSection(path="tests/test_{item}.py", template=template, command=("true",))
