"""Whatever ends a model's run, the playbook asks what is open, and the run says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.config import FleetConfig, parse
from fleet.drivers.model.driver import ModelDriver
from fleet.drivers.session import RunOver
from fleet.personas.model import FailFast, PolicySection
from fleet.runs.driver_choice import DriverChoice, configured_model
from tests.doubles.model import ModelPrompt, Raw, Refuse, Say, Script, ScriptedCall, Silence, serve_model
from tests.doubles.model_scripts import HOSTILE, always, in_order
from tests.drivers.modelled import KEY, section
from tests.runs.table import Table, look, persona, seated

pytestmark = pytest.mark.anyio

EVENT = b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}\n\n'
HALF = ScriptedCall("run_probe", '{"probe": "fir')
FIRST = ScriptedCall("run_probe", {"probe": "first"})
ENDINGS: Mapping[str, Script] = {
    **HOSTILE,
    "html-in-place-of-a-stream": always(Raw((b"<html><body>502 Bad Gateway</body></html>",), "text/html")),
    "html-as-a-stream": always(Raw((b"<!doctype html>\n\n<title>Sign in</title>\n\n",))),
    "json-of-another-kind": always(Raw((b'{"error": {"message": "no"}}',), "application/json")),
    "stream-without-an-end": always(Say(text="I look", has_end=False)),
    "stream-without-content": always(Raw((EVENT,))),
    "length-in-text": always(Say(text="x" * 300, finish="length")),
    "length-in-a-call": always(Say(calls=[HALF], finish="length")),
    "malformed-probe": always(Say(calls=[HALF])),
    "unknown-probe": always(Say(calls=[ScriptedCall("run_probe", {"probe": "nothing"})])),
    "finish-at-once": always(Say(calls=[ScriptedCall("finish", {"detail": "all is well"})])),
    "same-call-again": always(Say(calls=[ScriptedCall("qa_fetch", {"url": "http://site/x"})])),
    "quota": always(Refuse(status=402)),
    "one-probe-then-html": in_order(Say(calls=[FIRST]), Raw((b"<html></html>",), "text/html")),
    "one-probe-then-401": in_order(Say(calls=[FIRST]), Refuse(status=401)),
    "one-probe-then-silence": in_order(Say(calls=[FIRST]), Silence(60.0)),
}
QUICK = PolicySection(turn_timeout="2s", max_turns_per_run=14)
USUAL = PolicySection(turn_timeout="30s", max_turns_per_run=14)


async def driven(table: Table) -> tuple[str, str]:
    """Outcome and detail of a run."""
    try:
        return "done", await table.drive()
    except RunOver as over:
        return over.outcome, over.detail


def choice(driver: ModelDriver) -> DriverChoice:
    return DriverChoice(name="model", drive=driver, model="openai:scripted", explores=True)


@pytest.mark.sampled(3)
# What the driver is called changes the outcome alone: of each way to end one is enough with it.
@pytest.mark.parametrize(
    ("name", "driver"),
    [
        *((name, "auto") for name in ENDINGS),
        *((name, "model") for name in ("html-as-a-stream", "finish-at-once", "quota", "one-probe-then-401")),
    ],
)
async def test_the_playbook_asks_what_a_model_left_open(tmp_path: Path, name: str, driver: str) -> None:
    one = persona(look("first"), look("second", "result.status == 418"), tokens=10**6, driver=driver)
    policy = QUICK if name.endswith("silence") else USUAL
    one = replace(one, persona=one.persona.model_copy(update={"policy": policy}))
    async with serve_model(ENDINGS[name]) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            outcome, detail = await driven(table)
            plan = {item.id: item.state for item in table.desk.state.plan.items}
            assert plan == {"first": "healthy", "second": "finding"}, detail
            (change,) = table.said("driver.changed")
            assert (change.before, change.after) == ("model", "playbook")
            assert [event.state for event in table.said("finding.verified")] == ["confirmed"]
            assert (outcome == "done") == (driver == "auto"), outcome
            assert detail.startswith("the model ended: ")
            assert change.reason in detail


SPEND = always(Say(calls=[ScriptedCall("qa_fetch", {"url": f"http://site/{n}"}) for n in range(9)]))
CLAIM = {
    "title": "a claim of the model",
    "severity": "low",
    "steps": [{"tool": "qa_fetch", "args": {"url": "{site}/c"}}],
}


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        (SPEND, 12),
        (always(Say(calls=[ScriptedCall("report_finding", CLAIM | {"expect": "result.status == 200"})])), 3),
    ],
)
async def test_a_model_leaves_the_calls_that_open_probes_need(
    tmp_path: Path, script: Script, calls: int
) -> None:
    one = persona(look("first"), look("second"), tokens=10**6, calls=calls, policy=USUAL)
    async with serve_model(script) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            await driven(table)
            assert table.desk.state.plan.looked() == 2
            asked = [args["url"] for _, args in table.jail.calls]
            assert asked[-2:] == ["http://site/first", "http://site/second"]
            assert len(asked) <= calls


async def test_many_workers_may_look_around_as_long_as_one(tmp_path: Path) -> None:
    """Eight at a time, each with two turns after its probe that bring nothing: one alone may have as many."""
    ids = [f"probe-{number}" for number in range(8)]
    around = [Say(calls=[ScriptedCall("qa_fetch", {"url": f"http://site/{at}"})]) for at in (1, 2)]
    ends = Say(calls=[ScriptedCall("finish", {"detail": "seen"})])

    def script(asked: ModelPrompt) -> Say:
        (mine,) = [one for one in ids if one in str(asked.messages[1])]
        probe = Say(calls=[ScriptedCall("run_probe", {"probe": mine})])
        return (probe, *around, ends)[len(asked.answers())]

    one = persona(*map(look, ids), tokens=10**6, policy=USUAL.model_copy(update={"max_turns_per_run": 100}))
    async with serve_model(script) as model:
        text = f'[model]\nname = "openai:scripted"\nbase_url = "{model.url}"\nworkers = 8\nmax_tokens = 64'
        make = configured_model(parse(FleetConfig, text, file="f"), tmp_path)
        assert make is not None
        async with seated(tmp_path, one, hand=make(one)) as table:
            assert await driven(table) == ("done", "the model finished")
            assert {item.tries for item in table.desk.state.items} == {1}
            assert len(table.said("turn")) == 4 * len(ids)


@pytest.mark.parametrize(("turns", "asked"), [(3, 2), (4, 2), (1, 1), (40, 6)])
async def test_a_model_leaves_turns_for_open_probes(tmp_path: Path, turns: int, asked: int) -> None:
    policy = PolicySection(max_turns_per_run=turns)
    one = persona(look("first"), look("second"), tokens=10**6, policy=policy)
    async with serve_model(HOSTILE["stops-at-once"]) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            await driven(table)
            assert len(model.asked) == asked
            assert len(table.said("turn")) <= turns
            assert table.desk.state.plan.looked() == min(2, turns - asked)


async def test_a_silent_model_leaves_time_for_open_probes(tmp_path: Path) -> None:
    one = persona(look("first"), look("second"), tokens=10**6)
    budget = one.persona.budget
    assert budget is not None
    short = {"budget": budget.model_copy(update={"wall": "8s"})}
    one = replace(one, persona=one.persona.model_copy(update=short))
    async with serve_model(HOSTILE["silence"]) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            outcome, detail = await driven(table)
            assert (outcome, table.desk.state.plan.looked()) == ("done", 2)
            why = "deadline_exceeded: the rest of the time is for the playbook"
            assert detail == f"the model ended: {why}; the playbook looked at 2 of 2 probes"


@pytest.mark.parametrize(
    ("name", "fast"),
    [
        ("401", FailFast(on_chat_error=True)),
        ("refusal", FailFast(on_chat_error=True)),
        ("garbage", FailFast(on_chat_error=True)),
        ("flood", FailFast(on_validation_failure=True)),
    ],
)
async def test_a_policy_that_fails_fast_is_obeyed(tmp_path: Path, name: str, fast: FailFast) -> None:
    one = persona(look("first"), tokens=10**6, policy=PolicySection(fail_fast=fast))
    async with serve_model(HOSTILE[name]) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            outcome, _ = await driven(table)
            assert outcome in ("failed", "agent_stuck")
            assert (table.said("driver.changed"), table.desk.state.plan.looked()) == ([], 0)


async def test_stop_ends_the_run_and_not_only_its_model(tmp_path: Path) -> None:
    one = persona(look("first"), tokens=10**6)

    def script(_: object) -> Say:
        table.stop()
        return Say(text="I go on")

    async with serve_model(script) as model:
        hand = choice(ModelDriver(section(model.url, max_tokens=64), KEY))
        async with seated(tmp_path, one, hand=hand) as table:
            assert (await driven(table))[0] == "stopped"
            assert (table.said("driver.changed"), table.jail.calls) == ([], [])
