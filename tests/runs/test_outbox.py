"""A finding stands on the log once, whatever comes between the outbox and the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.chain.keys import fresh
from fleet.chain.log.own_entries import OwnEntries, OwnEntry
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.codec import Entry
from fleet.chain.ports import FeedbackPort, PostedEntry
from fleet.chain.signing.tx import UnsignedTx, sign
from fleet.clock import SystemClock
from fleet.config import FleetConfig
from fleet.config.platform import PostSection
from fleet.errors import Unreachable
from fleet.findings.reader import read
from fleet.findings.records import ItemRecord, write_record
from fleet.gate.budget import LOOK_ONLY, Ledger
from fleet.runs.context import FleetContext, RunContext
from fleet.runs.settlement.outbox import report_all, report_proven
from fleet.store.journal import MEMORY, Journal
from fleet.store.rows import FindingRow, NewRun

pytestmark = pytest.mark.anyio

FP = "0123456789ab"
HEADER = f"qa/v1 source=qa-a sev=low surface=ux run=old fp={FP} rate=3/3\na title\n"
US = "0x" + "11" * 20
NOTHING = cast(Any, SimpleNamespace(emit=lambda event: None))


class Log:
    """The log as a list; `range` fails as often as `silent` says."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.silent = 0
        self.floor = 0
        self.ledger: Ledger | None = None
        """What pays for a post."""

    def seen(self, block: int) -> None:
        self.floor = max(self.floor, block)

    async def count(self) -> int:
        return len(self.texts)

    async def range(self, start: int, count: int) -> list[Entry]:
        if self.silent:
            self.silent -= 1
            raise Unreachable("HTTP 429")
        return [Entry(US, 1, text) for text in self.texts[start : start + count]]

    async def find(self, text: str, sender: str) -> int | None:
        return self.texts.index(text) if text in self.texts else None

    async def post(self, text: str, *, run: str, charge: str) -> PostedEntry:
        if self.ledger is not None:
            await self.ledger.spend("reports")
        self.texts.append(text)
        return PostedEntry(tx="0x1", index=len(self.texts) - 1)


class Rig:
    """Runs that confirmed one and the same finding."""

    def __init__(self, journal: Journal, hold: tuple[Any, ...] = ()) -> None:
        self.journal, self.log = journal, Log()

        parts = SimpleNamespace(
            platform=SimpleNamespace(name="devnet", chain=None, post=PostSection(hold=hold)),
            trial=False,
            journal=journal,
            chain=SimpleNamespace(log=self.log, identity=US, own=OwnEntries(frozenset({US})), signer=None),
            clock=SystemClock(),
            config=FleetConfig(),
        )
        self.world = cast(FleetContext, parts)

    async def confirmed(self, run: str, **data: Any) -> None:
        await self.journal.trigger(
            NewRun(run_id=run, persona="qa-a", key=run, platform="devnet", trigger="", rung="", budget={})
        )
        row = FindingRow(run_id=run, fingerprint=FP, state="confirmed", envelope=f"{FP} by {run}", data=data)
        await self.journal.add_finding(row)

    async def report_all(self, run: str) -> None:
        async def yes(unit: str, kept: int = 0) -> bool:
            return True

        stream = SimpleNamespace(emit=_nothing)
        parts = SimpleNamespace(fleet=self.world, run=run, stream=stream, can_post=yes, has_paid=yes)
        await report_all(cast(RunContext, parts))

    def severities(self) -> list[str]:
        """In the order of the log."""
        return [read(text).severity for text in self.log.texts]

    async def report(self, run: str) -> str:
        await self.report_all(run)
        (row,) = await self.journal.findings(run)
        return row.state


def _nothing(event: Any) -> None:
    pass


async def _with(scene: Callable[[Rig], Any]) -> None:
    async with await Journal.open(MEMORY) as journal:
        await scene(Rig(journal))


async def test_a_node_that_is_silent_after_the_claim_is_asked_again_before_anything_is_posted() -> None:
    async def scene(rig: Rig) -> None:
        for run in ("first", "second"):
            await rig.confirmed(run)
        assert await rig.report("first") == "posted"
        rig.log.silent = 1
        with pytest.raises(Unreachable):
            await rig.report("second")
        assert [row.state for row in await rig.journal.findings("second")] == ["posting"]
        assert await rig.report("second") == "repeated"
        assert rig.log.texts == [f"{FP} by first"]

    await _with(scene)


@pytest.mark.parametrize(
    ("reports", "during"),
    [(8, "critical high medium low"), (4, "critical high medium"), (3, "critical high"), (1, "critical")],
)
async def test_the_gravest_is_posted_first_and_a_share_of_the_reports_is_kept_for_it(
    reports: int, during: str
) -> None:
    async def scene(rig: Rig) -> None:
        await rig.confirmed("r")
        for name, severity in (("a" * 12, "medium"), ("b" * 12, "critical"), ("c" * 12, "high")):
            envelope = HEADER.replace("low", severity).replace(FP, name)
            row = FindingRow(run_id="r", fingerprint=name, state="confirmed", envelope=envelope)
            await rig.journal.add_finding(replace(row, severity=severity))
        await rig.journal.set_finding("r", FP, envelope=HEADER, severity="low")
        rig.log.ledger = ledger = Ledger(rig.journal, "r", replace(LOOK_ONLY, reports=reports))
        context = RunContext(
            fleet=rig.world,
            run="r",
            persona="qa-a",
            gate=NOTHING,
            ledger=ledger,
            stream=NOTHING,
            time=NOTHING,
        )
        await report_proven(context)
        assert rig.severities() == during.split()
        await report_all(context)
        assert rig.severities() == ["critical", "high", "medium", "low"][:reports]

    await _with(scene)


async def test_an_entry_that_a_reorganisation_moved_is_found_where_it_is_now() -> None:
    async def scene(rig: Rig) -> None:
        rig.log.texts = ["a stranger's"]
        for run in ("first", "second"):
            await rig.confirmed(run)
        assert await rig.report("first") == "posted"
        del rig.log.texts[0]
        assert await rig.report("second") == "repeated"
        assert rig.log.texts == [f"{FP} by first"]
        assert [row.index for row in await rig.journal.findings("first")] == [0]

    await _with(scene)


async def test_a_log_that_was_cleared_gets_it_again() -> None:
    async def scene(rig: Rig) -> None:
        for run in ("first", "second"):
            await rig.confirmed(run)
        assert await rig.report("first") == "posted"
        rig.log.texts.clear()
        assert await rig.report("second") == "posted"
        assert rig.log.texts == [f"{FP} by second"]

    await _with(scene)


async def test_the_log_is_asked_with_where_the_entries_were_mined() -> None:
    """After a crash too: a replica that has not heard of that block would have them posted a second time."""

    async def scene(rig: Rig) -> None:
        for run, block in (("first", 7), ("second", 0)):
            await rig.confirmed(run)
            effect = await rig.journal.intend(run, "tx", f"0x{run}", {"purpose": "post"})
            await rig.journal.resolve(effect, "done", {"purpose": "post", "block": block})
        assert await rig.report("first") == "posted"
        rig.log.floor = 0
        assert await rig.report("second") == "repeated"
        assert rig.log.floor == 7

    await _with(scene)


async def test_what_is_held_until_the_node_is_back_stays_out_of_the_outbox() -> None:
    async def scene(rig: Rig) -> None:
        await rig.confirmed("first", held=True)
        assert await rig.report("first") == "confirmed"
        assert rig.log.texts == []
        await rig.confirmed("second", held=False)
        assert await rig.report("second") == "posted"

    await _with(scene)


async def test_what_a_daemon_posted_before_it_was_stopped_is_recorded_with_its_transaction() -> None:
    async def scene(rig: Rig) -> None:
        await rig.confirmed("first")
        assert await rig.journal.claim_posting("first", FP)
        text = f"{FP} by first"
        unsigned = UnsignedTx(
            chain_id=1, nonce=0, tip=0, max_fee=1, gas=1, to=US, data=FUNCTIONS["submitFeedback"].encode(text)
        )
        sent = sign(unsigned, fresh())
        effect = await rig.journal.intend(
            "first", "tx", sent.hash, {"purpose": "post", "raw": sent.raw.hex()}
        )
        await rig.journal.resolve(effect, "done", {"status": 1, "block": 1})
        rig.log.texts.append(text)
        assert await rig.report("first") == "posted"
        assert [(row.tx, row.index) for row in await rig.journal.findings("first")] == [(sent.hash, 0)]
        assert rig.log.texts == [text]

    await _with(scene)


async def test_what_an_earlier_version_has_on_the_log_is_not_posted_under_its_new_name() -> None:
    async def scene(rig: Rig) -> None:
        await rig.confirmed("first")
        assert await rig.report("first") == "posted"
        await rig.journal.trigger(
            NewRun(
                run_id="second",
                persona="qa-a",
                key="second",
                platform="devnet",
                trigger="",
                rung="",
                budget={},
            )
        )
        for name, before in (("a" * 12, FP), ("b" * 12, "c" * 12)):
            row = FindingRow(
                run_id="second", fingerprint=name, state="confirmed", envelope=name, data={"before": before}
            )
            await rig.journal.add_finding(row)
        await rig.report_all("second")
        states = {row.fingerprint: row.state for row in await rig.journal.findings("second")}
        assert states == {"a" * 12: "repeated", "b" * 12: "posted"}

    await _with(scene)


async def test_a_lost_journal_posts_nothing_twice_it_is_on_the_log() -> None:
    async def scene(rig: Rig) -> None:
        rig.log.texts = ["a stranger's", HEADER]
        await rig.confirmed("first")
        assert await rig.report("first") == "repeated"
        assert [row.index for row in await rig.journal.findings("first")] == [1]
        assert rig.log.texts == ["a stranger's", HEADER]

    await _with(scene)


async def test_own_entries_are_read_on_and_again_after_the_log_was_cleared_or_an_entry_moved() -> None:
    log, own = Log(), OwnEntries(frozenset({US}))
    newest = partial(own.newest, cast(FeedbackPort, log), [FP])
    assert await newest() is None
    log.texts = ["x"] * 250 + [HEADER]
    assert await newest() == OwnEntry(250, resolves=False, at=1)
    log.texts = ["x", HEADER, *["x"] * 300]
    assert await newest() == OwnEntry(1, resolves=False, at=1)
    log.texts = ["x"]
    assert await newest() is None


async def test_a_strangers_entry_with_our_fingerprint_is_not_ours() -> None:
    log = Log()
    log.texts = [HEADER]
    assert await OwnEntries(frozenset({"0x" + "22" * 20})).newest(cast(FeedbackPort, log), [FP]) is None


HEAD = f"qa/v1 source=qa-triage sev=info surface=ux fp={FP}"
OLD = f"{HEAD}\nverified-fixed: 3 clean re-runs in run r2, 2026-11-22T12:00:00Z: x\nrepro: none"
PERSONS = ItemRecord(kind="fixed", item=FP, at="2026-11-22T12:00:00Z", who="alice", reason="deployed")


@pytest.mark.parametrize("fixed", [OLD, write_record(PERSONS, surface="ux", title="x")])
async def test_what_comes_after_a_resolve_record_is_posted_again_once(fixed: str) -> None:
    async def scene(rig: Rig) -> None:
        at = "2026-11-22T12:00:00Z"
        seen = ItemRecord(kind="seen", item=FP, at=at, runs=3, days=1, last=at)
        rig.log.texts = [HEADER, fixed, write_record(seen, surface="ux", title="x")]
        await rig.confirmed("first")
        assert await rig.report("first") == "posted"
        assert len(rig.log.texts) == 4

    await _with(scene)


@pytest.mark.parametrize(
    ("severities", "logged"),
    [(("medium", "high", "high", "medium"), ["medium", "high"]), (("high", "medium"), ["high"])],
)
async def test_what_stands_on_the_log_as_milder_is_posted_again(
    severities: tuple[str, ...], logged: list[str]
) -> None:
    async def scene(rig: Rig) -> None:
        for run, severity in enumerate(severities):
            header = f"qa/v1 source=qa-a sev={severity} surface=ux run={run} fp={FP} rate=3/3"
            await rig.confirmed(f"r{run}")
            row = (await rig.journal.findings(f"r{run}"))[0]
            text = f'{header}\na title\nrepro: qa_fetch(url="x")'
            await rig.journal.set_finding(row.run_id, FP, severity=severity, envelope=text)
            await rig.report_all(row.run_id)
        assert rig.severities() == logged

    await _with(scene)


@pytest.mark.parametrize(
    ("was", "resolved", "state"),
    [
        ("c" * 12, False, "repeated"),
        ("d" * 12, False, "posted"),
        ("", False, "posted"),
        ("c" * 12, True, "posted"),
    ],
)
async def test_a_name_of_an_earlier_version_counts_for_the_same_calls_only(
    was: str, resolved: bool, state: str
) -> None:
    """Two defects may have shared it: the entry of one must not keep the other from the log."""

    async def scene(rig: Rig) -> None:
        old = "b" * 12
        header = (
            f"qa/v1 source=qa-a sev=low surface=ux run=old fp={old}{f' was={was}' if was else ''} rate=3/3"
        )
        rig.log.texts.append(f'{header}\na title\nrepro: qa_fetch(url="x")')
        if resolved:
            record = replace(PERSONS, item=old)
            rig.log.texts.append(write_record(record, surface="ux", title="a title"))
        await rig.confirmed("first", before="c" * 12, former=[old])
        assert await rig.report("first") == state

    await _with(scene)


THIRD, WAS = "3" * 12, "1" * 12


async def raised(rig: Rig, run: str, fp: str, **data: Any) -> None:
    await rig.journal.trigger(
        NewRun(run_id=run, persona="qa-a", key=run, platform="devnet", trigger="", rung="", budget={})
    )
    text = HEADER.replace(f"fp={FP}", f"fp={fp} was={data['before']}") + (
        f"formerly: {', '.join(data['known_as'])}\nrepro: none" if data.get("known_as") else "repro: none"
    )
    row = FindingRow(run_id=run, fingerprint=fp, state="confirmed", envelope=text, data=data)
    await rig.journal.add_finding(row)


@pytest.mark.parametrize("older", [FP, WAS])
async def test_what_an_older_version_filed_is_not_filed_again(older: str) -> None:
    """By the fingerprint of version 2, or of version 1, of what has one of version 3 now."""

    async def scene(rig: Rig) -> None:
        was = f" was={WAS}" if older == FP else ""
        rig.log.texts.append(HEADER.replace(f"fp={FP}", f"fp={older}{was}") + "repro: none")
        await raised(rig, "first", THIRD, known_as=[FP], before=WAS)
        assert await rig.report("first") == "repeated"
        assert len(rig.log.texts) == 1

    await _with(scene)


async def test_a_candidate_of_version_2_is_not_filed_beside_its_entry_of_version_3() -> None:
    """What yesterday's run left unposted, and today's met in its own way and posted first."""

    async def scene(rig: Rig) -> None:
        await raised(rig, "today", THIRD, known_as=[FP], before=WAS)
        await raised(rig, "yesterday", FP, before="5" * 12)
        assert await rig.report("today") == "posted"
        assert await rig.report("yesterday") == "repeated"

    await _with(scene)


async def test_what_was_fixed_under_its_older_name_is_news_again() -> None:
    async def scene(rig: Rig) -> None:
        rig.log.texts.append(HEADER + "repro: none")
        rig.log.texts.append(write_record(PERSONS, surface="ux", title="a title"))
        await raised(rig, "first", THIRD, known_as=[FP], before=WAS)
        assert await rig.report("first") == "posted"

    await _with(scene)
