"""A real small model behind a real OpenAI-compatible server drives a run to a valid end.

270 million parameters find nothing, and misunderstand most of what they are told: what is shown here is that
whatever such a model says, the run stays within its bounds and ends with its footer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from fleet.chain.node.rpc import Rpc
from fleet.config import ModelSection
from fleet.devnet.devnet import Devnet
from fleet.drivers.model.endpoint import open_endpoint
from fleet.drivers.model.exchange import ModelExchange
from fleet.events.model import Footer, Header, TurnEnded
from fleet.events.trajectory import read
from fleet.runs.run import fire
from tests.acceptance.conftest import House, persona, probe, step
from tests.doubles.drivers import MemoryDesk

pytestmark = [pytest.mark.model, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(1800)]

TURNS = 4
FRONT = f"""tools = ["qa_fetch"]
driver = "model"
budget = {{ calls = 20, reports = 2, wall = "20m", tokens = 200000 }}
policy = {{ max_turns_per_run = {TURNS}, turn_timeout = "280s", max_continuations = 3 }}"""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with Devnet(tmp_path / "d", keys=tmp_path / "d" / "keys") as devnet, Rpc(devnet.chain.url) as rpc:
        yield House(devnet, rpc)


@pytest.mark.anyio
async def test_a_real_model_drives_a_run_to_its_end(
    endpoint: str, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await house.state(tmp_path)
    section = f'name = "openai:gemma", base_url = "{endpoint}", max_tokens = 128, timeout = "9m"'
    monkeypatch.setenv("QA_FLEET_MODEL", f"{{ {section}, stream = false, context = 6000 }}")
    front_page = probe("front-page", step("qa_fetch", url="{site}/"), expect="result.status == 200")
    one = persona(tmp_path, FRONT, front_page)
    async with house.world(state) as world:
        report = await fire(world, one)
        assert report.settled
        assert await world.journal.effects(report.run, states=["open"]) == []
        spent = await world.journal.spent(report.run)
    records = list(read(state / "runs" / report.run / "trajectory.jsonl"))
    head, *between, foot = records
    assert isinstance(head, Header)
    assert isinstance(foot, Footer)
    turns = [record for record in between if isinstance(record, TurnEnded)]
    print(f"\n{report.outcome}: {report.detail}")
    for turn in turns:
        print(
            f"turn {turn.index}: {len(turn.executed)} calls, {turn.failure or 'ok'}, {turn.seconds:.0f} s",
            turn.usage,
        )
    assert (head.driver, head.model) == ("model", "openai:gemma")
    assert foot.outcome == report.outcome != "failed"
    assert 1 <= len(turns) <= TURNS
    answered = [turn.usage for turn in turns if turn.usage and turn.usage.output_tokens]
    assert answered, "the model never answered"
    assert 0 < spent["tokens"] <= 200_000
    assert spent.get("calls", 0) <= 20


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
async def test_it_takes_a_talk_that_holds_an_answer_of_calls_alone(endpoint: str, stream: bool) -> None:
    """Whether the model itself ever answers so is chance: here it has, and is asked to go on."""
    desk, said = (
        MemoryDesk(turn_timeout_s=500),
        ToolCallPart("qa_fetch", {"url": "http://site/x"}, tool_call_id="a"),
    )
    back = ToolReturnPart("qa_fetch", "200", tool_call_id="a")
    talk: list[ModelMessage] = [ModelRequest.user_text_prompt("Look."), ModelResponse([said])]
    talk.append(ModelRequest([back]))
    section = ModelSection(name="openai:gemma", base_url=endpoint)
    async with open_endpoint(section, "", 500.0) as model, desk.turn() as turn:
        exchange = ModelExchange(
            model=model,
            parameters=ModelRequestParameters(),
            settings=ModelSettings(max_tokens=8),
            prices=None,
            turn=turn,
            index=0,
            key="",
            streamed=stream,
        )
        response = await exchange.run(talk)
    assert exchange.attempts == 1
    assert response.usage.output_tokens <= 8
