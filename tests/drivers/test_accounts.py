"""Two accounts of an API that describes itself: what is asked of them, by the real tool and broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.accounts import AccountRows, OwnRecord
from fleet.oracles.account_tokens import attempts
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step
from tests.sandbox.doubles import Bench, bench
from tests.sandbox.members import DESCRIPTION, Members

pytestmark = pytest.mark.anyio
SOURCE, GUIDE = (Step(tool="qa_fetch", args={"url": "{site}" + path}) for path in ("/openapi.json", "/guide"))
FOUND = {
    "unsigned": "account-token",
    "guessable": "account-token",
    "kept": "account-ended",
    "reads": "account-read",
    "writes": "account-change",
    "raises": "account-raised",
    "tries": "account-attempts",
}


def rows(document: dict[str, Any] = DESCRIPTION, *, acts: bool = True) -> AccountRows | None:
    return AccountRows.of(
        document, SOURCE, lambda path: "{site}" + path, lambda _: acts, lambda url: url.removeprefix("{site}")
    )


async def answered(it: Bench, question: Question) -> list[Exchange]:
    seen = []
    for step in question.steps:
        args = json.loads(json.dumps(dict(step.args)).replace("{site}", it.site.url))
        seen.append(Exchange(step.tool, step.args, await it.run(step.tool, args)))
    return seen


async def found(members: Members) -> tuple[list[str], str]:
    """What the oracles say of all that is asked, and every result as text."""
    told, text = [], ""
    async with bench(members, acts="/v1") as it:
        made = rows()
        assert made is not None
        questions = [*made.questions(), *made.attempts(GUIDE)]
        for question in questions:
            seen = await answered(it, question)
            assert all(one.result["ok"] for one in seen), seen
            told += [one.oracle for one in judge(seen, Facts())]
            text += json.dumps([one.result for one in seen])
            if isinstance(question, OwnRecord):
                questions += made.raised(question, seen[-1].result["answers"][0]["facts"])
    return told, text


async def test_a_healthy_api_is_quiet_and_no_token_or_passphrase_leaves_the_jail() -> None:
    members = Members()
    told, text = await found(members)
    assert told == []
    assert len(members.people) == 10  # two for each of five rows
    assert not any(one["password"] in text for one in members.people.values())
    assert "eyJ" not in text


@pytest.mark.parametrize(
    "switches", [("unsigned", "reads", "raises"), ("guessable", "kept", "writes", "tries")]
)
async def test_each_defect_is_found_by_its_own_oracle(switches: tuple[str, ...]) -> None:
    told, _ = await found(Members(*switches))
    assert set(told) == {FOUND[switch] for switch in switches}


def test_without_a_way_to_sign_up_or_the_permission_to_act_nothing_is_asked() -> None:
    assert rows({"openapi": "3.0.3", "paths": {}}) is None
    assert rows(acts=False) is None


def test_only_what_the_description_calls_ones_own_is_private() -> None:
    members = json.loads(json.dumps(DESCRIPTION).replace("One of my notes", "A note"))
    made = rows(members)
    assert made is not None
    *_, (_, row) = (one.steps for one in made.questions())
    yes = {"status": 200, "one": True, "other": False, "facts": {}}
    answers = [yes | {"one": who == "one" or "{id}" in path} for who, _, path, _ in row.args["steps"]]
    answers = [
        one | {"status": 401} if step[0] == "anonymous" else one
        for one, step in zip(answers, row.args["steps"], strict=True)
    ]
    for document, told in ((members, []), (DESCRIPTION, ["account-read"])):
        lead = Exchange("qa_fetch", SOURCE.args, {"status": 200, "text": json.dumps(document)})
        seen = [lead, Exchange("qa_account", row.args, {"ok": True, "answers": answers})]
        assert [one.oracle for one in judge(seen, Facts())] == told


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("at most 8 attempts a minute for one handle, then 429", 8),
        ("An address is locked after 5 failed login attempts.", 5),
        ("Up to 10 log-ins an hour.", 10),
        ("There were 3 attempts to cross the river.", 0),
        ("At most 1000 attempts", 0),
    ],
)
def test_how_many_attempts_a_document_states(text: str, count: int) -> None:
    assert attempts(text) == count
