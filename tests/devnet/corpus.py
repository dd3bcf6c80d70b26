"""The programs of `rustlite/*.rl`: `//= id | arguments -> result | ...`, then a source with `f`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "rustlite"


@dataclass(frozen=True)
class Case:
    id: str
    source: bytes
    runs: tuple[tuple[tuple[float, ...], float | None], ...]


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def _run(text: str) -> tuple[tuple[float, ...], float | None]:
    args, _, result = (part.strip() for part in text.partition("->"))
    given = tuple(_number(arg) for arg in args.split(",") if arg)
    return given, None if result == "None" else _number(result)


def _cases(path: Path) -> list[Case]:
    cases = []
    for chunk in path.read_text("utf-8").split("//= ")[1:]:
        header, _, source = chunk.partition("\n")
        name, *runs = header.split(" | ")
        cases.append(Case(name, source.encode(), tuple(_run(run) for run in runs)))
    return cases


CASES = [case for path in sorted(HERE.glob("*.rl")) for case in _cases(path)]
