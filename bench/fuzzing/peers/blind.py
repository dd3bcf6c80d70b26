"""Two peers, a process per input: `python -m bench.fuzzing.peers.blind HOW SEEDS SECONDS OUT -- ARGV`.

`bytes` changes bytes of the seeds; `lark` is Hypothesis's from_lark on the compiler's own grammar. An input
that ends badly (signal, panic, time-out, internal error, invalid module) is written to the folder OUT. With
`{source}` in ARGV that is a file, and every input is kept, for the judge.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis.extra.lark import from_lark
from lark import Lark

from bench.fuzzing.build import COMPILER

TIMEOUT_S = 2.0
COLD_S = 30.0
EACH = 5
"""Inputs kept of those that end alike."""
INTERNAL = re.compile(rb"internal|panicked|a bug in|Traceback|assertion|unimplemented", re.IGNORECASE)


class TimeOver(Exception):
    """The peer's time is used up."""


class BlindSearch:
    """Runs one program on inputs until `seconds` are over, and keeps what ended badly."""

    def __init__(self, argv: list[str], out: Path, seconds: float) -> None:
        self._argv, self._out, self._until = argv, out, time.monotonic() + seconds
        self._kept: Counter[str] = Counter()
        self.executions = 0

    def look(self, source: bytes) -> None:
        """One execution; raises TimeOver at the end."""
        if time.monotonic() >= self._until:
            raise TimeOver
        self.executions += 1
        how = self._ending(source)
        if how and self._kept[how] < EACH:
            self._kept[how] += 1
            (self._out / f"{self.executions}").write_bytes(source)

    def _ending(self, source: bytes) -> str:
        """A word for a bad end, "" for a good one."""
        argv = [word.replace("{source}", str(self._out / f"{self.executions}")) for word in self._argv]
        if argv != self._argv:
            (self._out / f"{self.executions}").write_bytes(source)
            subprocess.run(argv, capture_output=True, timeout=COLD_S, check=False)
            return ""
        try:
            done = subprocess.run(argv, input=source, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return "hang"
        if done.returncode == 0:
            return "" if _valid(done.stdout) else "invalid"
        said = re.sub(rb"\d+", b"#", done.stderr[:200]).decode("utf-8", "replace")
        clean = done.returncode == 1 and done.stderr.strip() and not INTERNAL.search(done.stderr)
        return "" if clean else f"{done.returncode} {said}"


def _valid(module: bytes) -> bool:
    import wasmtime

    try:
        wasmtime.Module.validate(wasmtime.Engine(), module)
    except wasmtime.WasmtimeError:
        return False
    return True


def change_bytes(seeds: list[bytes], look: Callable[[bytes], None]) -> None:
    """One to eight bytes of a seed replaced, removed or doubled."""
    chance = Random(1)
    while True:
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(data) or 1)
            data[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
        look(bytes(data))


def from_grammar(_seeds: list[bytes], look: Callable[[bytes], None]) -> None:
    """What Hypothesis makes of the grammar."""
    grammar = Lark((COMPILER / "grammar.lark").read_text("utf-8"), parser="lalr", lexer="basic")

    @settings(
        max_examples=10_000_000,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(from_lark(grammar))
    def each(text: str) -> None:
        look(text.encode("utf-8", "ignore"))

    each()


HOW = {"bytes": change_bytes, "lark": from_grammar}


def main(argv: list[str]) -> None:
    how, seeds, seconds, out, _, *program = argv
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    search = BlindSearch(program, folder, float(seconds))
    try:
        HOW[how]([path.read_bytes() for path in sorted(Path(seeds).iterdir())], search.look)
    except* TimeOver:
        pass
    print(search.executions)


if __name__ == "__main__":
    main(sys.argv[1:])
