"""How many files and functions of `fleet/` the product enters: no mark, a figure for a reader.

    python -m bench.entered [--json]

Two ways through the real daemon on the bundled platform, in a process of its own with a profile hook in each
thread: from a tick of the clock to the finding that is posted (a disposable name, a page, the proof 3 of 3),
and one `qa_fetch` through gate, jail and broker, trusted side only, without its callers (the median of the
run's calls). What else the daemon does meanwhile is not counted: only what the tick, the executor and their
tasks enter, and the journal's thread.

It knows the product by its commands and a few names (`NAMED`), so that it can measure an older commit:
`cd OLD && PYTHONPATH=. python /path/to/bench/entered.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextvars import ContextVar
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOM = f"{os.sep}fleet{os.sep}"
NAMED: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "tick": (("runs/queue.py",), {"fire", "fire_all"}),
    "claim": (("runs/executor.py",), {"_claim"}),
    "event": (("events/stream.py",), {"emit"}),
    "call": (("runs/call/session.py", "runs/call/tool_session.py", "runs/session.py"), {"call"}),
}
PERSONA = """+++
name = "qa-entered"
surface = "ux"
tools = ["qa_create", "qa_fetch"]
triggers = [{ every = "2s" }]
budget = { calls = 60, writes = 30, wall = "5m" }
[[probe]]
id = "entered"
severity = "low"
steps = [
  { tool = "qa_create", args = { name = "{name}" } },
  { tool = "qa_fetch", args = { url = "{site}/llms.txt" } },
]
expect = 'result.status == 599'
finding = "the page answers with another status than 599"
+++
A measurement.
"""

THREADS = "store/"
"""The journal's thread has no context of the task that asked it."""

Entered = set[tuple[str, str, int]]
_ours: ContextVar[bool] = ContextVar("ours", default=False)
"""Set where the tick and the executor begin; every task that they start inherits it."""
_calling: ContextVar[bool] = ContextVar("calling", default=False)
"""The same of one call: the executor's own loop, which goes on meanwhile, is not in it."""


MAIN = threading.main_thread()


def is_named(code: CodeType, name: str) -> bool:
    """Whether this is one of the functions that the figures begin or end with."""
    files, functions = NAMED[name]
    return code.co_name in functions and code.co_filename.endswith(files)


class Counter:
    """The profile hook. `path` is what was entered between the tick and the posted finding."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._known: dict[CodeType, tuple[str, str, int] | None] = {}
        self._open: Entered | None = None
        self._call: Entered | None = None
        self._above: Entered = set()
        self.path: Entered = set()
        self.calls: list[Entered] = []

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:  # noqa: ANN401  sys.setprofile has any
        if event not in ("call", "return") or self.path:
            return
        code = frame.f_code
        where = self._known[code] if code in self._known else self._place(code)
        if where is None:
            return
        if event == "call":
            self._enter(frame, code, where)
        elif self._call is not None and is_named(code, "call") and type(arg).__name__ == "Answer":
            self.calls.append(self._call)
            self._call = None
            _calling.set(False)

    def _enter(self, frame: FrameType, code: CodeType, where: tuple[str, str, int]) -> None:
        if is_named(code, "tick") and self._open is None:
            self._open = self._callers(frame)
        if self._open is None:
            return
        if is_named(code, "tick") or is_named(code, "claim"):
            _ours.set(True)
        if not (_ours.get() or (where[0].startswith(THREADS) and threading.current_thread() is not MAIN)):
            return
        self._open.add(where)
        if is_named(code, "call") and self._call is None and frame.f_locals.get("tool") == "qa_fetch":
            self._call, self._above = set(), self._callers(frame.f_back)
            _calling.set(True)
        if self._call is not None and where not in self._above and (_calling.get() or not _ours.get()):
            self._call.add(where)
        if is_named(code, "event") and getattr(frame.f_locals.get("event"), "type", "") == "finding.posted":
            self.path = self._open
            self._done()

    def _callers(self, frame: FrameType | None) -> Entered:
        found: Entered = set()
        while frame is not None:
            if place := self._place(frame.f_code):
                found.add(place)
            frame = frame.f_back
        return found

    def _place(self, code: CodeType) -> tuple[str, str, int] | None:
        """File, function and line of a function of the fleet; bodies of modules and classes are none, and a
        comprehension is part of its function."""
        before, room, rest = code.co_filename.rpartition(ROOM)
        function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")
        ours = room and "site-packages" not in before and function
        self._known[code] = (rest, code.co_name, code.co_firstlineno) if ours else None
        return self._known[code]


def figures(entered: Entered) -> dict[str, int]:
    return {"files": len({file for file, _, _ in entered}), "functions": len(entered)}


def child(argv: list[str], out: Path) -> int:
    """The daemon under the hook, until the finding is posted; what was entered goes to a file."""

    def done() -> None:
        fetches = [figures(one) for one in counter.calls]
        call = {key: statistics.median(one[key] for one in fetches) for key in ("files", "functions")}
        last = counter.calls[-1]
        lists = {"path": sorted(counter.path), "call": sorted(last)}
        out.write_text(json.dumps({"path": figures(counter.path), "call": call, "entered": lists}))
        os.kill(os.getpid(), 15)

    from fleet.cli import main as fleet

    counter = Counter(done)
    threading.setprofile(counter)
    sys.setprofile(counter)
    sys.argv = ["fleet", *argv]
    fleet()
    return 0


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="entered-") as folder:
        root, personas = Path(folder), Path(folder) / "personas"
        personas.mkdir()
        (personas / "qa-entered.md").write_text(PERSONA)
        env = {**os.environ, "STATE_DIRECTORY": str(root / "state"), "PYTHONPATH": os.getcwd()}

        def fleet(*args: str) -> None:
            subprocess.run(
                [sys.executable, "-m", "fleet.cli", *args], env=env, check=True, stdout=subprocess.DEVNULL
            )

        fleet("devnet", "up", "--clean")
        try:
            fleet("dial", "exercise", "--reason", "a measurement")
            up = ["up", "--platform", "devnet", "--personas", str(personas), "--grace", "0"]
            out = root / "out.json"
            subprocess.run(
                [sys.executable, __file__, "--child", str(out), *up],
                env=env,
                timeout=300,
                stdout=subprocess.DEVNULL,
            )
            found: dict[str, Any] = json.loads(out.read_text())
            return found
        finally:
            fleet("devnet", "down")


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[3:], Path(sys.argv[2]))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="with every file and function that was entered")
    found = measure() if parser.parse_args().json else {**measure(), "entered": None}
    entered = found.pop("entered")
    print(json.dumps({"entered": found} | ({"lists": entered} if entered else {}), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
