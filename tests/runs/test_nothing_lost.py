"""What a run saw and could not prove is proven by the next run first; one proof ends no other."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from fleet.clock import SystemClock
from fleet.config.compiler import CompilerSection
from fleet.drivers.desk import Question
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.drivers.session import RunOver
from fleet.errors import BudgetExceeded
from fleet.findings.proof import MOST_LOOKS, TRIES
from fleet.gate.model import Rung
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Step
from fleet.runs.desk.coverage import coverage
from fleet.severity import Severity
from fleet.store.rows import FindingRow, ItemRow
from fleet.triage.items.unproven import proving
from tests.runs.table import PLATFORM, RUN, Answer, Table, look, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio

LATER = "bcdefghi"
CART = PLATFORM.model_copy(
    update={"web": PLATFORM.web.model_validate(PLATFORM.web.model_dump() | {"act_paths": ["{site}/cart"]})}
)


def fetch(page: str, **more: Any) -> Step:
    return Step(tool="qa_fetch", args={"url": "{site}/" + page, **more})


def put(page: str) -> Step:
    return fetch(f"cart/{page}", method="PUT", body="x")


async def breaks(tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """Pages named `bad…` answer 500, those named `leak…` show a private key."""
    page = str(args["url"]).rpartition("/")[2]
    said: dict[str, Any] = {"status": 500} if page.startswith("bad") else {}
    if page.startswith("leak"):
        said = {"secrets": ["private-key"]}
    return await well(tool, args) | said


async def raised(table: Table, *steps: Step) -> list[FindingRow]:
    """Seen, and not proven yet: a turn would prove what is grave at its end."""
    await table.desk._pose([Question((step,)) for step in steps])
    return await table.world.journal.findings(table.run)


async def states(table: Table) -> dict[str, str]:
    """By the last part of the page in the title."""
    rows = await table.world.journal.findings(table.run)
    return {row.title.split("/")[-1].split()[0]: row.state for row in rows}


async def ended(table: Table) -> None:
    """What the end of a run does with what it could not prove."""
    for row in await table.world.journal.findings(table.run, ["raised"]):
        await table.world.journal.set_finding(table.run, row.fingerprint, state="unverified")
    await table.world.journal.start_settling(table.run)
    assert await table.world.journal.finish(table.run, "budget_exceeded")


def exploring(**more: Any) -> LoadedPersona:
    one = persona(**more)
    return replace(one, persona=one.persona.model_copy(update={"explore": ("web",)}))


class Asks:
    """Asks for these pages, one a turn."""

    pages: tuple[str, ...] = ("new",)

    def __init__(self, ground: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        self.waiting = list(self.pages)

    def ask(self, most: int) -> Sequence[Question]:
        return [Question((fetch(self.waiting.pop(0)),))] if self.waiting else []

    def learn(self, question: Question, results: Results) -> None:
        pass

    def state(self) -> Mapping[str, Any]:
        return {}


def pages(table: Table) -> list[str]:
    return [str(args["url"]).rpartition("/")[2] for _, args in table.jail.calls]


# -- one proof ends no other --------------------------------------------------------------------------------


async def test_proofs_without_an_act_go_on_when_the_writes_are_spent(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(writes=12), hand=ANY, answer=breaks, platform=CART) as table:
        await raised(table, put("bad-a"), put("bad-b"), fetch("bad-c"), fetch("leak-d"))
        left = (await table.drive.ledger.left())["writes"]
        await table.drive.ledger.spend("writes", left - 1)
        await table.drive.runner.prove_raised()
        assert await states(table) == {
            "bad-a": "raised",
            "bad-b": "raised",
            "bad-c": "confirmed",
            "leak-d": "confirmed",
        }
        rows = await table.world.journal.findings(RUN, ["raised"])
        assert {row.data["why"] for row in rows} == {"the budget of 12 writes is spent"}


async def test_a_proof_that_kills_its_jails_ends_no_other(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("leak-a"), fetch("bad-b"), fetch("bad-c"))
        call = table.drive.runner.session.call

        async def dies(tool: str, args: Mapping[str, Any], **more: Any) -> Any:
            if str(args["url"]).endswith("leak-a"):
                raise RunOver("jail_lost", "3 times in a row")
            return await call(tool, args, **more)

        table.drive.runner.session.call = dies  # type: ignore[method-assign]
        with pytest.raises(RunOver, match="jail_lost"):
            await table.drive.runner.prove_raised()
        assert await states(table) == {"leak-a": "unverified", "bad-b": "confirmed", "bad-c": "confirmed"}


@pytest.mark.parametrize("severities", [(Severity.CRITICAL, Severity.LOW), (Severity.LOW, Severity.CRITICAL)])
async def test_what_was_seen_is_proven_though_the_budget_ended_the_probes(
    tmp_path: Path, severities: tuple[Severity, Severity]
) -> None:
    probes = [look(f"bad-{at}").model_copy(update={"severity": one}) for at, one in enumerate(severities)]
    act = look("cart", url="{site}/cart/x", method="PUT", body="x")
    one = persona(*probes, act, act.model_copy(update={"id": "cart-2"}), writes=1)
    async with seated(tmp_path, one, answer=breaks, platform=CART) as table:
        with pytest.raises(RunOver, match="the budget of 1 write is spent"):
            await table.drive()
        assert await states(table) == {"bad-0": "confirmed", "bad-1": "confirmed"}
        (left,) = coverage(table.folder, RUN, "budget_exceeded")["left"]
    assert (left["part"], left["cut"]) == ("probes", True)
    assert left["reason"] == (
        "1 of 4 probes not looked at: the budget of 1 write is spent; raise budget.writes in the persona file"
    )


# -- a share is kept for proofs -----------------------------------------------------------------------------


@pytest.mark.parametrize("writes", [8, 20, 120])
async def test_explorers_cannot_spend_what_is_kept_for_proofs(tmp_path: Path, writes: int) -> None:
    """Every turn takes what its room gives, and each act what an act may cost at most."""
    async with seated(tmp_path, persona(writes=writes), hand=ANY, platform=CART) as table:
        ledger = table.drive.ledger
        while acts := (await table.desk.room()).acts:
            async with table.desk.turn() as turn:
                await turn.pose([Question((put(f"{at}"),)) for at in range(acts)])
            await ledger.spend("writes", acts * 3)
        assert (await ledger.left())["writes"] >= max(4, writes // 4)
        assert table.desk.over is None


async def test_a_jail_that_signs_on_and_on_leaves_the_share_of_proofs(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(writes=40), hand=ANY, platform=CART) as table:
        ledger = table.drive.ledger

        async def signs(tool: str, args: dict[str, Any]) -> dict[str, Any]:
            with suppress(BudgetExceeded):
                while True:
                    await ledger.spend("writes")
            return await well(tool, args)

        table.jail.answer = signs
        async with table.desk.turn() as turn:
            await turn.pose([Question((fetch("a"),))])
        assert (await ledger.left())["writes"] == 10


async def test_a_grave_candidate_is_proven_and_posted_before_exploring_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Leaks(Asks):
        pages = ("bad-low", "leak", "new-1", "new-2")

    monkeypatch.setattr("fleet.runs.drive.chosen", lambda names, granted: {"asks": Leaks})
    async with seated(tmp_path, exploring(), answer=breaks) as table:
        posted: list[list[str]] = []

        async def post() -> None:
            rows = await table.world.journal.findings(RUN, ["confirmed"])
            posted.append([row.title for row in rows])

        table.drive.runner = replace(table.drive.runner, post=post)
        await table.drive()
        asked = pages(table)
    leaked = ["Secret is public: GET /leak shows a private key"]
    assert asked[asked.index("leak") : asked.index("new-1")] == ["leak"] * 4
    assert leaked in posted
    assert asked.index("new-2") < len(asked) - asked[::-1].index("bad-low")


async def test_a_grave_candidate_of_a_probe_is_proven_and_posted_before_the_next_probe(
    tmp_path: Path,
) -> None:
    grave = look("bad-b").model_copy(update={"severity": Severity.CRITICAL})
    async with seated(tmp_path, persona(look("bad-a"), grave, look("c")), answer=breaks) as table:
        posted: list[tuple[str, list[str]]] = []

        async def post() -> None:
            rows = await table.world.journal.findings(RUN, ["confirmed"])
            posted.append((pages(table)[-1], [row.severity for row in rows]))

        table.drive.runner = replace(table.drive.runner, post=post)
        await table.drive()
        asked = pages(table)
    assert asked[asked.index("bad-b") : asked.index("c")] == ["bad-b"] * 4
    assert posted == [("bad-b", ["critical"]), ("bad-a", ["medium", "critical"])]


async def test_what_is_grave_is_posted_before_the_first_try_of_the_rest(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("bad-a"), fetch("leak-b"), fetch("bad-c"))
        found: list[dict[str, str]] = []

        async def post() -> None:
            found.append(await states(table))

        await replace(table.drive.runner, post=post).prove_raised()
    assert found == [
        {"bad-a": "raised", "leak-b": "confirmed", "bad-c": "raised"},
        {"bad-a": "confirmed", "leak-b": "confirmed", "bad-c": "confirmed"},
    ]


@pytest.mark.parametrize(("share", "state"), [(1.0, "raised"), (0.0, "confirmed")])
async def test_what_is_not_grave_waits_for_a_share_of_a_short_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, state: str
) -> None:
    monkeypatch.setattr("fleet.runs.proof.probe_runner.LESSER_SHARE", share)
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("bad-a"))
        async with table.desk.turn():
            pass
        assert await states(table) == {"bad-a": state}


@pytest.mark.parametrize(("waits_s", "state"), [(60, "raised"), (0, "confirmed")])
async def test_what_is_not_grave_waits_for_others_but_not_for_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits_s: int, state: str
) -> None:
    monkeypatch.setattr("fleet.runs.proof.probe_runner.LESSER_WAITS", timedelta(seconds=waits_s))
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("bad-a"))
        async with table.desk.turn():
            pass
        assert await states(table) == {"bad-a": state}


@pytest.mark.parametrize(
    ("item", "state"),
    [
        ({}, "raised"),
        ({"state": "verified-fixed"}, "confirmed"),
        ({"state": "new"}, "confirmed"),
        ({"trusted": False}, "confirmed"),
    ],
)
async def test_what_is_only_confirmed_again_waits_like_what_is_not_grave(
    tmp_path: Path, item: dict[str, Any], state: str
) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        (row,) = await raised(table, fetch("leak-a"))
        values = dict.fromkeys(("surface", "title", "persona", "repro"), "") | {"severity": "critical"}
        names: dict[str, Any] = {"fingerprint": "f" * 12, "names": (row.fingerprint,)}
        listed = ItemRow(**values | names | {"state": "confirmed", "trusted": True} | item)
        await table.world.journal.put_items("paper", [listed])
        async with table.desk.turn():
            pass
        assert await states(table) == {"leak-a": state}


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_between_two_tries_other_questions_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """A try a turn, once it is due; what the turns leave is tried at the end, and nothing a fourth time."""
    later, real = [0.0], SystemClock.monotonic
    monkeypatch.setattr(SystemClock, "monotonic", lambda clock: real(clock) + later[0])
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("leak-a"))
        desk = table.desk
        desk.runner = replace(desk.runner, world=replace(desk.runner.world, spread_s=9.0))
        expected = ["leak-a"]
        for turn in range(turns):
            for page in ("new", "other"):  # in the second of them it is not due
                async with desk.turn():
                    await desk._pose([Question((fetch(f"{page}-{turn}"),))])
                expected += [f"{page}-{turn}", *["leak-a"] * (page == "new")]
                assert pages(table) == expected
            assert await states(table) == {"leak-a": "raised" if turn < TRIES - 1 else "confirmed"}
            later[0] += 9.0
        await replace(desk.runner, world=replace(desk.runner.world, spread_s=0.0)).prove_raised()
        assert pages(table) == expected + ["leak-a"] * (TRIES - turns)
        assert await states(table) == {"leak-a": "confirmed"}


async def test_a_proof_begins_anew_when_another_sighting_leads(tmp_path: Path) -> None:
    """The tries were of another question."""
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        (row,) = await raised(table, fetch("leak-a"))
        runner = table.desk.runner
        await replace(runner, world=replace(runner.world, spread_s=900.0)).prove_seen()
        assert [len(one.seen) for one in runner.begun] == [1]
        asked = row.data["probe"] | {"steps": [fetch("leak-a", longest=9000).model_dump(mode="json")]}
        data = {**row.data, "probe": asked, "whole": False}  # which nothing is cut from
        await table.world.journal.set_finding(RUN, row.fingerprint, data=data)
        await runner.prove_raised()
        tries = [args for _, args in table.jail.calls if args.get("longest") == 9000]
        assert (len(tries), await states(table)) == (TRIES, {"leak-a": "confirmed"})


async def test_what_the_budget_refused_is_not_tried_again_at_each_turn(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks) as table:
        await raised(table, fetch("leak-a"))
        (row,) = await table.world.journal.findings(RUN)
        await table.world.journal.set_finding(RUN, row.fingerprint, data={**row.data, "why": "spent"})
        async with table.desk.turn():
            pass
        assert (await states(table), pages(table)) == ({"leak-a": "raised"}, ["leak-a"])
        await table.drive.runner.prove_raised()
        assert await states(table) == {"leak-a": "confirmed"}


async def test_a_proof_between_turns_that_kills_its_jails_ends_the_run_at_its_end(tmp_path: Path) -> None:
    probes = [look("leak-a").model_copy(update={"severity": Severity.CRITICAL}), look("bad-b")]
    async with seated(tmp_path, persona(*probes), answer=breaks) as table:
        call = table.drive.runner.session.call

        async def dies(tool: str, args: Mapping[str, Any], **more: Any) -> Any:
            if str(args["url"]).endswith("leak-a") and pages(table):
                raise RunOver("jail_lost", "3 times in a row")
            return await call(tool, args, **more)

        table.drive.runner.session.call = dies  # type: ignore[method-assign]
        with pytest.raises(RunOver, match="jail_lost"):
            await table.drive()
        assert await states(table) == {"leak-a": "unverified", "bad-b": "confirmed"}


# -- what was left is proven first --------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(fetch("leak-a"),), (fetch("bad-a"), fetch("leak-b"), fetch("bad-c"))])
async def test_the_next_run_proves_first_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[Step, ...]
) -> None:
    monkeypatch.setattr("fleet.runs.drive.chosen", lambda names, granted: {"asks": Asks})
    async with seated(tmp_path, exploring(), hand=ANY, answer=breaks) as table:
        before = await raised(table, *steps)
        await ended(table)
    async with seated(tmp_path, exploring(), answer=breaks, run=LATER) as table:
        await table.drive()
        rows = await table.world.journal.findings(LATER)
        assert {row.fingerprint: row.state for row in rows} == {
            one.fingerprint: "confirmed" for one in before
        }
        assert {row.data["left_by"] for row in rows} == {RUN}
        asked = pages(table)
        await ended(table)
    grave = next(str(s.args["url"]).rpartition("/")[2] for s in steps if "leak" in s.args["url"])
    assert asked[0] == grave
    assert asked.index("new") == len(asked) - 1
    async with seated(tmp_path, exploring(), answer=breaks, run="cdefghij") as table:
        assert await table.world.journal.unsettled("qa-paper", TRIES) != []  # confirmed, and not posted yet
        for row in rows:
            await table.world.journal.add_finding(replace(row, run_id="cdefghij", state="posted", at=""))
        assert await table.world.journal.unsettled("qa-paper", TRIES) == []


# -- what a busy machine could not tell is tried at a later moment -------------------------------------------

COMPILER = PLATFORM.model_copy(update={"compiler": CompilerSection(command=("/bin/cc",), sample="fn f() {}")})
HANG = {"ok": False, "outcome": "hang", "cpu_ms": 5000.0, "control_cpu_ms": 90.0}
BUSY = {"ok": False, "outcome": "unknown", "error_class": "busy", "error": "could not tell: busy"}


class Hangs(Asks):
    """Asks for what hangs, then for a page."""

    def ask(self, most: int) -> Sequence[Question]:
        hanging = Question((Step(tool="qa_compile", args={"source": "loop {}"}),), minimal=True)
        self.waiting, pages = [], self.waiting
        return [hanging] if pages else []


def compiling(busy: int) -> tuple[list[str], Answer]:
    """The tools asked for, and a compiler that hangs, after a first look on a machine so busy for so long."""
    asked = list[str]()

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        asked.append(tool)
        if tool == "qa_fetch":
            return await well(tool, args)
        return BUSY if 1 < asked.count("qa_compile") <= 1 + busy else HANG

    return asked, answer


def compiler_persona() -> LoadedPersona:
    return exploring(tools=["qa_compile"])


@pytest.mark.parametrize("busy", [MOST_LOOKS, MOST_LOOKS + 2])
async def test_a_hang_that_cannot_be_told_on_the_way_is_proven_at_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int
) -> None:
    monkeypatch.setattr("fleet.runs.drive.chosen", lambda names, granted: {"asks": Hangs})
    asked, answer = compiling(busy)
    async with seated(tmp_path, compiler_persona(), answer=answer, platform=COMPILER) as table:
        await table.drive()
        (row,) = await table.world.journal.findings(RUN)
    assert (row.state, row.confirmed, row.tries) == ("confirmed", TRIES, TRIES)
    assert len(asked) >= 1 + busy + TRIES


async def test_a_hang_that_a_whole_run_cannot_tell_is_proven_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fleet.runs.drive.chosen", lambda names, granted: {"asks": Hangs})
    _, answer = compiling(1_000)
    async with seated(tmp_path, compiler_persona(), answer=answer, platform=COMPILER) as table:
        await table.drive()
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.tries) == ("unverified", 0)
        assert row.data["why"] == "qa_compile: busy: could not tell: busy"
        await ended(table)
    _, answer = compiling(0)
    async with seated(tmp_path, compiler_persona(), answer=answer, platform=COMPILER, run=LATER) as table:
        await table.drive._leftovers()
        (row,) = await table.world.journal.findings(LATER)
    assert (row.state, row.data["left_by"]) == ("confirmed", RUN)


async def test_what_this_persona_may_not_ask_now_waits(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), hand=ANY, answer=breaks, platform=CART) as table:
        await raised(table, put("bad-a"), fetch("bad-b"))
        await ended(table)
    calm = seated(tmp_path, persona(), answer=breaks, platform=CART, run=LATER, rung=Rung.OBSERVE)
    async with calm as table:
        table.drive.seat()
        with anyio.fail_after(30):
            await table.drive._leftovers()
        assert await states(table) == {"bad-b": "confirmed"}


async def test_a_kill_between_seen_and_proven_loses_no_candidate(tmp_path: Path) -> None:
    child = [sys.executable, "-m", "tests.runs.killed_in_proof", str(tmp_path)]
    done = await anyio.run_process(child, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL, done.stderr
    async with seated(tmp_path, persona(), answer=breaks, run=LATER) as table:
        journal = table.world.journal
        before = await journal.findings(RUN)
        assert {row.state for row in before} == {"raised"}
        seen = [one.title.split("/")[-1].split()[0] for one in proving(before, (), datetime.now(UTC))]
        assert seen == ["leak-a", "bad-b"]
        table.run = RUN
        await ended(table)
        table.run = LATER
        await table.drive._leftovers()
        assert await states(table) == {"leak-a": "confirmed", "bad-b": "confirmed"}
