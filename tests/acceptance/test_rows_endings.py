"""Rows 32, 33, 36 and 47: how a run ends, and what a later start makes of one that did not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.app.wiring import open_world
from fleet.clock import SystemClock
from fleet.events.model import Footer, Header, KeysRevoked, PhaseChanged
from fleet.events.trajectory import TrajectoryFile, read
from fleet.gate.stop import resume, stop
from fleet.oracles.model import Facts
from fleet.personas.load import LoadedPersona
from fleet.runs.context import FleetContext
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.candidates import candidates
from fleet.runs.run import fire, recover
from fleet.runs.settlement.lost_runs import keys_without_runs, take_back
from fleet.store.rows import FindingRow, NewRun
from tests.acceptance.conftest import CREATE, House, persona, probe, step
from tests.acceptance.doubles import between, hanging

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

BUDGET = "budget = { calls = 60, writes = 20 }"
FETCH = step("qa_fetch", url="{site}/llms.txt")
SEEN = probe("seen", FETCH, expect="result.status == 418")
RUN = "abcdefgh"


def raised(one: LoadedPersona) -> FindingRow:
    """What a look at the persona's first probe had shown, as it was written down before the kill."""
    asked = tuple({"tool": step.tool, "args": step.args} for step in one.persona.probe[0].steps)
    results = tuple({"ok": True, "status": 200} for _ in asked)
    seen = Attempt(state="finding", asked=asked, results=results)
    (found,) = candidates(one.persona.probe[0], seen, "ux", Facts())
    return found.row(RUN, one)


async def test_row_32_a_call_that_hangs_past_the_deadline_ends_the_run(house: House, tmp_path: Path) -> None:
    one = persona(
        tmp_path,
        'tools = ["qa_create", "qa_fetch"]\nbudget = { calls = 9, writes = 4, wall = "4s" }',
        probe("mint", CREATE, expect="result.ok"),
        probe("hang", FETCH, expect="result.status == 200"),
        probe("later", step("qa_fetch", url="{site}/later"), expect="result.status == 200"),
    )
    async with hanging() as (url, asked):
        state = await house.state(tmp_path, (f'site = "{house.devnet.url}"', f'site = "{url}"'))
        async with house.world(state, one) as world:
            with anyio.fail_after(12):
                report = await fire(world, one)
            assert (report.outcome, report.settled, report.findings) == ("deadline_exceeded", True, ())
            assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") == ""
            assert not (world.folder(report.run) / "keys").exists()
            assert await world.journal.effects(report.run, states=["open"]) == []
            seen = len(await house.signed())
            await anyio.sleep(0.5)
            assert len(await house.signed()) == seen  # no zombie act afterwards
        assert [line.split()[1] for line in asked] == ["/llms.txt"]
        assert list((state / "jails").glob("*.jail")) == []
    ends = list(read(state / "runs" / report.run / "trajectory.jsonl"))[-1]
    assert isinstance(ends, Footer)
    assert ends.outcome == "deadline_exceeded"


async def test_row_32_an_act_under_way_at_the_deadline_is_waited_for_and_undone(
    house: House, tmp_path: Path
) -> None:
    """The node takes its time over the stipend: the registration is still to come when the time is over."""
    sent: list[str] = []

    async def tamper(method: str, params: list[Any], real: Any) -> Any:
        if method == "eth_sendRawTransaction":
            sent.append(real)
            if len(sent) == 1:
                await anyio.sleep(2)
        return real

    one = persona(
        tmp_path,
        'tools = ["qa_create"]\nbudget = { calls = 9, writes = 4, wall = "1s" }',
        probe("mint", CREATE, expect="result.ok"),
    )
    async with between(house.rpc, tamper) as url:
        state = await house.state(tmp_path, (house.devnet.chain.url, url))
        async with house.world(state, one) as world:
            report = await fire(world, one)
            ended = len(await house.signed())
            await anyio.sleep(1)
            signed = await house.signed()
            assert (report.outcome, report.settled) == ("deadline_exceeded", True)
            assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") == ""
            assert len(signed) == ended, signed
            assert await world.journal.effects(report.run, states=["open"]) == []


async def test_row_36_after_a_run_its_names_are_free_and_its_keys_are_gone(
    house: House, tmp_path: Path
) -> None:
    one = persona(tmp_path, f'tools = ["qa_create"]\n{BUDGET}', probe("mint", CREATE, expect="result.ok"))
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        (minted,) = await world.journal.effects(report.run, ["name"])
        assert (minted.ref, minted.state) == (f"qa-{report.run}-1", "released")
        assert await world.chain.names.owner_of_name(minted.ref) == ""
        assert not (world.folder(report.run) / "keys").exists()
        balance = await house.rpc.call("eth_getBalance", [minted.data["owner"], "latest"])
        assert int(balance, 16) == 0
        events = read(world.folder(report.run) / "trajectory.jsonl")
        phases = [event.after for event in events if isinstance(event, PhaseChanged)]
        assert phases == [
            "reconnaissance",
            "enumeration",
            "identification",
            "post-exploitation",
            "reporting",
        ]


async def paused(house: House, state: Path, one: LoadedPersona) -> str:
    """A run that STOP caught with a name minted: nothing of it is cleaned up. Its id."""

    def pause(event: object) -> None:
        if getattr(event, "type", "") == "tool.responded":
            stop(state, "test", "pause", SystemClock())

    async with house.world(state, one, watch=pause) as world:
        report = await fire(world, one)
        assert not report.settled
        assert await world.chain.names.owner_of_name(f"qa-{report.run}-1") != ""
        events = read(world.folder(report.run) / "trajectory.jsonl")
        [told] = [event for event in events if isinstance(event, KeysRevoked)]
        assert told.kept == (f"qa-{report.run}-1",)
        assert report.detail.count(f"not ended, for they hold names or funds: qa-{report.run}-1") == 1
    assert resume(state)
    return report.run


def minting(root: Path) -> LoadedPersona:
    look = probe("look", step("qa_fetch", url="{site}/llms.txt"), expect="result.status == 200")
    return persona(
        root, f'tools = ["qa_create", "qa_fetch"]\n{BUDGET}', probe("mint", CREATE, expect="result.ok"), look
    )


async def test_a_run_of_another_platform_waits_for_its_own(house: House, tmp_path: Path) -> None:
    one = minting(tmp_path)
    state = await house.state(tmp_path)
    run = await paused(house, state, one)
    profile = (state / "devnet" / "devnet.toml").read_text().replace('name = "devnet"', 'name = "other"')
    (state / "devnet" / "other.toml").write_text(profile)
    async with open_world(state, personas={}, platform="other") as world:
        assert await recover(world) == []
        assert await world.chain.names.owner_of_name(f"qa-{run}-1") != ""
        assert (world.folder(run) / "keys" / f"qa-{run}-1").is_file()
    async with house.world(state, one) as world:
        (report,) = await recover(world)
        assert (report.run, report.settled) == (run, True)
        assert await world.chain.names.owner_of_name(f"qa-{run}-1") == ""


async def test_a_run_whose_persona_and_trajectory_are_gone_is_cleaned_up_all_the_same(
    house: House, tmp_path: Path
) -> None:
    state = await house.state(tmp_path)
    run = await paused(house, state, minting(tmp_path))
    (state / "runs" / run / "trajectory.jsonl").write_bytes(b'{"type":"run.sta')
    async with house.world(state) as world:
        (report,) = await recover(world)
        assert (report.outcome, report.settled) == ("stopped", True)
        assert await world.chain.names.owner_of_name(f"qa-{run}-1") == ""
    kinds = [event.type for event in read(state / "runs" / run / "trajectory.jsonl")]
    assert (kinds[0], kinds[-1], kinds.count("header")) == ("header", "footer", 1)


async def test_keys_of_a_lost_journal_are_found_at_a_start_and_what_they_hold_is_given_back(
    house: House, tmp_path: Path
) -> None:
    one = minting(tmp_path)
    state = await house.state(tmp_path)
    run = await paused(house, state, one)
    for path in state.glob("fleet.db*"):
        path.unlink()
    async with house.world(state, one) as world:
        assert await keys_without_runs(state, world.journal) == [run]
        (report,) = await recover(world)
        assert (report.run, report.outcome, report.settled) == (run, "crashed", True)
        assert "the journal had lost it" in report.detail
        assert await world.chain.names.owner_of_name(f"qa-{run}-1") == ""
        assert not (world.folder(run) / "keys").exists()
        assert await keys_without_runs(state, world.journal) == []
        assert await take_back(world) == {}


async def test_keys_of_a_lost_journal_and_of_another_platform_are_told_and_let_be(
    house: House, tmp_path: Path
) -> None:
    state = await house.state(tmp_path)
    run = await paused(house, state, minting(tmp_path))
    for path in state.glob("fleet.db*"):
        path.unlink()
    profile = (state / "devnet" / "devnet.toml").read_text().replace('name = "devnet"', 'name = "other"')
    (state / "devnet" / "other.toml").write_text(profile)
    async with open_world(state, personas={}, platform="other") as world:
        said = await take_back(world)
        assert await recover(world) == []
    assert list(said) == [run]
    assert "a run of devnet" in said[run]
    assert str(state / "runs" / run / "keys") in said[run]
    assert (state / "runs" / run / "keys" / f"qa-{run}-1").is_file()


async def killed(world: FleetContext, one: LoadedPersona, **budget: int) -> None:
    """The journal as a process leaves it that was killed in mid run."""
    name = one.persona.name
    await world.journal.trigger(
        NewRun(run_id=RUN, persona=name, key=RUN, platform="devnet", trigger="manual", rung="", budget={})
    )
    assert await world.journal.claim(RUN, pid=1, pid_start=1)
    for unit, amount in budget.items():
        await world.journal.spend(RUN, unit, amount, amount)


async def test_row_33_a_killed_run_goes_on_with_what_was_left(house: House, tmp_path: Path) -> None:
    """One of three writes is spent: one more is signed, and then too little is left for another mint."""
    one = persona(
        tmp_path,
        'tools = ["qa_create", "qa_fetch"]\nbudget = { calls = 60, writes = 3 }',
        probe("mint", CREATE, expect="!result.ok"),
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await killed(world, one, writes=1, calls=1)
        await world.journal.add_finding(raised(one))
        (report,) = await recover(world)
        assert (report.outcome, report.settled) == ("crashed", True)
        assert await world.journal.spent(RUN) == {"calls": 2, "writes": 2}
        assert await house.tools_signed() == ["register"]
        assert [row.state for row in report.findings] == ["unverified"]


async def test_names_of_a_killed_run_are_never_used_again(house: House, tmp_path: Path) -> None:
    one = persona(
        tmp_path, f'tools = ["qa_create", "qa_fetch"]\n{BUDGET}', probe("mint", CREATE, expect="!result.ok")
    )
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await killed(world, one)
        await world.journal.intend(RUN, "name", f"qa-{RUN}-2", {"owner": "0x" + "11" * 20})
        await world.journal.add_finding(raised(one))
        (report,) = await recover(world)
        assert [row.state for row in report.findings] == ["posted"]
    names = [event.args["name"] for event in house.said("tool.requested")]
    assert names == [f"qa-{RUN}-{n}" for n in (3, 4, 5)]


async def test_a_finding_whose_persona_changed_since_is_not_proven_by_the_new_one(
    house: House, tmp_path: Path
) -> None:
    one = persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', SEEN)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await killed(world, one)
        await world.journal.add_finding(raised(one))
    other = persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', SEEN.replace("418", "419"))
    async with house.world(state, other) as world:
        (report,) = await recover(world)
        assert ([row.state for row in report.findings], await house.signed()) == (["unverified"], [])


async def test_a_report_that_was_paid_before_the_crash_is_posted_after_it(
    house: House, tmp_path: Path
) -> None:
    """Killed between the charge of the last report and its signature: charged once, posted once."""
    one = persona(tmp_path, 'tools = ["qa_fetch"]\nbudget = { calls = 60, reports = 1 }', SEEN)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await killed(world, one, reports=1)
        await world.journal.add_finding(raised(one))
        (row,) = await world.journal.findings(RUN)
        await world.journal.set_finding(RUN, row.fingerprint, state="confirmed", envelope="the finding")
        assert await world.journal.claim_posting(RUN, row.fingerprint)
        (report,) = await recover(world)
        assert [row.state for row in report.findings] == ["posted"]
        assert await world.journal.spent(RUN) == {"reports": 1}
        mine = [
            entry.text
            for entry in await world.chain.log.range(0, 1000)
            if entry.sender == world.chain.identity
        ]
        assert mine == ["the finding"]


async def test_a_footer_that_the_journal_has_not_heard_of_decides(house: House, tmp_path: Path) -> None:
    one = persona(tmp_path, f'tools = ["qa_fetch"]\n{BUDGET}', SEEN)
    state = await house.state(tmp_path)
    async with house.world(state, one) as world:
        await killed(world, one)
        await world.journal.start_settling(RUN)
        world.folder(RUN).mkdir(parents=True)
        sink = TrajectoryFile(world.folder(RUN) / "trajectory.jsonl")
        sink.write(
            Header(
                run=RUN,
                persona="qa-row",
                persona_sha256="0" * 64,
                driver="playbook",
                platform="devnet",
                chain_id=31337,
                rung="exercise",
                jail="x",
                budget={},
                trigger="manual",
            )
        )
        sink.write(Footer(run=RUN, outcome="done"))
        sink.close()
        (report,) = await recover(world)
        assert (report.outcome, (await world.journal.run(RUN)).outcome) == ("done", "done")


async def test_ctrl_c_ends_a_run_cleaned_up_with_a_footer(house: House, tmp_path: Path) -> None:
    async with hanging() as (url, asked):
        state = await house.state(tmp_path, (f'site = "{house.devnet.url}"', f'site = "{url}"'))
        process = subprocess.Popen(  # noqa: ASYNC220 -- the signal must reach it as a terminal's would
            [sys.executable, "-m", "fleet.cli", "run", "qa-smoke"],
            env={"PATH": os.environ["PATH"], "HOME": str(state), "STATE_DIRECTORY": str(state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process, anyio.fail_after(20):
            while not asked:  # noqa: ASYNC110 -- the hanging server has no event to wait for
                await anyio.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, err = await anyio.to_thread.run_sync(process.communicate)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (folder,) = (state / "runs").iterdir()
    last = list(read(folder / "trajectory.jsonl"))[-1]
    assert isinstance(last, Footer)
    assert last.outcome == "cancelled"
    assert not (folder / "keys").exists()
    assert list((state / "jails").glob("*.jail")) == []
