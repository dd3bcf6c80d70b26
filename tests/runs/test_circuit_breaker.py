"""What fails again and again is left alone: by what it points at and why, and never for ever."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.runs.call.tool_groups import RETRY_S, STRIKES, CircuitBreaker, target_of
from fleet.runs.context import PATIENCE_S
from tests.triggers.conftest import FakeClock

DEAD = {"ok": False, "error_class": "unreachable"}
LATE = {"ok": False, "error_class": "timeout"}
GONE = {"ok": False, "error_class": "http", "status": 503}
WELL = {"ok": True, "error_class": ""}
SITE, PROXY = {"url": "http://site/a"}, {"url": "http://proxy:8080/b"}


@pytest.mark.parametrize(
    ("tool", "args", "target"),
    [
        ("qa_fetch", SITE, "web site"),
        ("qa_fetch", PROXY, "web proxy:8080"),
        ("qa_compile", {"source": "x"}, "compiler source"),
        ("qa_compile", {"module_hex": "00"}, "compiler loader"),
        ("qa_call", {"target": "a"}, "agent"),
        ("qa_chain", {"function": "owner"}, "chain"),
    ],
)
def test_what_a_call_points_at(tool: str, args: dict[str, Any], target: str) -> None:
    assert target_of(tool, args) == target


def test_one_host_that_is_dead_does_not_stop_calls_to_another() -> None:
    breaker = CircuitBreaker(FakeClock())
    assert [breaker.count("qa_fetch", SITE, DEAD) for _ in range(STRIKES)] == ["", "", "web site"]
    assert not breaker.permits("qa_fetch", SITE)
    assert breaker.permits("qa_fetch", PROXY)
    assert breaker.offers("qa_fetch")


def test_a_missing_loader_does_not_stop_the_compiler() -> None:
    breaker = CircuitBreaker(FakeClock())
    for _ in range(STRIKES):
        breaker.count("qa_compile", {"module_hex": "00"}, {"error_class": "cannot_start"})
    assert not breaker.permits("qa_compile", {"module_hex": "00"})
    assert breaker.permits("qa_compile", {"source": "x"})
    assert breaker.offers("qa_compile")


def test_a_group_with_one_target_is_no_longer_on_offer() -> None:
    breaker = CircuitBreaker(FakeClock())
    for _ in range(STRIKES):
        breaker.count("qa_chain", {}, DEAD)
    assert not breaker.offers("qa_chain")
    assert breaker.offers("qa_call")


def test_causes_are_counted_apart_and_an_answer_forgets_them_all() -> None:
    breaker = CircuitBreaker(FakeClock())
    for result in (DEAD, DEAD, LATE, LATE):
        assert breaker.count("qa_fetch", SITE, result) == ""
    breaker.count("qa_fetch", SITE, WELL)
    assert [breaker.count("qa_fetch", SITE, one) for one in (DEAD, LATE, DEAD, LATE)] == [""] * 4
    assert breaker.count("qa_fetch", SITE, DEAD) == "web site"


def test_a_gateways_word_is_a_failure_of_what_stands_behind_it() -> None:
    breaker = CircuitBreaker(FakeClock())
    assert [breaker.count("qa_fetch", SITE, GONE) for _ in range(STRIKES)] == ["", "", "web site"]


def test_what_was_withdrawn_is_tried_again_after_a_while_and_comes_back() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(STRIKES):
        breaker.count("qa_fetch", SITE, DEAD)
    clock.advance(RETRY_S - 1)
    assert not breaker.permits("qa_fetch", SITE)
    clock.advance(1)
    assert breaker.permits("qa_fetch", SITE)
    breaker.count("qa_fetch", SITE, DEAD)  # the pause doubles
    clock.advance(RETRY_S)
    assert not breaker.permits("qa_fetch", SITE)
    clock.advance(RETRY_S)
    assert breaker.permits("qa_fetch", SITE)
    breaker.count("qa_fetch", SITE, WELL)
    assert (breaker.withdrawn, breaker.permits("qa_fetch", SITE)) == ((), True)


def test_patience_is_counted_from_the_first_failure_and_permits_one_call_each_time() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    for _ in range(STRIKES):
        breaker.count("qa_fetch", SITE, DEAD)
    assert breaker.waits("qa_fetch", SITE)
    assert [breaker.permits("qa_fetch", SITE) for _ in range(2)] == [True, False]
    clock.advance(PATIENCE_S)
    assert not breaker.waits("qa_fetch", SITE)
