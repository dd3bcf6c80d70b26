"""Which kills are tried: at every step, before what records an effect, twice, and during recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECORDS_WHAT_HAPPENED = ("effect.resolve", "finding.set", "run.finish")
"""Steps that follow an effect outside: before them, it has happened and nobody has written it down."""
BUSY_AT = ("finding.add", "effect.intend.tx", "finding.set", "run.settle")
"""After the first of these a recovery has much to do, so it is killed at each of its own steps there."""
SECOND = "2"
"""What the second start is killed at, when it is not killed at each of its steps in turn."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Where the first process is killed (`b7`: before its seventh step), and the second; "" when it is not.

    `peer`: whoever starts next is another machine.
    """

    first: str
    second: str = ""
    peer: bool = False

    def __str__(self) -> str:
        second = f", then at {self.second}" if self.second else ""
        return f"killed at {self.first}{second}{', settled by a peer' if self.peer else ''}"


def one_after_another(names: Sequence[str], stride: int, kinds: Sequence[str], *, peers: bool) -> list[Trial]:
    """One trial a step, and one before each that records; by a stride, with these kinds of steps in it."""
    points = [Trial(str(at), SECOND if at % 3 == 0 else "") for at in range(1, len(names) + 1)]
    points += [Trial(f"b{at}") for at, name in enumerate(names, 1) if name in RECORDS_WHAT_HAPPENED]
    chosen = sorted({*range(0, len(points), stride), *(names.index(kind) for kind in kinds if kind in names)})
    return [
        Trial(points[at].first, points[at].second, peers and number % 4 == 1)
        for number, at in enumerate(chosen)
    ]


def in_recovery(names: Sequence[str], kinds: Sequence[str] = BUSY_AT) -> Iterator[str]:
    """Where a first process is killed so that the recovery after it is worth killing."""
    return (str(names.index(kind) + 1) for kind in kinds if kind in names)
