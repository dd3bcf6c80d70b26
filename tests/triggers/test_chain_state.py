"""Which events follow from a look, as a table and as properties; what is stored comes back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from fleet.chain.node.abi import FEEDBACK_CLEARED, FEEDBACK_SUBMITTED, REGISTERED
from fleet.chain.node.codec import Malformed
from fleet.chain.node.facets import facets_digest
from fleet.triggers.chain.state import (
    DIAMOND_CUT,
    TRAIL,
    BlockRef,
    ChainEvent,
    ChainSnapshot,
    DiamondLog,
    WatchState,
    advance,
    baseline,
)

SELECTORS = st.lists(st.binary(min_size=4, max_size=4), max_size=5, unique=True)
FACETS = st.lists(
    st.tuples(st.binary(min_size=20, max_size=20), SELECTORS), max_size=5, unique_by=lambda f: f[0]
)
HASH = "0x" + "ab" * 32
LOW = 100
AT = WatchState("0xg", 10, (BlockRef(10, HASH),), facets="f" * 64, count=3)
BLOCK = BlockRef(12, HASH)


def coded(facets: list[tuple[bytes, list[bytes]]]) -> bytes:
    return encode(["(address,bytes4[])[]"], [[("0x" + a.hex(), list(s)) for a, s in facets]])


@given(FACETS, st.randoms())
def test_order_is_nothing_and_everything_else_is_something(
    facets: list[tuple[bytes, list[bytes]]], chance: random.Random
) -> None:
    digest = facets_digest(coded(facets))
    shuffled = [(address, chance.sample(selectors, len(selectors))) for address, selectors in facets]
    chance.shuffle(shuffled)
    assert facets_digest(coded(shuffled)) == digest
    used = {selector for _, selectors in facets for selector in selectors}
    new = next(n.to_bytes(4, "big") for n in range(99) if n.to_bytes(4, "big") not in used)
    for place, (address, selectors) in enumerate(facets):
        added = [*facets[:place], (address, [*selectors, new]), *facets[place + 1 :]]
        assert facets_digest(coded(added)) != digest
        assert facets_digest(coded([*facets[:place], *facets[place + 1 :]])) != digest


@given(FACETS, st.data())
def test_damaged_answers_are_refused_or_read(
    facets: list[tuple[bytes, list[bytes]]], data: st.DataObject
) -> None:
    raw = bytearray(coded(facets))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        facets_digest(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    except Malformed:
        return


def test_an_answer_that_counts_its_parts_twice_is_refused() -> None:
    def word(number: int) -> bytes:
        return number.to_bytes(32, "big")

    pair = bytes(32) + word(64) + word(3) + bytes(96)
    aliased = word(32) + word(9) + word(288) * 9 + pair
    with pytest.raises(Malformed, match="unfolds to too much"):
        facets_digest(aliased)
    with pytest.raises(Malformed, match="Tried to read"):
        facets_digest(word(32) + word(2**40))
    with pytest.raises(Malformed, match="Padding bytes were not empty"):
        facets_digest(coded([(bytes(20), [b"abcd"])])[:-1] + b"\1")


def line(topic: str, index: int, ident: int = 0, block: int = 11) -> DiamondLog:
    return DiamondLog(topic, BlockRef(block, HASH), index, ident)


def look(
    count: int | None = 3, *lines: DiamondLog, facets: str | None = "f" * 64, balance: int | None = None
) -> ChainSnapshot:
    return ChainSnapshot(BLOCK, facets, count, balance, lines)


POST, CLEAR = line(FEEDBACK_SUBMITTED, 4), line(FEEDBACK_CLEARED, 2)


@pytest.mark.parametrize(
    ("found", "events"),
    [
        (look(), []),
        (look(5, POST), ["log-grew:11:4", "log-changed:11:4"]),
        (look(5), ["log-grew:12:count5", "log-changed:12:count5"]),  # the node keeps no events
        (look(0, CLEAR), ["log-cleared:11:2", "log-changed:11:2"]),
        (look(2), ["log-grew:12:count2", "log-cleared:12:count2", "log-changed:12:count2"]),
        (look(3, CLEAR, POST), ["log-grew:11:4", "log-cleared:11:4", "log-changed:11:4"]),  # full again
        (look(None, POST), []),
        (look(facets="e" * 64), ["facets-changed:12:eeeeeeeeeeee"]),
        (look(3, line(DIAMOND_CUT, 0), facets="e" * 64), ["facets-changed:11:eeeeeeeeeeee"]),
        (look(facets=None), []),
        (look(3, line(REGISTERED, 0, 7), line(REGISTERED, 1, 8)), ["registered:11:0", "registered:11:1"]),
        (look(3, line(REGISTERED, 0, 7), line(REGISTERED, 1, 7)), ["registered:11:0"]),
        (look(balance=100), []),
        (look(balance=99), ["sponsor-low:12:abababababab"]),
    ],
)
def test_events_of_a_look(found: ChainSnapshot, events: list[str]) -> None:
    after = advance(AT, found, LOW)
    marks = [event.mark.removesuffix("-abababab") for event in after.outbox]
    named = [f"{event.name}:{event.block}" for event in after.outbox]
    assert [":".join(pair) for pair in zip(named, marks, strict=True)] == events
    again = advance(replace(after, outbox=()), replace(found, lines=()), LOW)
    assert again.outbox == ()


def test_what_could_not_be_read_changes_nothing() -> None:
    after = advance(AT, ChainSnapshot(BLOCK), LOW)
    assert after == AT
    assert advance(AT, ChainSnapshot(BLOCK, lines=()), LOW) == replace(
        AT, cursor=12, trail=(*AT.trail, BLOCK)
    )


def test_the_first_look_is_no_news_but_poverty_is() -> None:
    first = baseline("0xg", look(9, balance=5), LOW)
    assert [event.name for event in first.outbox] == ["sponsor-low"]
    assert (first.cursor, first.count, first.facets, first.trail) == (12, 9, "f" * 64, (BLOCK,))


def test_poverty_is_told_once_until_it_ends() -> None:
    seen, told = AT, []
    for balance in (99, 50, None, 99, 100, 99):
        seen = advance(seen, look(balance=balance), LOW)
        told.append(len(seen.outbox))
    assert told == [1, 1, 1, 1, 1, 2]


def test_a_reorg_goes_back_to_the_last_common_block() -> None:
    trail = tuple(BlockRef(number, f"0x{number}") for number in (2, 5, 9))
    seen = replace(AT, trail=trail, cursor=9, ids=((4, 1), (9, 2)))
    back = seen.rewind([BlockRef(2, "0x2"), BlockRef(5, "0x5"), BlockRef(9, "0xother")])
    assert (back.cursor, back.trail, back.rewound, back.ids) == (5, trail[:2], True, seen.ids)
    lost = replace(seen, trail=(BlockRef(5000, "0x1"),), cursor=5000).rewind([BlockRef(5000, "0x2")])
    assert (lost.cursor, lost.trail) == (4000, ())


def test_after_a_reorg_an_id_does_not_fire_again_and_a_lost_entry_is_no_clearing() -> None:
    seen = replace(AT, rewound=True, ids=((11, 7),))
    after = advance(seen, look(2, line(REGISTERED, 5, 7, block=12), line(REGISTERED, 6, 8, block=12)), LOW)
    assert [event.name for event in after.outbox] == ["registered", "log-changed"]
    assert after.outbox[0].mark == "6-abababab"
    assert not after.rewound
    same_count = advance(seen, look(3, POST), LOW)
    assert [event.name for event in same_count.outbox] == ["log-changed"]


@given(st.lists(st.integers(1, 50), max_size=400))
def test_the_trail_is_short_ascending_and_reaches_back(gaps: list[int]) -> None:
    seen, number = AT, 10
    for gap in gaps:
        number += gap
        seen = advance(seen, ChainSnapshot(BlockRef(number, HASH), lines=()), LOW)
    numbers = [block.number for block in seen.trail]
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= TRAIL
    assert (numbers[0], numbers[-1]) == (10, number)


def test_what_is_stored_comes_back_and_nonsense_does_not() -> None:
    seen = replace(AT, ids=((1, 2**200),), outbox=(ChainEvent("registered", 1, "0"),), low=True)
    assert WatchState.loads(seen.dumps()) == seen
    for text in (
        "",
        "[]",
        "{}",
        "null",
        '{"genesis": 1}',
        seen.dumps()[:-1],
        seen.dumps().replace("mark", "m"),
    ):
        with pytest.raises(ValueError, match=r".*"):
            WatchState.loads(text)
