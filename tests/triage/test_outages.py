"""An outage on the worklist: an item while it lasts, and off the list when the log or the journal says so."""

from __future__ import annotations

from fleet.findings.envelope import Envelope, read, write
from fleet.findings.kinds import kind_of, kind_titled
from fleet.findings.outage import WORD, OutageEnd, fingerprint_of, is_over, is_titled, shown
from fleet.findings.repro import ReproCall
from fleet.store.rows import MirroredEntry
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.outages import due
from fleet.triage.run import decide
from tests.triage.triage_log import EV, FLEET, HUMAN, START, TRUSTED, inputs

ONE, TWO = (
    fingerprint_of("p", ["site"], since) for since in ("2026-11-22T12:00:00Z", "2026-11-22T13:00:00Z")
)


def outage(fp: str, run: str = "r1") -> str:
    repro = (ReproCall("qa_fetch", {"url": "{site}/"}),)
    title = f"{WORD}: site does not answer: connection refused, 4 looks over 7 s"
    made = Envelope(
        source="qa-smoke",
        sev="high",
        surface="ux",
        run=run,
        fp=fp,
        rate=(3, 3),
        ev=EV,
        title=title,
        repro=repro,
    )
    return write(made)


def end(fp: str) -> OutageEnd:
    return OutageEnd(
        fp=fp,
        targets=("site and faces",),
        since="2026-11-22T12:00:00Z",
        until="2026-11-22T12:09:00Z",
        seconds=540,
        why="site and faces answered",
    )


def log(*texts: str, sender: str = FLEET) -> list[MirroredEntry]:
    return [
        MirroredEntry(epoch=0, index=index, sender=sender, timestamp=START + index, text=text)
        for index, text in enumerate(texts)
    ]


def listed(entries: list[MirroredEntry], *ended: OutageEnd) -> list[str]:
    return [item.fingerprint for item in decide(entries, TRUSTED, inputs(ended=ended)).items if item.rank]


def missing(entries: list[MirroredEntry], *ended: OutageEnd) -> tuple[str, ...]:
    index = TriageIndex(TRUSTED)
    index.add(entries)
    return due(index, ended)


def test_two_outages_with_one_repro_are_two_items() -> None:
    items = decide(log(outage(ONE), outage(TWO), outage(TWO, "r2")), TRUSTED, inputs()).items
    assert {(item.fingerprint, item.count, item.proof) for item in items} == {
        (ONE, 1, "confirmed"),
        (TWO, 2, "confirmed"),
    }


def test_one_that_is_over_leaves_the_list_by_the_journal_and_then_by_the_log() -> None:
    entries = log(outage(ONE), outage(TWO))
    assert listed(entries, end(ONE)) == [TWO]
    (text,) = missing(entries, end(ONE))
    assert is_over(read(text))
    assert "site, faces, since 2026-11-22T12:00:00Z until 2026-11-22T12:09:00Z, 9 min" in text
    after = log(outage(ONE), outage(TWO), text)
    assert listed(after) == [TWO]
    assert missing(after, end(ONE)) == ()


def test_the_end_of_what_the_log_never_heard_of_is_not_posted() -> None:
    assert missing(log(outage(TWO)), end(ONE)) == ()


def test_a_stranger_ends_no_outage_and_joins_none() -> None:
    (text,) = missing(log(outage(ONE)), end(ONE))
    forged = log(outage(ONE), *[entry.text for entry in log(text)])
    forged[1] = MirroredEntry(epoch=0, index=1, sender=HUMAN, timestamp=START + 1, text=text)
    items = decide(forged, TRUSTED, inputs()).items
    assert (items[0].fingerprint, items[0].count) == (ONE, 1)
    assert missing(log(outage(ONE), sender=HUMAN), end(ONE)) == ()


def test_people_read_a_kind_and_a_place_and_the_log_keeps_its_word() -> None:
    (item,) = decide(log(outage(ONE)), TRUSTED, inputs()).items
    logged, words = read(outage(ONE)).title, "outage of site: connection refused, 4 looks over 7 s"
    assert item.title == f"Platform does not answer: {words}"
    since = f"{logged}, since 2026-11-22T12:00:00Z; node answers"
    assert shown(since) == f"{item.title.removesuffix(' over 7 s')}; node answers"
    assert kind_titled(item.title) is kind_of(WORD)


def test_what_a_probe_found_of_this_kind_is_no_outage() -> None:
    titles = ("Platform does not answer: GET /a: 0", "Page became slower: GET /a")
    assert [(shown(one), is_titled(one)) for one in titles] == [(one, False) for one in titles]
    logged = read(outage(ONE)).title
    assert is_titled(logged)
    assert is_titled(shown(logged))
