"""What one input shows with given defects switched on: the bench's own judge, apart from the search's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.fuzzing.faults import HERE, PlantedFault

HANG_S = 2
"""Processor time of one execution; a sound one takes 0.05 s."""
MEMORY = 400 << 20
SOUND = frozenset({"accepted", "clean_error"})
ENTRIES = (b"\x05frame\0", b"\x06render\0")
"""An export of a function, as the binary format writes it."""
_INTERNAL = re.compile(r"internal|panicked|a bug in|Traceback|assertion|unimplemented", re.IGNORECASE)
_SPAN = re.compile(r"\[\d+\.\.\d+\]$")


@dataclass(frozen=True, slots=True)
class ObservedEnd:
    """`kind` is `accepted`, `clean_error` or how it failed; `output` the module or the loader's word."""

    kind: str
    output: bytes
    said: str


class ReferenceStand:
    """Runs one copy, in processes of which each is started once; ends them as a context."""

    def __init__(self, copy: Path, hang_s: int = HANG_S) -> None:
        self._copy, self._hang_s = copy, hang_s
        self._processes: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> ReferenceStand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def once(self, source: bytes, part: str, faults: Iterable[str] = (), process: int = 0) -> ObservedEnd:
        """One execution with these defects on."""
        loader = part == "loader"
        request = {"input": source.hex(), "loader": loader, "faults": ",".join(faults)}
        done = self._ask(request | {"seconds": self._hang_s}, process)
        return ObservedEnd(_kind(done, loader), bytes.fromhex(done["out"]), done["err"].strip())

    def hits(self, source: bytes) -> list[str]:
        """The defects whose place this accepted program, or its module, has."""
        return list(self._ask({"hits": source.hex()}))

    def does(self, module: bytes) -> Any:  # noqa: ANN401  any JSON
        """What a module's functions give for a few arguments."""
        return self._ask({"module": module.hex()})

    def _ask(self, request: dict[str, Any], process: int = 0) -> Any:  # noqa: ANN401  any JSON
        if process not in self._processes:
            driver = (HERE / "driver.py.txt").read_text("utf-8")
            argv = [sys.executable, "-I", "-B", "-W", "ignore", "-c", driver, str(self._copy)]
            self._processes[process] = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        child = self._processes[process]
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    def shows(self, source: bytes, part: str, faults: Iterable[str]) -> str:
        """How these defects make this input fail, "" when they do not."""
        faults = tuple(faults)
        seen = self.once(source, part, faults)
        clean = self.once(source, part)
        if clean.kind not in SOUND:
            return ""
        if seen.kind not in SOUND:
            return seen.kind
        if seen.kind != "accepted" or part == "loader":
            return "" if seen.kind == clean.kind and seen.output == clean.output else "other answer"
        others = [self.once(source, part, faults, process) for process in (1, 0, 1)]
        if any(one.output != seen.output for one in others):
            return "non-determinism"
        if any(name in clean.output and name not in seen.output for name in ENTRIES):
            return "missing-entry"
        return "" if seen.output == clean.output else "wrong-code"


def _kind(done: dict[str, Any], loader: bool) -> str:
    code = done["code"]
    if done["xcpu"]:
        return "hang"
    if code and done["peak"] >= MEMORY:
        return "memory"
    if code < 0:
        return "crash"
    if code == 0:
        return "accepted" if done["valid"] else "invalid-output"
    if code != 1:
        return "panic"
    if _INTERNAL.search(done["err"]):
        return "internal-error"
    return "clean_error" if _SPAN.search(done["err"].strip()) and not loader else "no diagnostic"


KINDS = {
    "panic": {"panic"},
    "crash": {"crash"},
    "overflow": {"crash", "panic"},
    "hang": {"hang"},
    "memory": {"memory"},
    "internal-error": {"internal-error", "panic", "no diagnostic"},
    "diagnostic": {"panic", "crash", "no diagnostic"},
    "loader": {"crash", "panic", "hang"},
    "invalid-module": {"invalid-output", "panic"},
    "missing-entry": {"missing-entry"},
    "non-determinism": {"non-determinism"},
    "wrong-code": {"wrong-code"},
}
"""How a defect of each class fails, as its witness must."""


def reachable(stand: ReferenceStand, fault: PlantedFault) -> bool:
    """Whether the defect's witness fails as its class does, with it alone. Wrong code must be seen where it
    runs: what stands behind a `return` is in the module, and nothing in the world can show it."""
    way = stand.shows(fault.witness, fault.part, [fault.id])
    if way not in KINDS[fault.klass] or way != "wrong-code":
        return way in KINDS[fault.klass]
    wrong, right = (stand.once(fault.witness, fault.part, on).output for on in ([fault.id], []))
    return bool(stand.does(wrong) != stand.does(right))
