"""The explorer of agents against one with words of its own: each defect is found, its twin is silent."""

from __future__ import annotations

import pytest

from fleet.devnet.surfaces.herbarium import DEFECTS, DIALECTS, PRICE, Dialect, Herbarium
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from sandbox.agents.call_request import spoken
from tests.drivers.herbarium_visits import explored

PROMISED = {"call_price_wei": PRICE}
WORDS = (("message", ""), ("fill", 0), ("unit", ""))


@pytest.mark.parametrize("words", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_is_found_by_its_own_oracle_alone(defect: str, words: Dialect) -> None:
    promised = {} if defect == "uneven-price" else PROMISED
    found, asked = explored(Herbarium(defect, words), calls=170, promised=promised)
    assert set(found) == {defect}, (len(asked), {key: one.sighting.title for key, one in found.items()})


@pytest.mark.parametrize("words", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("chatty", [False, True])
def test_the_clean_one_is_silent_whatever_is_asked(chatty: bool, words: Dialect) -> None:
    found, asked = explored(Herbarium(words=words, chatty=chatty), promised=PROMISED)
    assert ({key: one.sighting.title for key, one in found.items()}, len(asked) > 150) == ({}, True)


@pytest.mark.parametrize(
    ("too_long", "longest", "dear"),
    [
        ("a message has at most 2300 characters", 2300, 2299),
        ("2300 is the limit, 2.0.4100", 2300, 2299),
        ("too long", 2600, 1500),
        ("at most 90000 bytes a minute", 1300, 1200),
    ],
)
def test_the_longest_message_that_is_served_is_asked(too_long: str, longest: int, dear: int) -> None:
    platform = Herbarium(longest=longest, too_long=too_long, dear=dear)
    found, asked = explored(platform, promised=PROMISED)
    lengths = {len(spoken(**{key: step.args.get(key, default) for key, default in WORDS})) for step in asked}
    assert (set(found), max(size for size in lengths if size <= longest) > dear) == ({"overcharged"}, True)


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_is_found_is_shown_again_by_its_own_calls(defect: str) -> None:
    found, _ = explored(Herbarium(defect), calls=170, promised={} if defect == "uneven-price" else PROMISED)
    again, shown = Herbarium(defect), found[defect]
    promised = {} if defect == "uneven-price" else PROMISED
    for _ in range(3):  # as a proof does: the same calls, on what the looks before left behind
        seen = tuple(Exchange(one.tool, one.args, again.answer(one.args)) for one in shown.calls)
        assert shown.sighting.signature in {
            one.sighting.signature for one in judge(seen, Facts(promised=promised))
        }
    assert len(shown.calls) <= 5
