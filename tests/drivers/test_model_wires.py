"""The same scripts over every protocol that the fleet speaks: what each SDK makes of it is the same."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from fleet.drivers.desk import ProviderFailed
from fleet.drivers.model.driver import ModelDriver
from fleet.events.model import MessageDelta, MessageDone, MessageSaid, MessageStarted
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Refuse, Say, ScriptedCall, serve_model
from tests.doubles.model_scripts import always, good, in_order
from tests.doubles.model_wire.wire import WIRES
from tests.drivers.modelled import CALL, DONE, KEY, driven, good_end, run, section

pytestmark = pytest.mark.anyio

USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 100,
    "total_tokens": 1_100,
    "prompt_tokens_details": {"cached_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 60},
}
KINDS = sorted(WIRES)


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def said(desk: MemoryDesk, index: int) -> str:
    live = [event for event in desk.shown if isinstance(event, MessageStarted | MessageDelta)]
    return "".join(event.text for event in live if event.index == index)


async def test_a_good_run_with_calls_at_once_and_everything_shown(kind: str) -> None:
    desk, model = await run(good(["first", "second"], CALL), kind=kind)
    assert desk.asked == [
        ("call_0_0", "run_probe", {"probe": "first"}),
        ("call_0_1", "run_probe", {"probe": "second"}),
        ("call_1_0", "qa_fetch", {"url": "http://site/x"}),
        ("call_2_0", "finish", {"detail": "the plan is done"}),
    ]
    assert not any(reply.is_error for reply in desk.replies)
    assert [turn.failure for turn in desk.turns] == ["", "", ""]
    first = [event for event in desk.shown if getattr(event, "index", 9) < 4]
    kinds = [event.kind for event in first if isinstance(event, MessageStarted)]
    assert kinds == ["reasoning", "text", "tool_request", "tool_request"]
    assert said(desk, 0) == "First the plan, then what it leaves out."
    assert said(desk, 1) == "I start with the plan."
    assert [json.loads(said(desk, at)) for at in (2, 3)] == [{"probe": "first"}, {"probe": "second"}]
    assert {event.index for event in first if isinstance(event, MessageDone)} == {0, 1, 2, 3}
    starts = [event.index for event in desk.shown if isinstance(event, MessageStarted)]
    assert len(starts) == len(set(starts))
    assert len(model.asked) == 3


async def test_what_goes_out_is_the_same_conversation(kind: str) -> None:
    _, model = await run(good(["first", "second"], CALL), kind=kind)
    asked = model.asked[-1]
    assert asked.wire is WIRES[kind]
    assert asked.tools == {"run_probe", "report_finding", "finish", "qa_fetch"}
    assert asked.system().startswith("You test a platform.\n\nText between <data ")
    assert "you asked for" not in asked.system()
    answers = asked.answers()
    assert sorted(answers) == ["call_0_0", "call_0_1", "call_1_0"]
    assert "you asked for http://site/x" in answers["call_1_0"]
    assert all("<data " in one for one in answers.values())


async def test_the_key_travels_in_the_header_of_its_protocol_only(kind: str) -> None:
    _, model = await run(good(["first", "second"]), kind=kind)
    for asked in model.asked:
        holders = [name for name, value in asked.headers.items() if KEY in value]
        assert holders == [WIRES[kind].key]
        assert KEY not in json.dumps(asked.body) + asked.query


async def test_usage_is_what_the_endpoint_said(kind: str) -> None:
    probes = [ScriptedCall("run_probe", {"probe": probe}) for probe in ("first", "second")]
    desk, _ = await run(in_order(Say(calls=probes, usage=USAGE), DONE), kind=kind, prices=True)
    used = desk.settled[0]
    assert used is not None
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (1_000, 100, 400)
    assert used.reasoning_tokens == 60
    assert (used.cost_usd, used.model_calls, used.tool_calls) == ("0.003420", 1, 2)


@pytest.mark.parametrize("usage", [{}, None])
@pytest.mark.filterwarnings("ignore:Failed to extract usage")
async def test_a_usage_that_nobody_said_is_unknown_and_never_free(kind: str, usage: Any) -> None:
    desk, _ = await run(in_order(Say(calls=[CALL], usage=usage), *good_end()), kind=kind, prices=True)
    used = desk.settled[0]
    assert used is not None
    assert (used.input_tokens, used.cost_usd) == (None, None)


@pytest.mark.parametrize("args", ['{"url": "http', "[1, 2]"])
async def test_malformed_arguments_are_a_mistake_and_the_run_goes_on(kind: str, args: str) -> None:
    desk, model = await run(in_order(Say(calls=[ScriptedCall("qa_fetch", args)]), *good_end()), kind=kind)
    if kind == "google":  # its endpoint keeps them, and says so
        assert [turn.failure for turn in desk.turns] == ["invalid_action_exhausted", "", ""]
        assert "qa_fetch" not in [tool for _, tool, _ in desk.asked]
        assert "Your last answer was not executed" in json.dumps(model.asked[1].body)
    else:
        assert desk.asked[0] == ("call_0_0", "qa_fetch", args)
        assert desk.replies[0].is_error
        assert '"error"' in model.asked[1].answers()["call_0_0"]


async def test_a_key_that_is_refused_is_a_failed_provider_at_once(kind: str) -> None:
    async with driven(always(Refuse(status=401)), kind=kind) as (driver, model):
        with pytest.raises(ProviderFailed, match=r"^HTTP 401: no$"):
            await driver(desk := MemoryDesk())
    assert len(model.asked) == 1
    assert [used.input_tokens for used in desk.settled if used] == [0]


async def test_a_busy_endpoint_is_asked_again_after_the_pause_it_asks_for(kind: str) -> None:
    busy = Refuse(status=429, headers={"retry-after": "1"})
    started = anyio.current_time()
    desk, model = await run(in_order(busy, *good_end()), kind=kind)
    assert anyio.current_time() - started >= 1.0
    assert [turn.failure for turn in desk.turns] == ["", ""]
    assert len(model.asked) == 3


async def test_an_endpoint_is_tried_three_times_and_no_sdk_adds_to_it(kind: str) -> None:
    for status, tries in ((503, 3), (429, 3), (404, 1), (400, 1)):
        refuse = Refuse(status=status, headers={"retry-after": "0"})
        async with driven(always(refuse), kind=kind) as (driver, model):
            with pytest.raises(ProviderFailed):
                await driver(MemoryDesk())
        assert len(model.asked) == tries, status


@pytest.mark.parametrize("how", [{"cut_after": 8}, {"has_end": False}], ids=["broken", "short"])
@pytest.mark.parametrize("what", [{"text": "x" * 500}, {"calls": [CALL] * 12}], ids=["text", "calls"])
async def test_an_answer_without_its_end_is_worth_nothing(
    kind: str, how: dict[str, Any], what: dict[str, Any]
) -> None:
    desk, model = await run(in_order(Say(**how, **what), *good_end()), kind=kind)
    assert [turn.failure for turn in desk.turns] == ["provider_error", "", ""]
    assert "qa_fetch" not in [tool for _, tool, _ in desk.asked]
    assert len(model.asked) == 3
    if "text" in what:
        broken = [event for event in desk.shown if isinstance(event, MessageSaid)]
        assert [event.is_complete for event in broken] == [False]


@pytest.mark.parametrize("no", [Say(refusal="I will not."), Say(text="I", finish="content_filter")])
async def test_a_refusal_is_a_refusal_and_is_charged(kind: str, no: Say) -> None:
    desk, _ = await run(in_order(no, *good_end()), kind=kind)
    assert [turn.failure for turn in desk.turns] == ["refusal", "", ""]
    assert desk.settled[0] is not None
    assert desk.settled[0].input_tokens == 100


async def test_an_answer_that_reached_its_longest_goes_to_the_desk_as_it_came(kind: str) -> None:
    desk, _ = await run(in_order(Say(calls=[CALL], finish="length"), *good_end()), kind=kind)
    assert desk.asked[0][1] == "qa_fetch"


async def test_nobody_there_is_a_failed_provider(kind: str) -> None:
    desk = MemoryDesk()
    with pytest.raises(ProviderFailed, match="ModelConnectionError"):
        await ModelDriver(section("http://127.0.0.1:9", kind=kind), KEY)(desk)
    assert [used.input_tokens for used in desk.settled if used] == [0]


async def test_nothing_from_the_environment_is_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_model(always(DONE)) as elsewhere:
        for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI"):
            monkeypatch.setenv(f"{name}_BASE_URL", elsewhere.url_of(kind))
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY"):
            monkeypatch.setenv(name, "sk-from-the-environment")
        monkeypatch.setenv("HTTP_PROXY", elsewhere.url)
        _, model = await run(in_order(*good_end()), kind=kind)
    assert elsewhere.asked == []
    assert len(model.asked) == 2
    assert "from-the-environment" not in str([asked.headers for asked in model.asked])
