"""What hangs on what a caller did before is proven by callers that did nothing before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.agent import questions
from fleet.drivers.explore.agent.knowledge import KnownAgent
from fleet.personas.model import Step
from tests.runs.table import RUN, persona, seated
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio

PRICE = 5


def call(message: str) -> Question:
    args = {"target": "claude", "message": message}
    return Question((Step(tool="qa_call", args=args),))


class Remembering:
    """An agent that knows its callers: a defect of one kind shows to a caller without, or with, a history."""

    def __init__(self, kind: str) -> None:
        self.kind, self.table = kind, None
        self.heard: Counter[tuple[str, str]] = Counter()
        self.callers: list[str] = []

    async def __call__(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        table: Any = self.table
        caller = table.drive.runner.session.wallet.addresses()["caller"]
        self.callers.append(caller)
        before = [count for (who, _), count in self.heard.items() if who == caller]
        again = self.heard[caller, args["message"]]
        self.heard[caller, args["message"]] += 1
        said = {"ok": True, "status": 200, "reply": "fine", "charged": PRICE, "advertised_wei": PRICE}
        if self.kind == "charged twice within a minute" and again:
            return said | {"charged": 2 * PRICE}
        if self.kind == "empty for a new caller" and not before:
            return said | {"reply": "", "empty": True, "finish_reason": "stop"}
        if self.kind == "overcharged":
            return said | {"charged": PRICE + 2}
        return said


@pytest.mark.parametrize(
    ("kind", "asked", "titles", "state"),
    [
        ("charged twice within a minute", ["hello", "hello"], 1, "dropped"),
        ("empty for a new caller", ["hello you"], 1, "confirmed"),
        ("overcharged", ["hello you"], 1, "confirmed"),
        ("", ["hello", "hello"], 0, ""),
    ],
)
async def test_each_attempt_of_a_proof_has_callers_of_its_own(
    tmp_path: Path, kind: str, asked: list[str], titles: int, state: str
) -> None:
    agent = Remembering(kind)
    one = persona(tools=("qa_call",))
    async with seated(tmp_path, one, hand=ANY, answer=agent) as table:
        agent.table = table  # type: ignore[assignment]
        for words in asked:
            async with table.desk.turn() as turn:
                await turn.pose([call(words)])
        explored = len(agent.callers)
        await table.drive.runner.prove_raised()
        rows = await table.world.journal.findings(RUN)
        assert [row.state for row in rows] == [state] * titles
        proofs = agent.callers[explored:]
        assert len(proofs) == len(set(proofs))
        assert not set(proofs) & set(agent.callers[:explored])


async def test_without_writes_the_callers_stay(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(tools=("qa_call",), writes=5), hand=ANY) as table:
        session = table.drive.runner.session
        await session.wallet.ready("qa_call", {})
        await table.drive.ledger.spend("writes", 5)
        before = session.wallet.addresses()
        await session.fresh_callers()
        session.bindings(fresh_name=False)
        await session.wallet.ready("qa_call", {})
        assert session.wallet.addresses() == before


def test_no_other_question_has_the_words_of_a_compared_charge() -> None:
    agent = KnownAgent("a")
    told = [
        (key, [str(one["message"]) for one in messages])
        for _, key, messages in (*questions.wire(agent, first=True),)
    ]
    priced = {key: set(words) for key, words in told if key.startswith("price/") or key == "twice"}
    assert set(priced) == {"price/twice", "price/stream", "twice"}
    for key, words in priced.items():
        others = {one for other, messages in told if other != key for one in messages}
        assert not words & others, key


async def test_what_is_charged_for_a_repetition_is_found_under_its_true_title(tmp_path: Path) -> None:
    agent = Remembering("charged twice within a minute")
    (again,) = [one for _, key, one in questions.wire(KnownAgent("claude"), first=True) if key == "again"]
    question = Question(tuple(Step(tool="qa_call", args={"target": "claude"} | dict(one)) for one in again))
    async with seated(tmp_path, persona(tools=("qa_call",)), hand=ANY, answer=agent) as table:
        agent.table = table  # type: ignore[assignment]
        async with table.desk.turn() as turn:
            await turn.pose([question])
        await table.drive.runner.prove_raised()
        (row,) = await table.world.journal.findings(RUN)
    assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)
    assert ", asked again, costs 10 wei, not 5 wei" in row.data["seen"]
    assert row.repro.count("qa_call") == 2
