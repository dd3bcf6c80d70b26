"""Every retry waits by one rule: the pauses of each place that tries again, as numbers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.backoff import Backoff
from fleet.cli.operate import up
from fleet.runs import executor, janitor
from fleet.runs.call import session, targets
from fleet.store.sql import postgres
from fleet.triggers.clock.continuous import Pace, Rounds


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        (Backoff(1, 60), [1, 2, 4, 8, 16, 32, 60, 60]),
        (Backoff(1, 60, factor=1), [1, 1, 1]),
        (Backoff(90, 60), [60, 60]),
        (up.AGAIN, [1, 2, 4, 8, 16, 32, 60, 60]),
        (session.AGAIN, [0.5, 1, 2, 4, 4]),
        (janitor.AGAIN, [5, 10, 20, 40, 80, 160, 300, 300]),
        (targets.AGAIN, [5, 10, 20, 40]),
        (executor.AGAIN, [1, 2, 4, 8, 16, 30, 30]),
        (postgres.AGAIN, [0.002 * 2**n for n in range(7)] + [0.25, 0.25]),
    ],
)
def test_pauses_double_up_to_the_longest(policy: Backoff, pauses: list[float]) -> None:
    assert [policy.pause(failures) for failures in range(len(pauses))] == pytest.approx(pauses)


def test_a_persona_that_finds_nothing_waits_by_the_same_rule() -> None:
    pace = Pace(60, 600)
    assert [pace.pause(quiet) for quiet in range(6)] == [60, 120, 240, 480, 600, 600]
    assert pace.wait(Rounds(3, 2, datetime(2026, 1, 1, tzinfo=UTC)), datetime(2026, 1, 1, tzinfo=UTC)) == 240


@given(st.integers(0, 10**9), st.floats(0, 1), st.floats(0, 1))
def test_no_pause_leaves_its_jitter(failures: int, draw: float, jitter: float) -> None:
    pause = Backoff(0.1, 7, jitter=jitter).pause(failures, draw)
    assert 0.1 * (1 - jitter) - 1e-9 <= pause <= 7 * (1 + jitter) + 1e-9
    assert Backoff(0.1, 7, jitter=jitter).pause(failures) == Backoff(0.1, 7).pause(failures)


def test_a_draw_says_where_in_the_jitter() -> None:
    policy = Backoff(2, 60, jitter=0.5)
    assert [policy.pause(1, draw) for draw in (0, 0.25, 0.5, 1)] == [2, 3, 4, 6]


def test_a_deadline_is_kept_by_not_waiting() -> None:
    policy = Backoff(1, 60, jitter=0.5)
    assert [policy.fits(2, left) for left in (3.9, 4.0, 5.0)] == [False, True, True]
