"""Every retry waits by one rule: the pauses of each place that tries again, as numbers."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import retry
from fleet.retry import Retry
from fleet.triggers.clock.continuous import Pace, Rounds

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        (Retry(1, 60), [1, 2, 4, 8, 16, 32, 60, 60]),
        (Retry(1, 60, factor=1), [1, 1, 1]),
        (Retry(90, 60), [60, 60]),
        (retry.START_UP, [1, 2, 4, 8, 16, 32, 60, 60]),
        (retry.SILENT_TARGET, [0.5, 1, 2, 4, 4]),
        (retry.CLEAN_UP, [5, 10, 20, 40, 80, 160, 300, 300]),
        (retry.WITHDRAWN_TARGET, [5, 10, 20, 40]),
        (retry.QUEUE, [1, 2, 4, 8, 16, 30, 30]),
        (retry.DATABASE, [0.002 * 2**n for n in range(7)] + [0.25, 0.25]),
    ],
)
def test_pauses_double_up_to_the_longest(policy: Retry, pauses: list[float]) -> None:
    assert [policy.pause(failures, 0.5) for failures in range(len(pauses))] == pytest.approx(pauses)


def test_a_persona_that_finds_nothing_waits_by_the_same_rule() -> None:
    pace = Pace(60, 600)
    assert [pace.pause(quiet) for quiet in range(6)] == [60, 120, 240, 480, 600, 600]
    assert pace.wait(Rounds(3, 2, datetime(2026, 1, 1, tzinfo=UTC)), datetime(2026, 1, 1, tzinfo=UTC)) == 240


@given(st.integers(0, 10**9), st.floats(0, 1), st.floats(0, 1))
def test_no_pause_leaves_its_jitter(failures: int, draw: float, jitter: float) -> None:
    pause = Retry(0.1, 7, jitter=jitter).pause(failures, draw)
    assert 0.1 * (1 - jitter) - 1e-9 <= pause <= 7 * (1 + jitter) + 1e-9
    assert Retry(0.1, 7, jitter=jitter).pause(failures, 0.5) == Retry(0.1, 7).pause(failures)
    assert (
        0.1 * (1 - jitter) - 1e-9 <= Retry(0.1, 7, jitter=jitter).pause(failures) <= 7 * (1 + jitter) + 1e-9
    )


def test_a_draw_says_where_in_the_jitter() -> None:
    policy = Retry(2, 60, jitter=0.5)
    assert [policy.pause(1, draw) for draw in (0, 0.25, 0.5, 1)] == [2, 3, 4, 6]


def test_senders_in_step_are_drawn_apart() -> None:
    assert len({retry.NONCE_TAKEN.pause(0) for _ in range(20)}) > 1


def test_a_deadline_is_kept_by_not_waiting() -> None:
    policy = Retry(1, 60, total_s=10)
    assert [policy.next_pause(2, since) for since in (6.1, 6.0, 5.0)] == [None, 4, 4]
    assert policy.next_pause(2, asked_s=11) is None
    assert Retry(1, 60, jitter=1.0, total_s=10).next_pause(2, 6.0, draw=0.6) is None


def test_attempts_are_counted_with_the_first() -> None:
    assert [Retry(1, 60, attempts=3).next_pause(failures) for failures in range(4)] == [1, 2, None, None]


def test_every_policy_is_in_one_place() -> None:
    """Pauses that a user sets (`every`, `continuous`, `backoff`) are made into one where they are read."""
    made = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "fleet").rglob("*.py")
        if "Retry" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Retry"
    }
    assert made == {"fleet/retry.py", "fleet/triggers/chain/watch.py", "fleet/triggers/clock/continuous.py"}
