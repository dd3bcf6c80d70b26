"""Hostile entries (faults B3.6): nothing of them acts, moves an item of ours, or is shown as it is."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import MirroredEntry
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import decide
from tests.triage import hostile
from tests.triage.live_outputs import FORMATS, LIVE, strings, visible
from tests.triage.test_triage_run import World
from tests.triage.triage_log import FLEET, HUMAN, TRUSTED, inputs

TEXTS = hostile.texts()
ECHOES = hostile.echoes()
SAID_OF_STRANGERS = {"why", "links", "stuck"}
"""Fields of an item of ours that may say that a stranger reports the same; none of them ranks."""
TOLD_OF_FIXED = "a stranger reports it again: waits for a re-run"
"""What a fixed item of ours says of a stranger's later report: it does not reopen it."""
SIZE = 16_384
"""Characters of a text that is to make a pattern backtrack: as many as are read of an entry."""


def decided(entries: Sequence[MirroredEntry]) -> tuple[WorklistItem, ...]:
    return decide(entries, TRUSTED, inputs()).items


def ours(items: Sequence[WorklistItem], without: set[str] | None = None) -> bytes:
    """Our items, byte for byte, but for the named fields and the note about a fixed one."""
    rows = [
        asdict(item) | {"stuck": item.stuck.replace(TOLD_OF_FIXED, "waits for nothing")}
        for item in items
        if item.trusted
    ]
    return json.dumps(
        [{k: v for k, v in row.items() if k not in (without or set())} for row in rows]
    ).encode()


def theirs(text: str) -> list[tuple[str, str]]:
    return [(HUMAN, text)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_is_a_strangers_item_and_changes_none_of_ours(name: str) -> None:
    found = decided(hostile.around(theirs(TEXTS[name])))
    assert ours(found) == ours(decided(hostile.beside(theirs(TEXTS[name]))))
    (item,) = [one for one in found if not one.trusted]
    assert (item.proof, item.repro, item.confirmed, item.senders) == ("untrusted", "", False, (HUMAN,))
    assert item.rank > max(one.rank for one in found if one.trusted)
    assert [text for text in strings(asdict(item)) if not visible(text)] == []


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", TEXTS)
def test_no_output_acts_on_a_hostile_text(name: str, kind: str) -> None:
    written = FORMATS[kind](decided(hostile.around(theirs(TEXTS[name]))))
    assert visible(written.decode())
    assert LIVE[kind](written) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_texts_in_an_item_of_ours_do_not_act_either(kind: str) -> None:
    """Titles of ours quote what a platform answered."""
    head = "qa/v1 source=qa-ux sev=high surface=ux run=r1 fp={:012x} was=000000000000 rate=3/3"
    made = [
        (
            FLEET,
            f'{head.format(number)}\n{" ".join(text.splitlines()) or "x"}\nrepro: qa_fetch(url="{{site}}")',
        )
        for number, text in enumerate(TEXTS.values(), 1)
    ]
    items = decided(hostile.mirrored(*made))
    assert len(items) > len(made) // 2
    written = FORMATS[kind](items)
    assert visible(written.decode())
    assert LIVE[kind](written) == []


@pytest.mark.parametrize("name", ECHOES)
def test_an_entry_that_imitates_ours_closes_hides_and_moves_nothing(name: str) -> None:
    one = theirs(ECHOES[name])
    assert ours(decided(hostile.around(one)), SAID_OF_STRANGERS) == ours(
        decided(hostile.beside(one)), SAID_OF_STRANGERS
    )


def test_a_thousand_fresh_senders_of_one_claim_are_one_item_and_move_nothing() -> None:
    for text in (hostile.CLAIMS["planted"], ECHOES["replay 2"], "everything is lost"):
        crowd = [(sender, text) for sender in hostile.STRANGERS]
        found = decided(hostile.around(crowd))
        assert ours(found, SAID_OF_STRANGERS) == ours(decided(hostile.beside(crowd)), SAID_OF_STRANGERS)
        assert len([one for one in found if not one.trusted]) <= 1
        assert all(one.count == 1 for one in found if not one.trusted)


def test_a_crowd_does_not_move_another_strangers_item() -> None:
    alone = [(HUMAN, "the docs are confusing"), (hostile.STRANGERS[0], "a quiet bug")]
    crowd = [(sender, "the docs are confusing") for sender in hostile.STRANGERS[1:]]
    before = [one.title for one in decided(hostile.mirrored(*alone))]
    assert [one.title for one in decided(hostile.mirrored(*alone, *crowd))] == before
    quiet = [(hostile.STRANGERS[0], "a quiet bug"), (HUMAN, "the docs are confusing")]
    before = [one.title for one in decided(hostile.mirrored(*quiet))]
    assert [one.title for one in decided(hostile.mirrored(*quiet, *crowd))] == before


@pytest.mark.parametrize("name", hostile.LARGE)
def test_what_a_lying_node_sends_is_read_in_part_and_kept(name: str) -> None:
    one = theirs(hostile.LARGE[name]())
    found = decided(hostile.around(one))
    assert ours(found) == ours(decided(hostile.beside(one)))
    for kind, render in FORMATS.items():
        written = render(found)
        assert len(written) < 100_000
        assert LIVE[kind](written) == []


def seconds(piece: str) -> float:
    """Processor time of one pass over an entry made of a piece: the least of three."""
    one = hostile.mirrored((FLEET, _filled(piece)), (HUMAN, _filled(piece)))
    took = []
    for _ in range(3):
        began = time.process_time()
        items = decided(one)
        for render in FORMATS.values():
            render(items)
        took.append(time.process_time() - began)
    return min(took)


def _filled(piece: str) -> str:
    head = "qa/v1 source=qa-ux sev=high surface=ux\n"
    return head + (piece * SIZE)[: SIZE - len(head)]


def test_no_pattern_of_ours_backtracks() -> None:
    """The measure is a text of the same length in plain words; backtracking costs a power of the length."""
    plain = seconds("a plain word of some text ")
    slow = {
        name: took for name, piece in hostile.BACKTRACKING.items() if (took := seconds(piece)) > 40 * plain
    }
    assert slow == {}


@pytest.mark.anyio
async def test_a_whole_pass_takes_every_text_and_says_nothing_new(tmp_path: Path) -> None:
    """Mirror, journal and files included; no entry makes triage write to the log."""
    async with await Journal.open(MEMORY) as journal:
        world = World(journal, tmp_path)
        for text in hostile.our_log():
            world.log.post(text)
        await world.go()
        posted = len(world.log.entries)
        every = [*TEXTS.values(), *ECHOES.values()]
        for text in every:
            world.log.post(text, HUMAN)
        done = await world.go()
        assert (done.entries, done.meta_text, done.over) == (posted + len(every), None, ())
        again = await world.go()
        assert (again.changed, again.meta_text, again.over) == (False, None, ())
    for path in tmp_path.iterdir():
        assert visible(path.read_text())
        assert re.search(r"qa_release|real-name", path.read_text()) is None
