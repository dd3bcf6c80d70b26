"""What a run found clean is on the log when it ends: what comes back before triage looks is a regression."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleet.chain.log.choice import MutedLog
from fleet.clock import iso
from fleet.findings.reader import read
from fleet.findings.records import ItemRecord, read_record, write_record
from fleet.runs.proof.item_figures import count, figures_of
from fleet.runs.settlement.outbox import record_fixed
from fleet.store.rows import MirroredEntry
from fleet.triage.items.fold import Decided
from fleet.triage.outputs.digest import daily_digest
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.run import decide
from tests.runs.table import RUN, Table, look
from tests.runs.test_retest_all import again, figure, found, listed, listing
from tests.triage.triage_log import finding, inputs

pytestmark = pytest.mark.anyio
ROW = found(look("a"), status=500)
FP = ROW.fingerprint


async def reported(table: Table, run: str, name: str = FP) -> None:
    await table.world.chain.log.post(finding(run=run, seen=name, surface="ux"), charge="none")


async def proposed(table: Table) -> None:
    record = ItemRecord(kind="proposed", item=FP, at=iso(datetime.now(UTC)), reason="qa/x", who="qa-fix")
    await table.world.chain.log.post(write_record(record, surface="ux", title="t"), charge="none")


async def entries(table: Table) -> list[MirroredEntry]:
    found = await table.world.chain.log.range(0, 100)
    return [
        MirroredEntry(epoch=0, index=index, sender=one.sender, timestamp=one.timestamp, text=one.text)
        for index, one in enumerate(found)
    ]


async def records(table: Table, kind: str = "verified-fixed") -> list[ItemRecord]:
    made = [read_record(read(one.text)) for one in await entries(table)]
    return [one for one in made if one is not None and one.kind == kind]


async def triaged(table: Table, *, figures: bool = True) -> Decided:
    """A pass of triage; without `figures` on a machine that has the log alone."""
    known = await figures_of(table.world) if figures else {}
    now = datetime.now(UTC) + timedelta(hours=1)
    trusted = frozenset({table.world.chain.identity})
    return decide(await entries(table), trusted, replace(inputs(figures=known), now=now))


async def news(table: Table, run: str) -> bool:
    """Whether an outbox would post this finding: its newest entry resolves it, or there is none."""
    newest = await table.world.chain.own.newest(table.world.chain.log, [FP])
    return newest is None or newest.resolves


async def test_a_fix_is_on_the_log_when_the_run_ends_once(tmp_path: Path) -> None:
    async with again(tmp_path) as table:
        await listing(table, listed(ROW))
        await reported(table, "older")
        assert await table.drive() == "1 item run again, 1 clean"
        (record,) = await records(table)
        assert (record.item, record.who, record.runs) == (FP, RUN, 3)
        assert record.at == (await figure(table, FP)).clean_at
        await record_fixed(table.world, RUN, [listed(ROW)])
        assert len(await records(table)) == 1
        decided = await triaged(table)
        assert ([one.state for one in decided.items], decided.records) == (["verified-fixed"], ())


@pytest.mark.parametrize("before", ["confirmed", "proposed"])
@pytest.mark.parametrize("alone", [False, True])
async def test_retested_reverted_found_again_is_a_regression(
    tmp_path: Path, before: str, alone: bool
) -> None:
    """Without a pass of triage between; `alone`: as a machine sees it that has only the log."""
    async with again(tmp_path) as table:
        await listing(table, listed(ROW, state=before))
        await reported(table, "older")
        await count(table.world, FP, lambda one: one.shown("2026-01-01T00:00:00Z", "older"))
        if before == "proposed":
            await proposed(table)
        await table.drive()
        assert await news(table, "later")
        await reported(table, "later")
        at = iso(datetime.now(UTC) + timedelta(seconds=1))
        await count(table.world, FP, lambda one: one.shown(at, "later"))
        for _ in range(2):  # later passes say the same
            (item,) = (await triaged(table, figures=not alone)).items
            assert (item.state, item.regression) == ("regression", True)
        digest = daily_digest([item], WorklistHeader(), "2020-01-01T00:00:00Z")
        assert [one.fingerprint for one in digest.regressed] == [FP]


@pytest.mark.parametrize("before", ["confirmed", "proposed"])
async def test_a_fix_that_could_not_be_recorded_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    async with again(tmp_path) as table:
        await listing(table, listed(ROW, state=before))
        await reported(table, "older")
        if before == "proposed":
            await proposed(table)
        log = table.world.chain.log
        monkeypatch.setattr(log, "post", MutedLog(log).post)
        assert await table.drive() == "1 item run again, 1 clean"
        assert await records(table) == []
        (item,) = (await triaged(table)).items
        assert item.state == "verified-fixed"
        for second, run in ((1, "later"), (2, "latest")):
            at = iso(datetime.now(UTC) + timedelta(seconds=second))
            await count(table.world, FP, lambda one, at=at, run=run: one.shown(at, run))  # type: ignore[misc]
            decided = await triaged(table)
            assert [one.state for one in decided.items] == ["regression"]
            digest = daily_digest(decided.items, WorklistHeader(), "2020-01-01T00:00:00Z")
            assert [one.fingerprint for one in digest.regressed] == [FP]
        assert not any("verified-fixed: " in one for one in decided.records)
        await count(
            table.world, FP, lambda one: one.clean(iso(datetime.now(UTC) + timedelta(seconds=3)), "last")
        )
        decided = await triaged(table)
        assert ([one.state for one in decided.items], len(decided.records)) == (["verified-fixed"], 1)


@pytest.mark.parametrize("state", ["dismissed", "snoozed"])
async def test_what_a_person_hides_gets_no_record(tmp_path: Path, state: str) -> None:
    async with again(tmp_path) as table:
        await reported(table, "older")
        at = iso(datetime.now(UTC))
        await count(table.world, FP, lambda one: one.clean(at, RUN))
        await record_fixed(table.world, RUN, [listed(ROW, state=state)])
        assert await records(table) == []


async def test_what_is_not_on_the_log_or_was_seen_meanwhile_gets_no_record(tmp_path: Path) -> None:
    async with again(tmp_path) as table:
        at = iso(datetime.now(UTC))
        await count(table.world, FP, lambda one: one.clean(at, RUN))
        await record_fixed(table.world, RUN, [listed(ROW)])
        await reported(table, "older")
        await record_fixed(table.world, "another", [listed(ROW)])
        await count(table.world, FP, lambda one: one.shown(at, "another"))
        await record_fixed(table.world, RUN, [listed(ROW)])
        assert await records(table) == []
