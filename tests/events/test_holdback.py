"""A secret is masked live too, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.clock import SystemClock
from fleet.events.model import Event, MessageDelta, MessageSaid, MessageStarted
from fleet.events.stream import CAP, MOST, Holdback, Stream
from fleet.findings.redact import Redactor
from tests.events.samples import FOOTER, Kept, ends, piece, starts, turn

CANARY = "Canary-0123456789-of-a-model"
OTHER = b"\x8f\x11" * 16
REDACTOR = Redactor([CANARY, OTHER])
TEXT = f"my key is {CANARY}, and in hex {OTHER.hex()}; that is all"


def told(pieces: Sequence[str], redactor: Redactor = REDACTOR) -> str:
    """What a live reader can put together of a message that is said in these pieces."""
    seen: list[Event] = []
    sink = Kept()
    line = Stream(
        "r1",
        clock=SystemClock(),
        sink=sink,
        readers=(seen.append,),
        mask=redactor.text,
        reach=redactor.reach,
    )
    line.emit(starts(0, text=pieces[0]))
    for one in pieces[1:]:
        line.emit(piece(0, one))
    line.emit(ends(0))
    assert [event.type for event in seen[-2:]] == ["message.said", "message.done"]
    return "".join(event.text for event in seen if isinstance(event, MessageStarted | MessageDelta))


@pytest.mark.parametrize("spelling", [CANARY, CANARY.upper(), CANARY.encode().hex(), OTHER.hex()])
def test_a_secret_that_is_split_anywhere_is_masked(spelling: str) -> None:
    for text in (f"my key is {spelling}, that is all", spelling, f"{spelling}{spelling}"):
        for at in range(len(text) + 1):
            assert told([text[:at], text[at:]]) == REDACTOR.text(text), at
        assert told(list(text)) == REDACTOR.text(text)


@settings(max_examples=200)
@given(st.lists(st.integers(0, len(TEXT)), max_size=12).map(sorted))
def test_however_it_is_cut_the_pieces_read_like_the_mask_of_the_whole(cuts: list[int]) -> None:
    places = [0, *cuts, len(TEXT)]
    assert told([TEXT[a:b] for a, b in pairwise(places)]) == REDACTOR.text(TEXT)


def test_no_part_of_a_secret_is_told_before_the_message_ends() -> None:
    held = Holdback(REDACTOR.text, REDACTOR.reach)
    said = [held.add(one) for one in f"{'x' * 400} {CANARY[:-1]}"]
    assert set("".join(said)) == {"x"}
    assert held.add(CANARY[-1] + "." * (REDACTOR.reach + 1)).lstrip("x") == " [redacted:secret]."


def test_what_is_invisible_between_its_letters_changes_nothing() -> None:
    hidden = "\u200b" * (REDACTOR.reach + 1)
    assert (
        told([f"it is {CANARY[:9]}{hidden}", f"{hidden}{CANARY[9:]}."]) == f"it is {REDACTOR.text(CANARY)}."
    )


def test_a_secret_of_no_one_that_looks_like_one_is_masked_when_it_is_split() -> None:
    text = "the key is sk-somebody-elses-key, is it"
    for at in range(len(text)):
        assert told([text[:at], text[at:]]) == REDACTOR.text(text)


def test_a_secret_without_an_end_is_not_told_and_nothing_after_it() -> None:
    held = Holdback(REDACTOR.text, REDACTOR.reach)
    said = held.add("go sk-") + "".join(held.add("a" * 99) for _ in range(MOST // 90)) + held.add(" so")
    assert "aaa" not in said + held.rest()
    assert len(repr(held)) < 200


def test_a_message_that_is_cut_off_is_recorded_and_its_held_end_is_not_told_twice() -> None:
    seen: list[Event] = []
    line = Stream("r1", clock=SystemClock(), sink=Kept(), readers=(seen.append,), reach=5)
    for event in (starts(0, text="0123456789"), turn(1), starts(0, text="ab"), ends(0), FOOTER):
        line.emit(event)
    live = [event.text for event in seen if isinstance(event, MessageStarted | MessageDelta)]
    assert live == ["01234", "", "ab"]
    assert [event.text for event in seen if isinstance(event, MessageSaid)] == ["0123456789", "ab"]


def test_without_a_secret_nothing_waits() -> None:
    assert Redactor().reach == 0
    assert Holdback(str, 0).add("all of it") == "all of it"


@pytest.mark.parametrize("at", range(1, len(CANARY)))
def test_a_secret_across_the_end_of_what_is_kept_leaves_no_part_of_it(at: int) -> None:
    """It is cut before it is whole, so no mask knows it: what might be the beginning of one goes as well."""
    text = "x" * (CAP - at) + CANARY + "y" * 40
    for whole in (False, True):
        sink = Kept()
        line = Stream("r1", clock=SystemClock(), sink=sink, mask=REDACTOR.text, reach=REDACTOR.reach)
        events: list[Event] = (
            [MessageSaid(index=0, text=text)] if whole else [starts(0), piece(0, text), ends(0)]
        )
        for event in events:
            line.emit(event)
        (said,) = [event for event in sink.events if isinstance(event, MessageSaid)]
        kept = REDACTOR.text(text[:CAP])[: -REDACTOR.reach]  # a piece of it is masked, another length
        assert set(kept) == {"x"}
        assert said.text == f"{kept}…[cut {len(text) - CAP + REDACTOR.reach} characters]"
