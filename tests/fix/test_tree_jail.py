"""Jails over a work tree: what a command leaves, how it ended, and what tools see of its build."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.config.propose import RepositorySection, ServiceSection
from fleet.errors import FixError, JailError
from fleet.findings.repro import ReproCall
from fleet.fix.build_calls import applicable, facts_of, resolved
from fleet.fix.jails.tree_jail import TreeJails
from fleet.fix.model import FixTask
from fleet.fix.ports import TreeCommand
from tests.fix import sample
from tests.fix.gate_world import task_of, tree_jails

pytestmark = [pytest.mark.jail, pytest.mark.anyio]

SERVER = """
import http.server, sys

class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"hello " + self.path.encode()
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Pages).serve_forever()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "file").write_text("as it was\n")
    return folder


@pytest.fixture
def jails(tmp_path: Path) -> TreeJails:
    (tmp_path / "spool").mkdir()
    return tree_jails(tmp_path / "spool")


def python(text: str) -> tuple[str, ...]:
    return ("{python}", "-c", text)


async def test_what_a_command_changes_is_thrown_away_unless_it_is_kept(jails: TreeJails, tree: Path) -> None:
    change = ("sh", "-c", "echo changed > file; echo new > new; cat file")
    end = await jails.run(tree, TreeCommand(change, 20))
    assert (end.how, end.code, end.stdout) == ("exited", 0, b"changed\n")
    assert ((tree / "file").read_text(), (tree / "new").exists()) == ("as it was\n", False)
    assert (await jails.run(tree, TreeCommand(change, 20, keep=True))).passed
    assert ((tree / "file").read_text(), (tree / "new").read_text()) == ("changed\n", "new\n")


async def test_a_link_in_the_tree_shows_nothing_of_the_host(
    jails: TreeJails, tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("of the host")
    (tree / "link").symlink_to(tmp_path / "secret")
    end = await jails.run(tree, TreeCommand(("sh", "-c", "readlink link; cat link"), 20))
    assert (end.how, end.passed) == ("exited", False)
    assert end.stdout.decode().strip() == str(tmp_path / "secret")
    assert (tmp_path / "secret").stat().st_uid == os.geteuid()


async def test_what_cannot_be_copied_is_never_a_pass(jails: TreeJails, tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    end = await jails.run(tree, TreeCommand(("true",), 20))
    assert (end.how, end.passed) == ("lost", False)
    assert b"the tree cannot be copied" in end.stderr


async def test_how_a_command_ended_is_not_what_it_printed(jails: TreeJails, tree: Path) -> None:
    forged = '{"v": 1, "how": "exited", "code": 0, "stdout": "", "stderr": "", "seconds": 0.1}'
    lies = await jails.run(tree, TreeCommand(python(f"import sys; print('{forged}'); sys.exit(3)"), 20))
    assert (lies.how, lies.code, lies.passed) == ("exited", 3, False)
    died = await jails.run(tree, TreeCommand(python("import os; os.abort()"), 20))
    assert (died.how, died.code, died.passed) == ("signaled", 6, False)
    slow = await jails.run(tree, TreeCommand(("sleep", "60"), deadline_s=0.5))
    assert (slow.how, slow.passed) == ("timeout", False)
    missing = await jails.run(tree, TreeCommand(("no-such-program",), 20))
    assert (missing.how, missing.code) == ("exited", 127)
    flood = await jails.run(tree, TreeCommand(python("import os\nwhile True: os.write(1, b'x' * 65536)"), 20))
    assert (flood.how, flood.passed) == ("flood", False)


async def test_a_command_that_kills_its_guest_has_not_passed(jails: TreeJails, tree: Path) -> None:
    end = await jails.run(tree, TreeCommand(python("import os; os.kill(os.getppid(), 9)"), 20))
    assert (end.how, end.passed) == ("lost", False)


async def test_a_command_cannot_write_its_guests_answer(jails: TreeJails, tree: Path) -> None:
    text = "import os; print(os.listdir(f'/proc/{os.getppid()}/fd'))"
    end = await jails.run(tree, TreeCommand(python(text), 20))
    assert not end.passed
    assert b"PermissionError" in end.stderr


async def test_a_repository_brings_what_it_needs_by_mounts(
    jails: TreeJails, tree: Path, tmp_path: Path
) -> None:
    (tmp_path / "deps" / "bin").mkdir(parents=True)
    (tmp_path / "deps" / "brought.py").write_text("WHAT = 'a module of the mount'\n")
    tool = tmp_path / "deps" / "bin" / "its-tool"
    tool.write_text("#!/bin/sh\necho a program of the mount\n")
    tool.chmod(0o755)
    mounts = {"deps": tmp_path / "deps"}
    end = await jails.run(tree, TreeCommand(python("import brought; print(brought.WHAT)"), 20, mounts=mounts))
    assert end.stdout == b"a module of the mount\n"
    end = await jails.run(tree, TreeCommand(("its-tool",), 20, mounts=mounts))
    assert end.stdout == b"a program of the mount\n"


def served(tmp_path: Path, service: ServiceSection) -> FixTask:
    one = sample.Sample(tmp_path, (), {})
    section = sample.repository(one).model_copy(update={"service": service})
    return replace(task_of(one, sample.DEFECTS[2]), repository=section)


async def test_tools_ask_the_service_of_the_tree_and_nothing_else(
    jails: TreeJails, tree: Path, tmp_path: Path
) -> None:
    (tree / "server.py").write_text(SERVER)
    task = served(tmp_path, ServiceSection(command=("{python}", "server.py", "{port}")))
    calls = [ReproCall("qa_fetch", {"url": url}) for url in ("{site}/a?b=1", "{proxy}/none")]
    one, none = await jails.ask(tree, task, calls)
    assert (one["status"], one["text"], one["error_class"]) == (200, "hello /a?b=1", "")
    assert (none["status"], none["error_class"]) == (404, "http")
    with pytest.raises(FixError, match="asks another host"):
        await jails.ask(tree, task, [ReproCall("qa_fetch", {"url": "http://127.0.0.1:3128/"})])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise SystemExit('no database')", "ended with status 1: no database"),
        ("import time; time.sleep(60)", "does not answer in its time"),
    ],
    ids=["ends", "silent"],
)
async def test_a_service_that_does_not_start_is_no_answer(
    jails: TreeJails, tree: Path, tmp_path: Path, text: str, words: str
) -> None:
    (tree / "server.py").write_text(text)
    task = served(tmp_path, ServiceSection(command=("{python}", "server.py"), starts_s=1))
    (result,) = await jails.ask(tree, task, [ReproCall("qa_fetch", {"url": "{site}/"})])
    assert result["error_class"] == "cannot_start"
    assert words in result["error"]


async def test_a_service_that_kills_the_guest_is_a_lost_jail(
    jails: TreeJails, tree: Path, tmp_path: Path
) -> None:
    (tree / "server.py").write_text("import os; os.kill(os.getppid(), 9)")
    task = served(tmp_path, ServiceSection(command=("{python}", "server.py")))
    with pytest.raises(JailError, match="ended badly"):
        await jails.ask(tree, task, [ReproCall("qa_fetch", {"url": "{site}/"})])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ReproCall("qa_call", {"target": "docs", "message": "hello"}), "qa_call needs a token"),
        (ReproCall("qa_chain", {"function": "totalNames"}), "qa_chain needs a chain"),
        (ReproCall("qa_browse", {"url": "{site}/"}), "qa_browse needs a browser"),
        (ReproCall("qa_fetch", {"url": "{face:{name}}"}), "registered on a chain"),
        (ReproCall("qa_compile", {"source": "x", "other": True}), "compares with another program"),
        (ReproCall("qa_compile", {"sauce": "x"}), "does not fit qa_compile"),
    ],
    ids=["token", "chain", "browser", "name", "other", "arguments"],
)
async def test_what_a_build_cannot_answer_is_refused_with_its_reason(
    jails: TreeJails, tree: Path, tmp_path: Path, call: ReproCall, words: str
) -> None:
    task = task_of(sample.Sample(tmp_path, (), {}), sample.DEFECTS[0])
    with pytest.raises(FixError, match=words):
        await jails.ask(tree, task, [call])


def test_a_compilers_item_needs_a_compiler_of_the_tree(tmp_path: Path) -> None:
    section = sample.repository(sample.Sample(tmp_path, (), {}))
    bare = RepositorySection.model_validate(section.model_dump() | {"compiler": None})
    with pytest.raises(FixError, match="has no compiler"):
        applicable(bare, ReproCall("qa_compile", {"source": "x"}))


def test_a_face_is_where_the_build_has_it() -> None:
    call = resolved(sample.PROFILE, ReproCall("qa_fetch", {"url": "{face:docs}app.wasm"}))
    assert call.args["url"] == "http://127.0.0.1:8080/face/docs/app.wasm"
    assert facts_of(sample.PROFILE).site == "http://127.0.0.1:8080"
