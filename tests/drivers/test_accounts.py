"""Two accounts of an API that describes itself: what is asked of them, by the real tool and broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_rows import AccountRows, OwnRecord
from fleet.drivers.explore.account.ways import ApiPlaces
from fleet.oracles.account.tokens import attempts
from fleet.oracles.documents.worded import in_words
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step
from tests.sandbox.doubles import Bench, Got, bench, json_answer
from tests.sandbox.members import DESCRIPTION, Members

pytestmark = pytest.mark.anyio
SOURCE, GUIDE = (Step(tool="qa_fetch", args={"url": "{site}" + path}) for path in ("/openapi.json", "/guide"))
FOUND = {
    "unsigned": "account-token",
    "guessable": "account-guessed",
    "kept": "account-ended account-endless",  # its tokens state no end
    "reads": "account-read",
    "writes": "account-change",
    "raises": "account-raised",
    "tries": "account-attempts",
}


def rows(
    document: dict[str, Any] = DESCRIPTION, *, acts: bool = True, source: Step = SOURCE
) -> AccountRows | None:
    places = ApiPlaces(lambda path: "{site}" + path, lambda url: url.removeprefix("{site}"), lambda _: acts)
    made = AccountRows.of(document, source, places)
    return made if isinstance(made, AccountRows) else None


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
    assert len(members.people) == 7  # one for each of five rows, and another where it is asked
    assert not any(one["password"] in text for one in members.people.values())
    assert "eyJ" not in text


@pytest.mark.parametrize(
    "switches", [("unsigned", "reads", "raises"), ("guessable", "kept", "writes", "tries")]
)
async def test_each_defect_is_found_by_its_own_oracle(switches: tuple[str, ...]) -> None:
    told, _ = await found(Members(*switches))
    assert set(told) == {oracle for switch in switches for oracle in FOUND[switch].split()}


@pytest.mark.parametrize("habits", [("dated", "kept", "silent", "polite"), ("nameless",)])
async def test_what_healthy_apis_do_is_no_defect(habits: tuple[str, ...]) -> None:
    """A token that ends soon by itself, a lock that is not shown, a refusal with status 200, a POST that does
    not name what it made: what stands at the collection's own path then is nothing of anybody's."""
    told, _ = await found(Members(*habits))
    assert told == []


async def test_a_token_in_the_answer_of_a_step_does_not_leave_the_jail() -> None:
    def opaque(got: Got) -> bytes:
        return json_answer(200, {"token": "f3a91c07d2", "session_id": "f3a91c07d2", "name": "x"})

    async with bench(opaque, acts="/v1") as it:
        args = {"url": f"{it.site.url}/v1/signup", "steps": [["one", "POST", "/v1/login", {}]]}
        result = await it.run("qa_account", args)
    assert [one["facts"] for one in result["answers"]] == [{"name": '"x"'}]


def test_without_a_way_to_sign_up_or_the_permission_to_act_nothing_is_asked() -> None:
    assert rows({"openapi": "3.0.3", "paths": {}}) is None
    assert rows(acts=False) is None


IN_WORDS = """
1. `POST /v1/members` with `{"nick": "hazel", "word": "at least 8 characters"}` answers 201.
2. `POST /v1/members/token` with the same body answers `{"token": "..."}`.

| call | what |
|---|---|
| `GET /v1/me` | nick, rank |
| `PATCH /v1/me` | `{"about": "..."}`; rank is given by us only |
| `POST /v1/wishes` | `{"slug": "tom-thumb", "words": "for the balcony"}` |
| `GET /v1/wishes/{id}` | your own wish |
| `DELETE /v1/wishes/{id}` | takes it back |
"""


def test_an_api_that_is_described_in_words_has_accounts_as_well() -> None:
    document = in_words(IN_WORDS)
    assert document is not None
    made = rows(dict(document))
    assert made is not None
    both = {"nick": "{handle}", "word": "{phrase}"}
    assert made.start == {
        "url": "{site}/v1/members",
        "fields": both,
        "login": "/v1/members/token",
        "login_fields": both,
    }
    asked = [question.steps[-1].args["steps"] for question in made.questions()]
    assert ["one", "POST", "/v1/wishes", {"slug": "tom-thumb", "words": "{mark}"}] in asked[-1]
    source = Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": IN_WORDS})
    for status, oracles in ((405, ["account-method"]), (204, [])):
        row = {"steps": [["one", "DELETE", "/v1/wishes/{id}", {}]]}
        last = Exchange("qa_account", row, {"ok": True, "answers": [{"status": status, "facts": {}}]})
        assert [one.oracle for one in judge([source, last], Facts())] == oracles


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


def test_a_short_field_gets_a_short_word_and_the_other_tries_to_remove_the_thing() -> None:
    document = json.loads(json.dumps(DESCRIPTION))
    paths = document["paths"]
    at, made = next((at, one) for at, one in paths.items() if "{" in at)
    collection = paths[at.rpartition("/")[0]]["post"]["requestBody"]["content"]["application/json"]["schema"]
    collection["properties"] |= {"size": {"type": "string", "maxLength": 4}}
    collection["required"] = [*collection.get("required", ()), "size"]
    made["delete"] = {"summary": "Removes it"}
    asked = rows(document)
    assert asked
    steps = [step for question in asked.questions() for step in question.steps[-1].args["steps"]]
    assert [step[3]["size"] for step in steps if step[1] == "POST" and "size" in step[3]] == ["qa"]
    removing = [step[0] for step in steps if step[1] == "DELETE" and "{id}" in step[2]]
    assert removing == ["other", "one"]


def test_a_right_is_asked_of_the_description_that_has_the_own_record() -> None:
    mine = rows()
    theirs = rows(source=GUIDE)
    assert mine
    assert theirs
    (asked,) = (one for one in mine.questions() if isinstance(one, OwnRecord))
    facts = {"admin": "false"}
    assert [*mine.raised(asked, facts)]
    assert not [*theirs.raised(asked, facts)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("at most 8 attempts a minute for one handle, then 429", 8),
        ("An address is locked after 5 failed login attempts.", 5),
        ("Up to 10 log-ins an hour.", 10),
        ("After five wrong passwords in a minute the handle is locked.", 5),
        ("At most 6 attempts to log in as one handle.", 6),
        ("There were 3 attempts to cross the river.", 0),
        ("At most 1000 attempts", 0),
        ("A failed webhook is delivered again, with at most 5 attempts.", 0),
        ("Log in first. Uploads: up to 5 attempts.", 0),
        ("At most 5 log-ins per second.", 0),
        ("An account has at most 5 log-ins at the same time.", 0),
        ("Up to 3 sign-ins on as many devices.", 0),
        ("At most 5 attempts to enter the reset code of a password.", 0),
        ("Log-ins are limited to 20 attempts a minute.", 0),  # more than can be tried twice over
    ],
)
def test_how_many_attempts_a_document_states(text: str, count: int) -> None:
    assert attempts(text) == count
