"""When each persona starts: minutes after a fleet's first start, then by its period, whatever restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from fleet.app.persona_sets import roster
from fleet.config import Platform
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona, Trigger
from fleet.service.triggers import FIRST_S, SPREAD_S, Triggers
from fleet.store.journal import Journal
from fleet.store.rows import BLIND, NewRun
from tests.doubles.journal import new_run
from tests.doubles.triggers import FiringRecorder
from tests.runs.table import PLATFORM
from tests.triggers.conftest import START, FakeClock

pytestmark = pytest.mark.anyio


def named(name: str, **trigger: str) -> LoadedPersona:
    one = Persona.model_construct(
        name=name, surface="ux", triggers=(Trigger(**cast(Any, trigger)),), probe=()
    )
    return LoadedPersona(persona=one, body="", sha256="0" * 64, path=Path(f"{name}.md"))


SHIPPED_LIKE = [
    named("qa-day", every="24h"),
    named("qa-six", every="6h"),
    named("qa-half", every="30m"),
    named("qa-round", continuous="30s", backoff="2h"),
    named("qa-slow-round", continuous="8h"),
]


@asynccontextmanager
async def started(
    tmp_path: Path,
    clock: FakeClock,
    personas: Sequence[LoadedPersona],
    *,
    platform: Platform = PLATFORM,
    sink: FiringRecorder | None = None,
) -> AsyncIterator[tuple[Triggers, Journal]]:
    async with await Journal.open(tmp_path / "fleet.db", clock=clock) as journal:
        sink = sink or FiringRecorder()
        made = Triggers(sink, journal, cast(Any, None), platform, "", tmp_path, clock, emit=lambda _: None)
        await made.start(personas)
        yield made, journal


def after(upcoming: dict[str, datetime], clock: FakeClock) -> dict[str, int]:
    return {name: round((at - clock.now()).total_seconds()) for name, at in upcoming.items()}


async def test_each_persona_starts_within_minutes_of_the_first_start_short_periods_first(
    tmp_path: Path,
) -> None:
    clock = FakeClock(START)
    async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, _):
        waits = after(triggers.upcoming(), clock)
    assert waits == {"qa-round": 15, "qa-half": 60, "qa-six": 105, "qa-slow-round": 150, "qa-day": 195}


async def test_the_shipped_personas_start_within_ten_minutes(tmp_path: Path) -> None:
    found, errors = roster()
    assert not errors
    clock = FakeClock(START)
    async with started(tmp_path, clock, list(found.values())) as (triggers, _):
        waits = after(triggers.upcoming(), clock)
    timed = {
        name for name, one in found.items() if any(t.every or t.continuous for t in one.persona.triggers)
    }
    assert waits.keys() == timed - {"qa-mcp", "qa-pay", "qa-registry"}  # which have nothing to look at there
    assert all(FIRST_S <= wait <= SPREAD_S for wait in waits.values())
    assert len(set(waits.values())) == len(waits)
    in_order = sorted(waits, key=waits.__getitem__)
    assert in_order == ["qa-fuzz", "qa-smoke", "qa-security", "qa-ux", "qa-perf", "qa-triage", "qa-retest"]


@pytest.mark.parametrize(("name", "period"), [("qa-half", 1800), ("qa-six", 21_600), ("qa-day", 86_400)])
async def test_a_period_is_what_it_says_and_a_restart_does_not_change_it(
    tmp_path: Path, name: str, period: int
) -> None:
    clock = FakeClock(START)
    async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, journal):
        first = triggers.upcoming()[name]
        await ran(journal, name, first)
    clock.advance((first - START).total_seconds() + period / 3)
    for _ in range(2):
        async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, _):
            assert triggers.upcoming()[name] == first + timedelta(seconds=period)
        clock.advance(60)


async def test_a_restart_before_the_first_start_does_not_postpone_it(tmp_path: Path) -> None:
    clock = FakeClock(START)
    async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, _):
        before = triggers.clockwork.upcoming()
    clock.advance(10)
    async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, _):
        assert triggers.clockwork.upcoming() == before


async def test_a_persona_that_comes_later_starts_soon_and_one_with_a_short_period_by_it(
    tmp_path: Path,
) -> None:
    clock = FakeClock(START)
    async with started(tmp_path, clock, SHIPPED_LIKE) as (triggers, _):
        clock.advance(3600)
        await triggers.plan(named("qa-new", every="24h"))
        await triggers.plan(named("qa-quick", every="5s"))
        waits = after(triggers.upcoming(), clock)
    assert (waits["qa-new"], waits["qa-quick"]) == (15, 5)


async def test_many_personas_are_spread_over_ten_minutes(tmp_path: Path) -> None:
    clock = FakeClock(START)
    many = [named(f"qa-{n}", every="24h") for n in range(2_000)]
    async with started(tmp_path, clock, many) as (triggers, _):
        waits = sorted(after(triggers.upcoming(), clock).values())
    assert (waits[0], waits[-1] <= SPREAD_S) == (15, True)
    assert max(waits.count(wait) for wait in set(waits)) <= 5


ROUND = named("qa-round", continuous="30s", backoff="2h")


async def looked_at_nothing(journal: Journal, triggers: Triggers, number: int) -> None:
    """A run of qa-round that ends as it does on a platform that has nothing for it."""
    assert await journal.trigger(new_run(f"r{number}", "qa-round"))
    assert await journal.claim(f"r{number}", pid=1, pid_start=1)
    assert await journal.finish(f"r{number}", BLIND, "0 of 9 probes looked at, 9 not applicable")
    (row,) = [one for one in await journal.runs() if one.run_id == f"r{number}"]
    triggers.ended(row, found=False)


async def test_what_looks_at_nothing_backs_off_over_restarts_until_the_profile_changes(
    tmp_path: Path,
) -> None:
    clock, sink = FakeClock(START), FiringRecorder()
    async with started(tmp_path, clock, [ROUND], sink=sink) as (triggers, journal):
        for number in range(6):
            await looked_at_nothing(journal, triggers, number)
            await triggers.continuous.fire_due()
        assert after(triggers.upcoming(), clock) == {"qa-round": 30 * 2**6}
        assert [(one.key, one.reason[:81]) for one in sink.skips] == [
            (
                "qa-round@blind",
                "its runs look at nothing (0 of 9 probes looked at, 9 not applicable), so they sta",
            )
        ]
    async with started(tmp_path, clock, [ROUND]) as (triggers, journal):
        assert after(triggers.upcoming(), clock) == {"qa-round": 30 * 2**6}
        await looked_at_nothing(journal, triggers, 6)
        assert after(triggers.upcoming(), clock) == {"qa-round": 30 * 2**7}
    other = PLATFORM.model_copy(update={"call_targets": ("another",)})
    clock.advance(30)
    for _ in range(2):
        async with started(tmp_path, clock, [ROUND], platform=other) as (triggers, _):
            assert after(triggers.upcoming(), clock) == {"qa-round": 0}


async def test_what_looks_at_nothing_starts_when_a_part_changes(tmp_path: Path) -> None:
    clock = FakeClock(START)
    cut = named("qa-cut", on="facets-changed")
    async with started(tmp_path, clock, [ROUND, cut]) as (triggers, journal):
        assert triggers.subscribers("facets-changed") == ["qa-cut"]
        await looked_at_nothing(journal, triggers, 0)
        for event in ("facets-changed", "build-changed", "outage-over", "log-changed"):
            others = ["qa-cut"] if event == "facets-changed" else []
            woken = ["qa-round"] if event != "log-changed" else []
            assert triggers.subscribers(event) == others + woken, event
        triggers.continuous.ended("qa-round", found=False)
        assert triggers.subscribers("facets-changed") == ["qa-cut"]


async def ran(journal: Journal, name: str, due: datetime) -> None:
    key = f"{name}@{due:%Y-%m-%dT%H:%M:%SZ}"
    stamp = due.isoformat(timespec="microseconds")
    assert await journal.trigger(
        NewRun(
            run_id="abcdefgh",
            persona=name,
            key=key,
            platform="paper",
            trigger="t",
            rung="",
            budget={},
            due=stamp,
        )
    )
