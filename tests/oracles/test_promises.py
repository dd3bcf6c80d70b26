"""What counts as a promise that a repeated call is charged once, and when it is broken."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from fleet.config import Platform
from fleet.drivers.explore.agent import explorer as agent
from fleet.drivers.explore.port import ExplorerContext
from fleet.oracles import table
from fleet.oracles.agent import charges
from fleet.oracles.agent.charges import charged_once, kept_private
from fleet.oracles.model import Exchange, Facts
from sandbox.tools import TOOLS

EXAMPLE = charges.charged_again.example


@pytest.mark.parametrize(
    "text",
    [
        "Prices.\nOne message, one charge, also when it is sent twice.",
        "A message that is sent again is not charged again.",
        "If a request is sent twice, it is billed only once.",
        "Duplicate requests are free.",
        "- Calls cost 5 credits.\n- Retries of a call are never charged.",
        "A repeated message costs nothing more: there is no second charge.",
        "You won't be charged for a message that you resend: it is paid once.",
    ],
)
def test_a_promise_names_the_repetition_and_says_that_it_is_free(text: str) -> None:
    assert charged_once(text)


@pytest.mark.parametrize(
    "text",
    [
        "One message, one charge.",
        "Each message is charged once.",
        "A message that is sent twice is charged twice.",
        "A message is charged once, and charged again where it is repeated.",
        "A request with the same idempotency key is charged once, also when it is sent twice.",
        "Retries of a failed call are free.",
        "A call that times out with no answer may be sent again; it is not charged.",
        "A repeated message is charged once per turn.",
        "Send your message again. It is free.",
        "Reading a page twice is free.",
    ],
)
def test_no_promise_for_the_question_that_is_asked(text: str) -> None:
    assert charged_once(text) == ""


def judged(**answer: Any) -> list[str]:
    page, call = EXAMPLE
    changed = replace(call, result={**call.result, **answer})
    return [one.oracle for one in table.judge((page, changed), Facts())]


def test_only_a_second_charge_for_a_second_answer_breaks_it() -> None:
    assert judged() == ["charged-again"]
    assert judged(charged_again=0) == judged(charged=0) == []
    assert judged(status_again=409) == ["paid-refusal"]
    assert table.judge(EXAMPLE[1:], Facts()) == ()
    own = replace(EXAMPLE[0], args={"url": "{face:qa-abcd2345-1}"})
    assert table.judge((own, EXAMPLE[1]), Facts()) == ()


@pytest.mark.parametrize(
    ("text", "asked"), [(str(EXAMPLE[0].result["text"]), ["fern", "moss"]), ("Say hello.", [])]
)
def test_the_explorer_asks_each_agent_beside_a_document_that_promises_it(text: str, asked: list[str]) -> None:
    profile: dict[str, Any] = {
        "name": "p",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "d1" * 20},
        "web": {"site": "http://site.test"},
        "call_targets": ["fern", "moss"],
    }
    ground = ExplorerContext(platform=Platform.model_validate(profile), tools=frozenset(TOOLS), acts=True)
    explorer = agent.make(ground, Random(1), {})
    for question in explorer.ask(48):
        results = [{"ok": True, "status": 200, "text": text} for _ in question.steps]
        explorer.learn(question, results)
    posed = [one for one in explorer.ask(48) if [step.tool for step in one.steps] == ["qa_fetch", "qa_call"]]
    assert [one.steps[1].args["target"] for one in posed] == asked
    assert all(one.steps[1].args["twice"] for one in posed)


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("What you tell an agent to remember is yours: nobody\nelse can recall it.", True),
        ("Notes are shown only to you.", True),
        ("Nobody else can recall a note unless you share it.", False),
        ("An agent remembers what it is told.", False),
        ("Nobody else can read your invoices.", False),
    ],
)
def test_what_an_agent_keeps_is_the_callers_own_where_a_document_says_so(text: str, private: bool) -> None:
    assert bool(kept_private(text)) is private
    page = Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": text})
    talk = [
        ("remember moss is birch and alder", "I will remember it.", "caller"),
        ("recall moss", "moss is birch and alder", "other"),
        ("remember moss is heron by the pond", "I will remember it.", "caller"),
        ("recall moss", "moss is heron by the pond", "other"),
    ]
    seen = [
        Exchange(
            "qa_call",
            {"target": "a", "message": said, "caller": who},
            {"ok": True, "status": 200, "reply": reply},
        )
        for said, reply, who in talk
    ]
    assert [one.oracle for one in table.judge([page, *seen], Facts())] == ["other-reads"] * private
    assert table.judge(seen, Facts()) == ()
