"""The guest as a process: one line in, one line out, and what its exit status says."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.guest import EXIT_BAD_LINE, EXIT_BROKEN, answer
from sandbox.spec import Context, Cost, Effect, ToolSpec
from sandbox.tools import NAMES, TOOLS
from sandbox.tools.base import ToolAnswer
from tests.sandbox.doubles import bench, run_guest

anyio = pytest.mark.anyio


@dataclass(frozen=True)
class Args:
    pass


ROOT = Path(__file__).parents[2]
CTX = {"run": "r", "prefix": "qa-r-", "deadline_s": 5.0}


def line(**change: Any) -> bytes:
    request = {"v": 1, "tool": "qa_chain", "args": {"function": "nope"}, "ctx": CTX} | change
    return json.dumps({key: value for key, value in request.items() if value is not None}).encode() + b"\n"


@anyio
@pytest.mark.parametrize(
    "request_line",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"not json\n",
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        line(v=2),
        line(v=None),
        line(tool="qa_x"),
        line(tool=["qa_chain"]),
        line(ctx={}),
        line(ctx=CTX | {"x": 1}),
        line(ctx=CTX | {"deadline_s": "5"}),
        line(more=1),
        b'{"v":1,"tool":"qa_chain","args":NaN,"ctx":{}}\n',
    ],
)
async def test_a_line_that_is_none(request_line: bytes) -> None:
    code, out, err = await run_guest(request_line)
    assert (code, out) == (EXIT_BAD_LINE, b"")
    assert err.startswith(b"bad request line: ")


@pytest.mark.parametrize(
    ("tool", "args", "error"),
    [
        ("qa_chain", {"function": "nope"}, "/args/function: not one of balanceOf,"),
        ("qa_chain", {"function": "eth_sendRawTransaction", "args": ["0x00"]}, "/args/function: not one of"),
        ("qa_chain", {"function": "clearFeedback"}, "/args/function: not one of"),
        ("qa_chain", {"function": "ownerOfId"}, "/args/args: ownerOfId takes 1: uint256"),
        ("qa_chain", {"function": "ownerOfId", "args": [-1]}, "/args/args/0: expected a uint256"),
        ("qa_chain", {"function": "idOf", "args": ["0x12"]}, "/args/args/0: expected an address"),
        ("qa_chain", {"function": "ownerOfName", "args": [{}]}, "/args/args/0: expected a string"),
        ("qa_chain", {}, "/args/function: required"),
        ("qa_chain", {"function": "owner", "x": 1}, "/args/x: unknown argument"),
        ("qa_chain", [], "/args: expected an object"),
        ("qa_fetch", {"url": "file:///etc/passwd"}, "/args/url: expected http"),
        ("qa_fetch", {"url": "http://u@h/"}, "/args/url: a URL with user information"),
        ("qa_fetch", {"url": "http://h:99999/"}, "/args/url: not a URL"),
        ("qa_fetch", {"url": "http://h/a\r\nb"}, "/args/url: expected http"),
        ("qa_fetch", {"url": "http://h/", "repeat": 51}, "/args/repeat: expected 1 to 50"),
        ("qa_fetch", {"url": "http://h/", "repeat": 0}, "/args/repeat: expected 1 to 50"),
        ("qa_fetch", {"url": "http://h/", "origin": "a\r\nx: y"}, "/args/origin: expected one printable"),
        ("qa_compile", {"source": 1}, "/args/source: expected a string"),
        ("qa_compile", {"source": "a", "module_hex": "00"}, "/args/module_hex: give source or module_hex"),
        ("qa_compile", {"module_hex": "0g"}, "/args/module_hex: not hex"),
        ("qa_compile", {"timeout_s": 0}, "/args/timeout_s: expected more than 0"),
        ("qa_compile", {"timeout_s": 21}, "/args/timeout_s: expected more than 0"),
        ("qa_create", {"name": "claude"}, "/args/name: only names qa-r-<n> belong to this run"),
        ("qa_create", {"name": "qa-other-1"}, "/args/name: only names"),
        ("qa_publish", {"name": "qa-r", "source": ""}, "/args/name: only names"),
        ("qa_publish", {"name": "ｑa-r-1", "source": ""}, "/args/name: not a name"),
        ("qa_call", {"target": "../x", "message": ""}, "/args/target: not a name"),
        ("qa_report", {"text": "x"}, "/tool: qa_report does not run in a jail"),
    ],
)
def test_a_mistake_is_an_answer_before_any_traffic(tool: str, args: Any, error: str) -> None:
    context = Context(run="r", prefix="qa-r-", deadline_s=5.0)
    result = answer(TOOLS[tool], args, context)  # no broker listens here
    assert (result["ok"], result["error_class"]) == (False, "bad_request")
    assert result["error"].startswith(error)


@anyio
async def test_without_a_broker_there_is_no_answer() -> None:
    code, out, err = await run_guest(line(args={"function": "owner"}))
    assert (code, out) == (EXIT_BROKEN, b"")
    assert err == b"broken: the broker is gone: Connection refused\n"


@anyio
async def test_the_deadline_is_the_guests_own() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    async with bench(raw=silent) as it:
        result = await it.run("qa_fetch", {"url": it.site.url}, deadline_s=0.5)
        assert (result["ok"], result["error_class"]) == (False, "timeout")
        assert result["latency_ms"] < 2_000


@anyio
async def test_only_the_first_line_counts() -> None:
    code, out, _ = await run_guest(line() + line(tool="qa_fetch", args={}))
    assert (code, out.count(b"\n")) == (0, 1)


@anyio
async def test_a_mistake_is_exit_0() -> None:
    code, out, err = await run_guest(line())
    assert (code, err, json.loads(out)["result"]["error_class"]) == (0, b"", "bad_request")


def tool(run: Callable[[Any, Context], Any]) -> ToolSpec:
    return ToolSpec("t", Args, ToolAnswer, Effect.LOOK, Cost(), "", run)


def test_a_full_disk_is_an_answer_and_other_faults_are_ours() -> None:
    def fail(number: int) -> Callable[[Any, Context], Any]:
        def run(args: Any, ctx: Context) -> Any:
            raise OSError(number, "x")

        return run

    context = Context(run="r", prefix="")
    for number in (errno.ENOSPC, errno.EDQUOT):
        assert answer(tool(fail(number)), {}, context)["error_class"] == "disk_full"
    with pytest.raises(OSError, match="x"):
        answer(tool(fail(errno.EIO)), {}, context)


def test_the_alarm_ends_a_tool_that_forgot_its_deadline_and_gives_the_timer_back() -> None:
    before = signal.setitimer(signal.ITIMER_REAL, 1000)
    context = Context(run="r", prefix="", deadline_s=0.2)
    result = answer(tool(lambda *_: time.sleep(30)), {}, context)
    assert (result["error_class"], result["latency_ms"] < 5_000) == ("timeout", True)
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
    signal.setitimer(signal.ITIMER_REAL, *before)


def test_the_table_names_each_tool_as_its_module_does() -> None:
    assert tuple(TOOLS) == NAMES


def test_a_jail_that_waits_has_imported_no_tool() -> None:
    """Each of them costs every jail; the one that is asked for is imported then."""
    script = "import sandbox.guest, sys; print(*(name for name in sys.modules if '.qa_' in name))"
    done = subprocess.run([sys.executable, "-S", "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")
