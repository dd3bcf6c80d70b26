"""A run whose whole work is to run items again: of all personas, also when only the log knows them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from fleet.clock import iso
from fleet.drivers.session import RunOver
from fleet.files import ROOT
from fleet.findings.audit import audit_of, key_of
from fleet.findings.recurrence import Recurrence
from fleet.gate.model import Rung
from fleet.oracles.model import Facts
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe
from fleet.runs.driver_choice import RETEST, choose_driver
from fleet.runs.proof.attempt import Attempt, State
from fleet.runs.proof.candidates import candidates
from fleet.runs.proof.item_figures import count, figures_of
from fleet.runs.proof.item_questions import NO_PAST, STRANGER, UNKNOWN, KnownItem, questions
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, ItemRow
from tests.runs.table import PLATFORM, RUN, Answer, Table, look, persona, seated, well

pytestmark = pytest.mark.anyio

OLD = iso(datetime.now(UTC) - timedelta(days=40))


class Site:
    """A platform whose paths in `bad` answer as said, counted by calls."""

    def __init__(self, **bad: Mapping[str, Any]) -> None:
        self.bad = bad

    async def __call__(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        path = str(args.get("url", "")).rpartition("/")[2]
        return await well(tool, args) | dict(self.bad.get(path, {}))


def retester(**options: Any) -> LoadedPersona:
    return persona(driver="retest", **options)


@asynccontextmanager
async def again(root: Path, answer: Answer = well, **options: Any) -> AsyncIterator[Table]:
    """A run of the retest persona that has not begun."""
    one = retester(**options.pop("persona", {}))
    async with seated(root, one, answer=answer, hand=RETEST, **options) as table:
        yield table


def found(probe: Probe, **answer: Any) -> FindingRow:
    """A finding of which only the log is left; `answer`: how the answer differs from a good one."""
    url = probe.steps[0].args["url"]
    asked = ({"tool": "qa_fetch", "args": {"url": url}},)
    result = {"ok": True, "status": 200, "text": "hello"} | answer
    state: State = "finding" if "text" in answer else "healthy"
    seen = Attempt(state=state, calls=asked, asked=asked, results=(result,))
    (one,) = candidates(probe, seen, "ux", Facts.of(PLATFORM))
    return one.row("older", persona(probe), platform="paper")


def listed(row: FindingRow, **changes: Any) -> ItemRow:
    """What triage makes of the entry of a finding."""
    item = ItemRow(
        fingerprint=row.fingerprint,
        state="confirmed",
        severity=row.severity,
        surface=row.surface,
        title=row.title,
        persona="qa-other",
        repro=row.repro,
        names=(row.fingerprint, str(row.data["before"])),
        trusted=True,
    )
    return replace(item, **changes)


async def listing(table: Table, *items: ItemRow) -> None:
    await table.world.journal.put_items(table.world.platform.name, items)


async def figure(table: Table, item: str) -> Recurrence:
    return (await figures_of(table.world)).get(item, Recurrence())


async def test_an_item_that_only_the_log_knows_is_shown_and_then_clean(tmp_path: Path) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "on", Site(a={"status": 500})) as table:
        await listing(table, listed(row))
        assert await table.drive() == "1 item run again, 1 shown"
        assert (await figure(table, row.fingerprint)).runs == 1
        assert await table.world.journal.findings(RUN) == []  # counted, not posted
    async with again(tmp_path / "off") as table:
        await listing(table, listed(row))
        assert await table.drive() == "1 item run again, 1 clean"
        assert (await figure(table, row.fingerprint)).clean_run == RUN
        assert [args["url"] for _, args in table.jail.calls] == ["http://site/a"] * 3 + ["http://site/"]


async def test_one_item_is_run_again_on_demand_whatever_its_state(tmp_path: Path) -> None:
    """What was fixed and shows moves its figures; a run that only looks proves and posts nothing."""
    one, other = found(look("a"), status=500), found(look("b"), status=500)
    for answer, verdict in ((Site(a={"status": 500}), "shown"), (Site(), "clean")):
        async with again(tmp_path / verdict, answer) as table:
            table.drive.runner = replace(
                table.drive.runner, world=replace(table.world, item=str(one.data["before"]))
            )
            table.drive.world = table.drive.runner.world
            await listing(table, listed(one, state="verified-fixed"), listed(other))
            assert await table.drive() == f"1 item run again, 1 {verdict}"
            after = await figure(table, one.fingerprint)
            assert (after.run == RUN, after.clean_run == RUN) == (verdict == "shown", verdict == "clean")
            assert await table.world.journal.findings(RUN) == []
            assert not (await figure(table, other.fingerprint)).looked


async def test_what_a_probe_expected_is_judged_by_that_probe_or_not_at_all(tmp_path: Path) -> None:
    probe = look("a", "result.text.contains('hello')")
    row = found(probe, text="bye")
    odd = found(probe, ok=False, text="", status=0, error_class="garbage", error="sent less than said")
    for number, one in enumerate((row, odd)):
        async with again(tmp_path / f"gone{number}") as table:
            await listing(table, listed(one))
            with pytest.raises(RunOver, match=f"blind: .*{UNKNOWN}"):
                await table.drive()
            assert (await figure(table, one.fingerprint)).why == UNKNOWN
    for answer, words in ((Site(a={"text": "bye"}), "1 shown"), (Site(), "1 clean")):
        async with again(tmp_path / words, answer) as table:
            cast(dict[str, LoadedPersona], table.world.personas)["qa-other"] = persona(probe)
            await listing(table, listed(row, severity="medium"))
            assert await table.drive() == f"1 item run again, {words}"


async def test_figures_of_speed_cannot_be_clean_without_a_past(tmp_path: Path) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b") as table:
        await listing(table, listed(row, surface="perf"))
        with pytest.raises(RunOver, match=NO_PAST):
            await table.drive()


@pytest.mark.parametrize(
    ("change", "options", "why"),
    [
        (
            {"repro": 'qa_call(message="hello", target="claude")'},
            {"rung": Rung.OBSERVE, "persona": {"tools": ("qa_call",)}},
            "it needs the rung exercise: the dial is at observe",
        ),
        (
            {"repro": 'qa_report(text="spam")'},
            {},
            "its repro calls 'qa_report', which no question may call",
        ),
        ({"repro": 'qa_fetch(link="x")'}, {}, "its repro does not fit qa_fetch: "),
        ({"repro": ""}, {}, "it has no repro that can be run, and its evidence is not here"),
        ({"repro": 'qa_fetch(url="{site}/[redacted:key]")'}, {}, "its repro holds what was masked"),
        ({"repro": 'qa_fetch(url="{face:qa-abcdefgh-1}qa-abcdefgh-2")'}, {}, "its repro names several"),
        ({"surface": "weather"}, {}, "its surface 'weather' is not one of ours"),
    ],
)
async def test_what_cannot_be_asked_is_not_reached_and_says_why(
    tmp_path: Path, change: dict[str, Any], options: dict[str, Any], why: str
) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b", **options) as table:
        await listing(table, listed(row, **change))
        assert await table.drive() == "1 item run again, 1 unreached"
        after = await figure(table, row.fingerprint)
        assert (after.why[: len(why)], after.clean_at) == (why, "")
        assert table.jail.calls == []


async def test_a_strangers_repro_is_never_run(tmp_path: Path) -> None:
    """Not when it looks like one of ours, nor when it comes into the items: nothing is asked or kept."""
    planted = listed(found(look("a"), status=500), trusted=False)
    async with again(tmp_path, Site(a={"status": 500})) as table:
        assert questions(KnownItem(planted), table.world) == STRANGER
        await listing(table, planted, replace(planted, fingerprint="0" * 12, state="dismissed", names=()))
        assert {one.repro for one in await table.world.journal.items("paper")} == {""}
        assert await table.drive() == "0 items run again"
        assert table.jail.calls == []
        assert await figures_of(table.world) == {}


async def test_a_disposable_name_is_minted_anew(tmp_path: Path) -> None:
    row = found(look("a", url="{face:{name}}a"), status=500)
    old = row.repro.replace("{name}", "qa-zzzzzzzz-3")
    async with again(tmp_path / "b", Site(a={"status": 500})) as table:
        await listing(table, listed(row, repro=old))
        assert await table.drive() == "1 item run again, 1 shown"
        assert table.jail.calls == [("qa_fetch", {"url": f"http://qa-{RUN}-1.face/a"})]


async def test_the_longest_unlooked_at_come_first_and_the_budget_is_kept(tmp_path: Path) -> None:
    rows = [found(look(f"p{n}"), status=500) for n in range(4)]
    async with again(tmp_path / "b", persona={"calls": 25}) as table:
        await listing(table, *(listed(row) for row in rows))
        for at, row in enumerate(rows):
            when = f"2026-11-2{3 - at}T07:00:00Z"
            await count(table.world, row.fingerprint, lambda one, when=when: one.unreached(when))  # type: ignore[misc]
        assert await table.drive() == "3 items run again, 3 clean, 1 left for another run"
        asked = [str(args["url"]).rpartition("/")[2] for _, args in table.jail.calls]
        assert list(dict.fromkeys(filter(None, asked))) == ["p3", "p2", "p1"]


async def test_an_item_that_needs_another_tool_is_left_to_another_persona(tmp_path: Path) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b", Site(a={"status": 500}), persona={"tools": ["qa_chain"]}) as table:
        await listing(table, listed(row))
        assert await table.drive() == "0 items run again, 1 left for another run"
        assert await figure(table, row.fingerprint) == Recurrence()
        assert table.jail.calls == []


async def test_what_was_fixed_and_shows_again_is_proven_for_its_own_persona(
    tmp_path: Path,
) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b", Site(a={"status": 500})) as table:
        await listing(table, listed(row, state="verified-fixed"))
        await count(table.world, row.fingerprint, lambda one: one.clean(OLD, "r"))
        assert await table.drive() == "1 item run again, 1 shown"
        (raised,) = await table.world.journal.findings(RUN)
        assert (raised.fingerprint, raised.state) == (row.fingerprint, "confirmed")
        assert (raised.persona, raised.confirmed, raised.tries) == ("qa-other", 3, 3)
        assert (await figure(table, row.fingerprint)).clean_at == ""


@pytest.mark.parametrize(("state", "calls"), [("verified-fixed", 0), ("snoozed", 0), ("fixed", 4)])
async def test_what_is_not_open_is_run_again_rarely_or_to_verify_it(
    tmp_path: Path, state: str, calls: int
) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b") as table:
        await listing(table, listed(row, state=state))
        await count(table.world, row.fingerprint, lambda one: one.unreached(iso(datetime.now(UTC))))
        await table.drive()
        assert len(table.jail.calls) == calls


async def test_a_sample_of_the_dismissed_is_proven_again(tmp_path: Path) -> None:
    row = found(look("a"), status=500)
    for name, answer, expected in (
        ("there", Site(a={"status": 500}), (1, 1, 0)),
        ("gone", Site(), (1, 0, 0)),
        ("away", Site(a={"status": 503}), (0, 0, 1)),
    ):
        async with again(tmp_path / name, answer) as table:
            await listing(table, listed(row, state="dismissed"))
            with pytest.raises(RunOver, match="blind") if name == "away" else nullcontext():
                await table.drive()
            figures = audit_of(await table.world.journal.facts(key_of("paper")))
            assert (figures.sampled, figures.overturned, figures.unreached) == expected
            assert list(figures.overturned_items) == [row.fingerprint] * expected[1]
            assert await table.world.journal.findings(RUN) == []  # a person's decision stands


async def test_an_open_small_item_that_is_gone_overturns_the_list(tmp_path: Path) -> None:
    row = found(look("a"), status=500)
    async with again(tmp_path / "b") as table:
        await listing(table, listed(row, severity="low"))
        assert await table.drive() == "1 item run again, 1 clean, 1 of them as a sample"
        figures = audit_of(await table.world.journal.facts(key_of("paper")))
        assert (figures.sampled, figures.overturned) == (1, 1)


def test_a_killed_run_keeps_every_verdict_that_it_reached(tmp_path: Path) -> None:
    words = (
        f"from tests.runs.test_retest_all import die; import pathlib; die(pathlib.Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    after = anyio.run(_figures_in, tmp_path)
    assert [(name, one.clean_run) for name, one in after.items()] == [(_two()[0].fingerprint, RUN)]


def _two() -> list[FindingRow]:
    rows = [found(look(f"p{n}"), status=500) for n in range(2)]
    return sorted(rows, key=lambda row: row.fingerprint)


def die(root: Path) -> None:
    """Two items are run again; at the second one the process is killed."""
    calls: list[str] = []

    async def dies(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        calls.append(str(args["url"]))
        if len(calls) == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return await well(tool, args)

    async def work() -> None:
        async with again(root, dies) as table:
            await listing(table, *(listed(row, severity="medium") for row in _two()))
            await table.drive()

    anyio.run(work)


async def _figures_in(root: Path) -> dict[str, Recurrence]:
    async with await Journal.open(root / "state" / "fleet.db") as journal:
        world: Any = SimpleNamespace(journal=journal, platform=SimpleNamespace(name="paper"))
        return await figures_of(world)


async def test_two_runs_that_see_an_item_at_once_both_count(tmp_path: Path) -> None:
    async with again(tmp_path) as table:
        async with anyio.create_task_group() as tasks:
            for run in range(8):
                tasks.start_soon(count, table.world, "a" * 12, lambda one, run=run: one.shown(OLD, f"r{run}"))
        seen = await figure(table, "a" * 12)
        assert (seen.runs, seen.again) == (1, 7)


async def test_the_evidence_of_a_run_holds_a_repro_that_the_log_has_no_room_for(tmp_path: Path) -> None:
    one = persona(look("a"))
    async with seated(tmp_path / "b", one, answer=Site(a={"status": 500})) as table:
        await table.drive()
        (row,) = await table.world.journal.findings(RUN)
    (tmp_path / "b" / "state" / "fleet.db").unlink()
    (tmp_path / "b" / "state" / "runs" / RUN).rename(tmp_path / "b" / "state" / "runs" / "older")
    async with again(tmp_path / "b") as table:
        await listing(table, listed(row, repro=""))
        assert await table.drive() == "1 item run again, 1 clean"


def test_the_driver_needs_no_model(tmp_path: Path) -> None:
    assert choose_driver(None, retester()) is RETEST
    assert choose_driver(lambda _: pytest.fail("no model is asked"), retester(tokens=9)) is RETEST
