"""The judge of the forty runs: what it takes for seen, and that forty runs meet everything."""

from __future__ import annotations

from itertools import chain
from typing import Any

from fleet.devnet.defects import DEFECTS
from tests.platforms.reckoned import Row, judged, seen
from tests.platforms.skies import NODE, WORLDS, drawn

PANIC = {"tool": "qa_compile", "args": {"source": "// größe"}, "result": {"outcome": "panic"}}
CONFIRMED = {
    "tool": "qa_call",
    "args": {"message": "set greeting hi"},
    "result": {"reply": "the greeting is saved"},
}
ABSENT = {
    "tool": "qa_call",
    "args": {"message": "show my greeting"},
    "result": {"reply": "no greeting here"},
}


def by(probe: str, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [step | {"probe": probe} for step in steps]


def test_one_answer_is_seen_whoever_asked_and_several_only_by_one_probe() -> None:
    assert seen(DEFECTS, by("explore", PANIC)) == {"compiler-panic"}
    assert seen(DEFECTS, by("x", CONFIRMED, ABSENT)) == {"lying-success"}
    assert seen(DEFECTS, by("x", CONFIRMED) + by("y", ABSENT)) == set()
    assert seen(DEFECTS, by("explore", CONFIRMED, ABSENT)) == set()
    assert seen([one for one in DEFECTS if one.id != "compiler-panic"], by("x", PANIC)) == set()


def test_what_was_seen_is_on_the_log_or_in_a_view_and_what_is_posted_is_planted() -> None:
    def rows(state: str, *shown: str) -> list[Row]:
        return [Row("aa", state, "a title", frozenset(shown))]

    viewed, panic = frozenset({"aa"}), {"compiler-panic"}
    lost = ["lost: compiler-panic was seen"]
    for state in ("posted", "repeated", "posting", "confirmed"):
        assert judged(rows(state, "compiler-panic"), frozenset(), panic) == []
        assert judged(rows(state), frozenset(), set()) == [f"false: a title ({state})"]
    for state in ("raised", "unverified", "flaky", "dropped"):
        assert judged(rows(state, "compiler-panic"), viewed, panic) == []
        assert judged(rows(state, "compiler-panic"), frozenset(), panic) == lost
        assert judged(rows(state), frozenset(), set()) == []
    assert judged(rows("posted", "missing-entry"), viewed, panic) == lost
    assert judged([], viewed, panic) == lost


def test_the_skies_of_a_seed_are_always_the_same_and_mix_everything() -> None:
    skies = [drawn(number, 7) for number in range(40)]
    assert skies == [drawn(number, 7) for number in range(40)] != [drawn(number, 8) for number in range(40)]
    assert [sky.world for sky in skies[:4]] == list(WORLDS)
    assert set(chain.from_iterable(sky.node for sky in skies)) == set(NODE)
    for name in ("bad", "reset", "limited", "interim", "blocks", "ban_s"):
        assert any(getattr(sky.web, name) for sky in skies)
    assert {bool(sky.planted) for sky in skies if sky.world != "planted"} == {False}
