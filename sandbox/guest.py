"""One request in, one result out: what runs in every jail, as the child of its first process.

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
from dataclasses import asdict, replace
from types import FrameType
from typing import Any

import sandbox.rpc  # noqa: F401 -- what most tools need, paid for before the fork
from sandbox import strict_json
from sandbox.errors import DeadlinePassed, Failure, JailBroken
from sandbox.spec import PROTOCOL, Context, Mistake, ToolSpec
from sandbox.text import clean
from sandbox.tools import tool
from sandbox.validate import build

EXIT_BAD_LINE = 3
EXIT_BROKEN = 4

MAX_LINE = 8 << 20
"""Bytes of a request line: a module of a few MiB in hex fits."""


def main() -> int:
    """Serve standard input once; the status is the process's."""
    try:
        spec, args, ctx = _parse(_read_line())
    except Mistake as mistake:
        print(f"bad request line: {clean(str(mistake))}", file=sys.stderr)
        return EXIT_BAD_LINE
    try:
        result = answer(spec, args, ctx)
    except JailBroken as broken:
        print(f"broken: {clean(str(broken))}", file=sys.stderr)
        return EXIT_BROKEN
    _write(json.dumps({"v": PROTOCOL, "result": result}, ensure_ascii=False, separators=(",", ":")))
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
    return asdict(result if result.latency_ms else replace(result, latency_ms=elapsed))


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


def _parse(line: bytes) -> tuple[ToolSpec, object, Context]:
    try:
        request = strict_json.loads(line)
    except ValueError:
        raise Mistake("not JSON") from None
    if (
        not isinstance(request, dict)
        or set(request) != {"v", "tool", "args", "ctx"}
        or request["v"] != PROTOCOL
    ):
        raise Mistake(f"expected an object of v={PROTOCOL}, tool, args, ctx")
    spec = tool(request["tool"])
    if spec is None:
        raise Mistake("no such tool")
    return spec, request["args"], build(Context, request["ctx"], "/ctx")


def _write(line: str) -> None:
    data = memoryview(line.encode("utf-8", "replace") + b"\n")
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
