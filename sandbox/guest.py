"""One request in, one result out: what runs in every jail, as the child of its first process.

A batch is one request of several calls of one tool, and one result line for each, written at once: what was
answered stays answered however the process ends. A question's later calls are not made once an earlier one
could not look.

Exit 0 is an answer (the caller's mistakes included); 3 an invalid request line; anything else is our fault
and never an answer about the platform.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import sandbox.chain.rpc  # noqa: F401 -- what most tools need, paid for before the fork
from sandbox import strict_json
from sandbox.errors import OUR_FAILURES, DeadlinePassed, Failure, JailBroken, cause_of
from sandbox.spec import PROTOCOL, Context, Mistake, ToolSpec, as_record
from sandbox.text import clean
from sandbox.tools import TOOLS
from sandbox.validate import build, check

EXIT_BAD_LINE = 3
EXIT_BROKEN = 4

MAX_LINE = 8 << 20
"""Bytes of a request line: a module of a few MiB in hex fits."""

MAX_CALLS = 48
"""Calls of one batch."""
ENOUGH = 512 << 10
"""Bytes of results after which a batch begins no other call: all of them fit into a jail's output."""


@dataclass(frozen=True, slots=True)
class BatchedCall:
    """One call of a batch; those of one `group` belong to one question."""

    args: object
    group: int


@dataclass(frozen=True, slots=True)
class RequestLine:
    """What a guest is asked: one call, or a batch that begins no call after `starts_s` seconds."""

    spec: ToolSpec
    ctx: Context
    args: object = None
    calls: tuple[BatchedCall, ...] = ()
    starts_s: float = 0.0


def preload() -> None:
    """Load every tool, where many guests are forked from one process."""
    list(TOOLS.values())


def main() -> int:
    """Serve standard input once; the status is the process's."""
    try:
        asked = _parse(_read_line())
    except Mistake as mistake:
        print(f"bad request line: {clean(str(mistake))}", file=sys.stderr)
        return EXIT_BAD_LINE
    try:
        if asked.calls:
            return _batch(asked)
        result = answer(asked.spec, asked.args, asked.ctx)
    except JailBroken as broken:
        print(f"broken: {clean(str(broken))}", file=sys.stderr)
        return EXIT_BROKEN
    _write({"v": PROTOCOL, "result": result})
    return 0


def _batch(asked: RequestLine) -> int:
    """Every call in order, while there is time and room for its answer."""
    began, written = time.monotonic(), 0
    over: set[int] = set()
    for number, call in enumerate(asked.calls):
        if call.group in over:
            continue
        if number and (written > ENOUGH or time.monotonic() - began > asked.starts_s):
            break
        result = answer(asked.spec, call.args, asked.ctx)
        if cause_of(result) in OUR_FAILURES:
            over.add(call.group)
        written += _write({"v": PROTOCOL, "call": number, "result": result})
    return 0


def answer(spec: ToolSpec, raw: object, ctx: Context) -> dict[str, Any]:
    """The result of one call as plain data; every foreseen failure is a result, Broken is not."""
    started = time.monotonic()
    try:
        args: Any = build(spec.args, raw, "/args")
        if spec.run is None:
            raise Mistake(f"/tool: {spec.name} does not run in a jail")
        with _Alarm(ctx.deadline_s):
            result = spec.run(args, ctx)
    except Mistake as mistake:
        result = spec.result(ok=False, error=clean(str(mistake)), error_class="bad_request")
    except Failure as failure:
        result = spec.result(ok=False, error=clean(str(failure)), error_class=failure.error_class)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        result = spec.result(ok=False, error="no space left in the sandbox", error_class="disk_full")
    elapsed = round((time.monotonic() - started) * 1000, 3)
    return as_record(result if result.latency_ms else replace(result, latency_ms=elapsed))


class _Alarm:
    """The last resort behind the deadlines of each tool: a timer signal in the main thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGALRM, _ring)
        self._timer = signal.setitimer(signal.ITIMER_REAL, max(self._seconds, 0.001))

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        signal.setitimer(signal.ITIMER_REAL, *self._timer)


def _ring(_signal: int, _frame: FrameType | None) -> None:
    raise DeadlinePassed()


def _read_line() -> bytes:
    chunks: list[bytes] = []
    size = 0
    while not chunks or b"\n" not in chunks[-1]:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_LINE:
            raise Mistake(f"longer than {MAX_LINE} bytes")
    return b"".join(chunks).partition(b"\n")[0]


def _parse(line: bytes) -> RequestLine:
    try:
        request = strict_json.loads(line)
    except ValueError:
        raise Mistake("not JSON") from None
    keys = set(request) if isinstance(request, dict) else set()
    single = keys == {"v", "tool", "args", "ctx"}
    if not (single or keys == {"v", "tool", "calls", "starts_s", "ctx"}) or request["v"] != PROTOCOL:
        raise Mistake(f"expected an object of v={PROTOCOL}, tool, args or calls and starts_s, ctx")
    spec = TOOLS.get(request["tool"])
    if spec is None:
        raise Mistake("no such tool")
    ctx = build(Context, request["ctx"], "/ctx")
    if single:
        return RequestLine(spec, ctx, request["args"])
    calls = request["calls"]
    if not spec.batches or not isinstance(calls, list) or not 0 < len(calls) <= MAX_CALLS:
        raise Mistake(f"/calls: expected 1 to {MAX_CALLS} of a tool that batches")
    starts_s = check(float, request["starts_s"], "/starts_s")
    return RequestLine(spec, ctx, calls=tuple(map(_batched, calls)), starts_s=starts_s)


def _batched(raw: object) -> BatchedCall:
    if not isinstance(raw, dict) or set(raw) != {"args", "group"} or type(raw["group"]) is not int:
        raise Mistake("/calls: expected objects of args and group")
    return BatchedCall(raw["args"], raw["group"])


def _write(said: dict[str, Any]) -> int:
    """Write one line; the number of its bytes."""
    line = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    data = memoryview(line)
    while data:
        data = data[os.write(1, data) :]
    return len(line)


if __name__ == "__main__":
    sys.exit(main())
