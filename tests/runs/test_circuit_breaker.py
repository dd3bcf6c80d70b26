"""What fails again and again is left alone: by what it points at and why, and never for ever."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.retry import WITHDRAWN_TARGET
from fleet.runs.call.targets import STRIKES, CircuitBreaker, target_of
from fleet.runs.context import PATIENCE_S
from tests.triggers.conftest import FakeClock

DEAD = {"ok": False, "error_class": "unreachable"}
LATE = {"ok": False, "error_class": "timeout"}
GONE = {"ok": False, "error_class": "http", "status": 503}
WELL = {"ok": True, "error_class": ""}
SITE, PROXY = {"url": "http://site/a"}, {"url": "http://proxy:8080/b"}


def down(breaker: CircuitBreaker, args: dict[str, Any] = SITE, result: dict[str, Any] = DEAD) -> str:
    """A host fails, and so does its control; the target that this withdraws."""
    said = [breaker.count("qa_fetch", args, result) for _ in range(STRIKES)]
    assert said == [""] * STRIKES
    assert breaker.is_suspect("qa_fetch", args)
    return breaker.control("qa_fetch", args, answers=False)


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
    assert down(breaker) == "web site"
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
    assert not breaker.is_suspect("qa_fetch", SITE)
    assert breaker.count("qa_fetch", SITE, DEAD) == ""
    assert breaker.control("qa_fetch", SITE, answers=False) == "web site"


def test_a_gateways_word_is_a_failure_of_what_stands_behind_it() -> None:
    breaker = CircuitBreaker(FakeClock())
    assert down(breaker, result=GONE) == "web site"


def test_what_was_withdrawn_is_tried_again_after_a_while_and_comes_back() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    assert down(breaker) == "web site"
    clock.advance(WITHDRAWN_TARGET.first_s - 1)
    assert not breaker.permits("qa_fetch", SITE)
    clock.advance(1)
    assert breaker.permits("qa_fetch", SITE)
    breaker.count("qa_fetch", SITE, DEAD)  # the pause doubles
    clock.advance(WITHDRAWN_TARGET.first_s)
    assert not breaker.permits("qa_fetch", SITE)
    clock.advance(WITHDRAWN_TARGET.first_s)
    assert breaker.permits("qa_fetch", SITE)
    breaker.count("qa_fetch", SITE, WELL)
    assert breaker.permits("qa_fetch", SITE)
    assert not breaker.withdrawn


def test_patience_is_counted_from_the_first_failure_and_permits_one_call_each_time() -> None:
    clock = FakeClock()
    breaker = CircuitBreaker(clock)
    assert down(breaker) == "web site"
    assert breaker.waits("qa_fetch", SITE)
    assert [breaker.permits("qa_fetch", SITE) for _ in range(2)] == [True, False]
    clock.advance(PATIENCE_S)
    assert not breaker.waits("qa_fetch", SITE)


PAGES = [{"url": f"http://site/{name}"} for name in "abcdef"]
RATE = {"ok": False, "error_class": "http", "status": 429}


@pytest.mark.parametrize("trouble", [DEAD, LATE, GONE])
def test_one_path_that_fails_does_not_blind_its_host(trouble: dict[str, Any]) -> None:
    """Asked alone, and among others that answer."""
    breaker = CircuitBreaker(FakeClock())
    assert [breaker.count("qa_fetch", SITE, trouble) for _ in range(STRIKES)] == [""] * STRIKES
    assert breaker.control("qa_fetch", SITE, answers=True) == "web site/a"
    assert not breaker.permits("qa_fetch", SITE | {"url": "http://site/a?again=1"})
    assert all(breaker.permits("qa_fetch", page) for page in PAGES[1:])
    assert breaker.withdrawn == ("web site/a",)

    breaker = CircuitBreaker(FakeClock())
    said = []
    for page in PAGES[1 : STRIKES + 1]:
        said.append(breaker.count("qa_fetch", SITE, trouble))
        breaker.count("qa_fetch", page, WELL)
    assert said == ["", "", "web site/a"]
    assert not breaker.is_suspect("qa_fetch", SITE)  # another path answered: that is its control
    assert all(breaker.permits("qa_fetch", page) for page in PAGES[1:])


def test_a_host_whose_paths_all_fail_once_is_withdrawn_by_its_control() -> None:
    breaker = CircuitBreaker(FakeClock())
    assert [breaker.count("qa_fetch", page, DEAD) for page in PAGES[:STRIKES]] == [""] * STRIKES
    assert breaker.is_suspect("qa_fetch", PAGES[-1])
    assert breaker.control("qa_fetch", PAGES[0], answers=False) == "web site"
    assert not any(breaker.permits("qa_fetch", page) for page in PAGES)


def test_several_dead_paths_of_a_living_host_are_withdrawn_one_by_one() -> None:
    breaker = CircuitBreaker(FakeClock())
    for page in PAGES[:2]:
        for _ in range(STRIKES):
            breaker.count("qa_fetch", page, LATE)
        breaker.control("qa_fetch", page, answers=True)
    assert breaker.withdrawn == ("web site/a", "web site/b")
    breaker.count("qa_fetch", PAGES[0], WELL)
    assert not breaker.has_withdrawn("qa_fetch", PAGES[0])
    assert breaker.has_withdrawn("qa_fetch", PAGES[1])


def test_a_limit_at_one_path_withdraws_nothing() -> None:
    breaker = CircuitBreaker(FakeClock())
    assert [breaker.count("qa_fetch", SITE, RATE) for _ in range(2 * STRIKES)] == [""] * 2 * STRIKES
    assert (breaker.withdrawn, breaker.is_suspect("qa_fetch", SITE)) == ((), False)
