"""How `fleet fuzz` spends the time that it was given."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.fuzzing.campaign import Campaign
from fleet.jail.model import Image
from fleet.runs.fuzz import FuzzSearch
from sandbox.programs.program import Program
from tests.doubles.jail import LocalJail


class RoundClock(SystemClock):
    """Time that only rounds take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class SlowStarts(FuzzSearch):
    """A program whose start takes five seconds; `lengths` are those that rounds were asked for."""

    lengths: list[float]
    share: float = 1.0

    async def call(self, tool: str, args: Any) -> dict[str, Any]:
        assert tool == "qa_fuzz"
        assert isinstance(self.clock, RoundClock)
        self.lengths.append(args["seconds"])
        self.clock.seconds += 5.0 + args["seconds"]
        return {
            "ok": True,
            "executions": 1,
            "seconds": args["seconds"],
            "cpu_s": self.share * args["seconds"],
        }


class BusyLooks(SlowStarts):
    """Looks that cannot tell, the first `busy` of them; each round claims one and the same hang."""

    busy: int

    async def call(self, tool: str, args: Any) -> dict[str, Any]:
        if tool == "qa_fuzz":
            one = {
                "signature": "hang",
                "kind": "hang",
                "said": "",
                "place": "",
                "source": "loop",
                "minimal": True,
            }
            return await super().call(tool, args) | {"defects": [one]}
        self.busy -= 1
        if self.busy >= 0:
            return {"ok": False, "outcome": "unknown", "error_class": "busy", "error": "could not tell"}
        return {"ok": False, "outcome": "hang", "error": ""}


@pytest.mark.parametrize(
    ("busy", "confirmed", "undecided"), [(0, [3], 0), (9, [3], 0), (20, [3], 0), (36, [], 1), (10_000, [], 1)]
)
def test_what_could_not_be_told_is_asked_again_later_and_not_for_ever(
    busy: int, confirmed: list[int], undecided: int
) -> None:
    search = BusyLooks(
        program=Program(command=("cc",)),
        jail=LocalJail(Image()),
        campaign=Campaign(),
        seed=1,
        clock=RoundClock(),
    )
    search.lengths, search.busy = [], busy
    anyio.run(search.run, 60.0, 1)
    assert ([one.confirmed for one in search.defects], search.undecided) == (confirmed, undecided)
    assert busy < 10_000 or search.busy == 10_000 - 9 * 4


def lengths_of(
    program: Program, seconds: float, share: float = 1.0, *, by_clock: bool = False
) -> list[float]:
    search = SlowStarts(
        program=program,
        jail=LocalJail(Image()),
        campaign=Campaign(),
        seed=1,
        by_clock=by_clock,
        clock=RoundClock(),
    )
    search.lengths, search.share = [], share
    anyio.run(search.run, seconds, 1)
    return search.lengths


@pytest.mark.parametrize(
    ("program", "seconds", "lengths"),
    [
        (Program(command=("cc",)), 60.0, [50.0]),
        (Program(command=("cc",)), 120.0, [50.0, 50.0, 5.0]),
        (Program(command=("cc",), loader=("ld",)), 62.5, [25.0, 6.2, 16.3]),
    ],
)
def test_no_round_begins_that_its_start_leaves_no_time(
    program: Program, seconds: float, lengths: list[float]
) -> None:
    assert lengths_of(program, seconds) == lengths


@pytest.mark.parametrize(
    ("share", "lengths"),
    [
        (0.7, [50.0, 50.0, 5.0]),
        (0.35, [50.0, 50.0, 50.0, 50.0, 15.0]),
        (0.1, [50.0] * 6 + [25.0]),
        (0.0, [50.0] * 6 + [25.0]),
    ],
)
def test_a_round_that_waited_for_a_processor_counts_as_a_shorter_one(
    share: float, lengths: list[float]
) -> None:
    assert lengths_of(Program(command=("cc",)), 120.0, share) == lengths


def test_by_the_clock_a_round_counts_in_full() -> None:
    assert lengths_of(Program(command=("cc",)), 120.0, 0.1, by_clock=True) == [50.0, 50.0, 5.0]
