"""A reload reaches everything that reads what may change, over the daemon as the product wires it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from fleet.app.bootstrap import Options
from fleet.app.daemon import make, ways_in
from fleet.app.persona_sets import roster
from fleet.app.wiring import open_world
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role, TxRequest
from fleet.clock import SystemClock
from fleet.config import load_fleet
from fleet.config.fleet import AuthoritySection
from fleet.config.scope import ScheduleSection
from fleet.errors import BudgetExceeded, Refused
from fleet.events.daemon_events import Feed
from fleet.gate.budget import Budget
from fleet.gate.model import Action
from fleet.gate.stop import resume, stopped
from fleet.runs.call.halt import HALTS
from fleet.runs.context import FleetContext
from fleet.runs.run import opened
from fleet.service.daemon import WEATHER_S, Daemon
from fleet.service.metrics import Tally
from fleet.service.readiness import Notifier
from fleet.service.retention import FolderRetention
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from fleet.store.tables.units import FLEET
from fleet.triggers.hooks.webhook import Delivery
from fleet.triggers.model import Firing
from sandbox.spec import Effect
from tests.jail.test_broker_rpc import post, read_answer
from tests.sandbox.doubles import Signer, listener
from tests.service.conftest import FETCH, Up, persona

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]
POST = FUNCTIONS["submitFeedback"]
WORD = "0x" + POST.selector.hex()


@dataclass
class Stand:
    """A daemon of the product's own making that is not started, over a real devnet."""

    up: Up
    daemon: Daemon
    world: FleetContext

    async def reload(self, text: str) -> Any:
        (self.up.state.parent / "config" / "fleet.toml").write_text(text)
        await self.daemon.reload()
        return self.up.events()[-1]

    async def broker(self) -> tuple[int, str]:
        """Status and rule of a transaction that a jail asks for."""
        port = Signer()
        asked = {"key": "caller", "to": self.world.platform.chain.diamond, "data": WORD, "gas": 100_000}
        with listener() as sock:
            async with self.world.egress(port)(sock):
                reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
                writer.write(post("/tx", json.dumps(asked).encode()))
                status, answer = await read_answer(reader)
                writer.close()
        return status, json.loads(answer).get("rule", "")

    def report(self) -> TxRequest:
        chain, data = self.world.platform.chain, POST.encode("said under an old configuration")
        return TxRequest(role=Role.IDENTITY, to=chain.diamond, gas=5_000_000, charge="none", data=data)

    async def fired(self, mark: str) -> bool:
        firing = Firing(f"qa-look@{mark}", "qa-look", "a test", datetime.now(UTC))
        return await self.daemon.queue.fire(firing)


@pytest.fixture
async def stand(up: Up, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    for name in ("STATE_DIRECTORY", "CONFIGURATION_DIRECTORY"):
        monkeypatch.setenv(name, up.environment()[name])
    up.drop("qa-look", persona("qa-look", FETCH, trigger='on = "hook:deploy"'))
    found, errors = roster(up.personas)
    assert not errors
    async with open_world(up.state, personas=found) as world, Rpc(world.platform.chain.rpc) as rpc:
        feed = Feed(up.state / "events.jsonl", clock=SystemClock())
        daemon = make(Options(up.state, (up.personas,)), world, rpc, found, feed, Notifier(), Tally())
        yield Stand(up, daemon, world)
        feed.close()


async def test_a_new_never_selector_is_in_force_everywhere_at_once(stand: Stand) -> None:
    world, one = stand.world, stand.daemon.personas["qa-look"]
    run = "abcdefgh"
    await world.source.trigger(
        NewRun(
            run_id=run,
            persona="qa-look",
            key=f"qa-look@a:{run}",
            platform="devnet",
            trigger="t",
            rung="",
            budget={},
        ),
        hand=True,
    )
    args = {"function": "feedbackCount", "data": WORD}
    call = Action(run=run, persona="qa-look", tool="qa_fetch", effect=Effect.LOOK, args=args)
    async with opened(world, run, one, Budget.of(one.persona.budget)) as flight:
        assert (await flight.context.gate.decide(call)).rule != "never"
        assert (await stand.broker())[1] != "never"
        await world.chain.signer.check(stand.report())
        assert WORD not in flight.drive.texts["GUARDRAILS.md"]

        told = await stand.reload(f'never = ["{WORD}"]\n')

        assert (told.type, told.changed, told.waiting) == ("config.reloaded", ("never",), ())
        assert (await flight.context.gate.decide(call)).rule == "never"
        assert await stand.broker() == (403, "never")
        for act in (world.chain.signer.check, world.chain.signer.submit):
            with pytest.raises(Refused) as caught:
                await act(stand.report())
            assert caught.value.rule == "never"
    async with opened(world, run, one, Budget.of(one.persona.budget)) as later:
        assert f"- {WORD}\n" in later.drive.texts["GUARDRAILS.md"]

    told = await stand.reload('never = ["0x12"]\n')
    assert told.type == "config.refused"
    with pytest.raises(Refused):  # the old list stays in force
        await world.chain.signer.check(stand.report())


async def test_the_limits_of_a_day_bind_runs_in_flight_new_ones_and_the_pages(stand: Stand) -> None:
    world, one = stand.world, stand.daemon.personas["qa-look"]
    assert await stand.fired("manual:1")
    (row,) = await world.journal.queued_runs()
    async with opened(world, row.run_id, one, Budget.of(one.persona.budget)) as flight:
        await flight.context.ledger.spend("calls")
        told = await stand.reload("[budget]\ncalls = 1\nwrites = 0\n")
        assert (told.changed, told.waiting) == (("budget",), ())
        for unit in ("calls", "writes"):
            with pytest.raises(BudgetExceeded, match="a day of the fleet"):
                await flight.context.ledger.spend(unit)
    assert not await stand.fired("manual:2")
    (skip, *_) = await world.journal.skips()
    assert "a day of the fleet is spent" in skip.reason, skip
    left = (await stand.daemon.health.snapshot()).journal.left[FLEET]
    assert (left["calls"], left["writes"]) == (0, 0)
    await stand.reload("")
    assert await stand.fired("manual:3")


async def test_what_an_ended_run_did_not_post_is_not_owed(stand: Stand) -> None:
    """A run that posts nothing, or had no report left, leaves its proven findings as they are."""
    journal, health = stand.world.journal, stand.daemon.health
    for run in ("muted", "outage"):
        await journal.trigger(
            NewRun(
                run_id=run,
                persona="qa-look",
                key=run,
                platform="devnet",
                trigger="t",
                rung="observe",
                budget={},
            )
        )
        await journal.claim(run, pid=1, pid_start=1)
        await journal.add_finding(
            FindingRow(run_id=run, fingerprint="f" * 12, data={"held": run == "outage"})
        )
        await journal.set_finding(run, "f" * 12, state="confirmed")
    assert (await health.snapshot()).outbox == 2
    for run in ("muted", "outage"):
        await journal.finish(run, "done")
    assert (await health.snapshot()).outbox == 1


async def test_webhooks_come_and_go(stand: Stand) -> None:
    daemon, delivery = stand.daemon, Delivery("deploy", (), b"{}")
    ingress = ways_in(stand.world, daemon.queue, daemon.triggers, daemon.personas)
    secret = stand.up.state / "keys" / "hook.deploy"
    secret.write_text("ab" * 32)
    secret.chmod(0o600)
    assert ingress.unwanted(delivery).status == 404  # type: ignore[union-attr]
    await stand.reload("[hooks.deploy]\n")
    assert ingress.unwanted(delivery).status == 400  # type: ignore[union-attr]
    await stand.daemon.triggers.plan(stand.daemon.personas["qa-look"])
    assert await stand.world.journal.skips() == []
    await stand.reload("")
    assert ingress.unwanted(delivery).status == 404  # type: ignore[union-attr]
    await stand.daemon.triggers.plan(stand.daemon.personas["qa-look"])
    assert len(await stand.world.journal.skips()) == 1


async def test_what_is_kept_follows_the_configuration(stand: Stand) -> None:
    world, folder = stand.world, stand.up.state / "runs" / "over2345"

    class Long(SystemClock):
        def now(self) -> datetime:
            return datetime.now(UTC) - timedelta(days=10)

    async with await Journal.open(stand.up.state / "fleet.db", clock=Long()) as journal:
        await journal.trigger(
            NewRun(
                run_id="over2345",
                persona="qa-look",
                key="o",
                platform="devnet",
                trigger="t",
                rung="",
                budget={},
            )
        )
        await journal.finish("over2345", "done", "all is well")
    folder.mkdir(parents=True)
    (folder / "trajectory.jsonl").write_bytes(bytes(2000))
    keeper = FolderRetention(world, stand.daemon.feed)
    await keeper.look()
    assert folder.is_dir()
    told = await stand.reload("concurrency = 7\n[keep]\ndays = 5\nrecord_days = 0\n")
    assert (told.changed, told.waiting) == (("concurrency", "keep"), ())
    await keeper.look()
    assert not folder.exists()


async def test_what_waits_for_a_restart_stays_as_it_was(stand: Stand) -> None:
    told = await stand.reload('identity = "elsewhere"\ntrusted = ["0x' + "ab" * 20 + '"]\n')
    assert (told.changed, told.waiting) == (("trusted",), ("identity",))
    assert stand.world.config.identity == "keys/identity"
    assert stand.world.config.trusted == ("0x" + "ab" * 20,)


async def test_tests_go_on_after_an_excluded_time_when_a_person_says_so(stand: Stand) -> None:
    daemon, state = stand.daemon, stand.up.state

    async def weather(**schedule: Any) -> str:
        """What STOP says after a look at the schedule."""
        section = ScheduleSection.model_validate(schedule)
        platform = stand.world.platform.model_copy(update={"schedule": section})
        daemon.world = replace(stand.world, platform=platform)
        with anyio.move_on_after(WEATHER_S / 2):
            await daemon._weather()
        pause = stopped(state)
        return pause.why if pause else ""

    today = datetime.now(UTC).date().isoformat()
    assert await weather() == ""
    assert await weather(excluded=[today], resume="itself") == ""
    assert f"schedule.excluded {today} begins, or goes on (the schedule" in await weather(excluded=[today])
    assert "the platform may be tested again" in await weather()  # the time is over: it stays
    with pytest.raises(Refused):
        resume(state)
    assert resume(state, "maintenance is done, says ops")
    assert await weather() == ""
    assert await weather(excluded=[today])
    halts = [json.loads(text) for text in (await stand.world.journal.facts(HALTS)).values()]
    assert [(one["act"], one["who"]) for one in halts] == [("stop", "the schedule")] * 2


async def test_a_signed_scope_that_is_changed_stops_the_fleet(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, state = stand.daemon, stand.up.state
    signer = AuthoritySection(signers=("0x" + "ab" * 20,))

    async def weather() -> str:
        daemon._scope_due = float("-inf")
        with anyio.move_on_after(WEATHER_S / 2):
            await daemon._weather()
        pause = stopped(state)
        return pause.why if pause else ""

    assert await weather() == ""
    config = stand.up.state.parent / "config" / "fleet.toml"
    config.write_text(f'[authority]\nsigners = ["{signer.signers[0]}"]\n')
    assert await weather() == ""  # what is not in force yet is not watched
    monkeypatch.setattr(stand.world.live, "_config", load_fleet().model_copy(update={"authority": signer}))
    why = await weather()
    assert "there is no devnet.sig" in why
    assert "(the fleet, whose signed scope was changed" in why
    assert "and signed: `fleet check scope`" in await weather()
    refused = [event for event in stand.up.events() if event.type == "config.refused"]
    assert "the scope is not as it was signed" in refused[-1].reason
    with pytest.raises(Refused):
        resume(state)
