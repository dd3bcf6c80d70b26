"""Proofs: three looks that could tell, of the same thing, in rounds; and what stands in their way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.desk import RUN_PROBE
from fleet.findings.redact import Redactor
from fleet.oracles.model import Facts
from fleet.personas.model import Step
from fleet.runs.proof.attempt import Attempt
from fleet.runs.proof.candidates import answered, showing
from fleet.runs.proof.narrowed import narrowed
from fleet.runs.proof.verify import Proof, judge
from fleet.severity import Severity
from fleet.store.rows import FindingRow
from tests.runs.table import PLATFORM, RUN, Table, look, persona, seated, well
from tests.runs.test_desk import ANY, ask

pytestmark = pytest.mark.anyio

Say = Callable[[str, int], dict[str, Any]]


def saying(say: Say) -> Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]:
    """A platform that answers by page and by how often it was asked for it."""
    counts: dict[str, int] = {}

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        page = str(args["url"]).rpartition("/")[2]
        counts[page] = counts.get(page, 0) + 1
        return await well(tool, args) | say(page, counts[page])

    return answer


async def proven(table: Table, *ids: str) -> list[FindingRow]:
    for id_ in ids:
        await ask(table.desk, RUN_PROBE, {"probe": id_})
    await table.drive.runner.prove_raised()
    return await table.world.journal.findings(RUN)


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        ("sss", "confirmed"),
        ("shs", "flaky"),
        ("hhh", "dropped"),
        ("cscss", "confirmed"),
        ("ccchh", "unverified"),
        ("ccccc", "unverified"),
        ("ss", "unverified"),
    ],
)
async def test_the_verdict(seen: str, state: str) -> None:
    words: dict[str, Any] = {"s": "shown", "h": "healthy", "c": "could_not"}
    assert judge([words[one] for one in seen]).state == state


async def test_a_grave_one_is_proven_before_the_next_probe_and_the_others_in_rounds(tmp_path: Path) -> None:
    grave = look("b").model_copy(update={"severity": Severity.CRITICAL})
    answer = saying(lambda page, count: {"status": 404})
    async with seated(tmp_path, persona(look("a"), grave, look("c")), hand=ANY, answer=answer) as table:
        rows = await proven(table, "a", "b", "c")
        assert [row.state for row in rows] == ["confirmed"] * 3
        asked = [args["url"].rpartition("/")[2] for _, args in table.jail.calls]
        assert asked == ["a", "b", *("b" * 3), "c", *("ac" * 3)]


@pytest.mark.parametrize(
    ("front", "state", "why"),
    [
        (429, "unverified", "the platform refuses every page now: HTTP 429 at http://site/"),
        (403, "unverified", "the platform refuses every page now: HTTP 403 at http://site/"),
        (200, "dropped", ""),
    ],
)
async def test_a_platform_that_locks_the_fleet_out_refutes_nothing(
    front: int, state: str, why: str, tmp_path: Path
) -> None:
    answer = saying(
        lambda page, count: {"status": front if page == "" else 404 if count == 1 else 403, "text": ""}
    )
    async with seated(tmp_path, persona(look("a", "result.status != 404")), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.data.get("why", "")) == (state, why)


async def test_what_shows_something_else_proves_nothing(tmp_path: Path) -> None:
    answer = saying(lambda page, count: {"status": 404 if count % 2 else 403})
    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.confirmed, row.tries) == ("flaky", 1, 3)


async def test_a_try_that_could_not_look_is_made_up_for(tmp_path: Path) -> None:
    late = {"ok": False, "error_class": "timeout", "error": "late"}
    answer = saying(lambda page, count: late if count == 3 else {"status": 404})
    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)


async def test_what_one_row_of_accounts_shows_is_proven_by_the_same_answers(tmp_path: Path) -> None:
    got = {"status": 200, "facts": {"password_hash": '"x"'}, "private": ["password_hash"]}
    steps = [["one", "GET", "/api/a", {}], ["one", "GET", "/api/b", {}]]
    row = Step(tool="qa_account", args={"url": "{site}/join", "steps": steps})

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "answers": [got, got]} if tool == "qa_account" else await well(tool, args)

    one = persona(tools=("qa_fetch", "qa_account"))
    acts = PLATFORM.web.model_copy(update={"act_paths": ["{site}/"]})
    platform = PLATFORM.model_copy(update={"web": acts})
    async with seated(tmp_path, one, hand=ANY, answer=answer, platform=platform) as table:
        runner, result = table.drive.runner, await answer("qa_account", {})
        await runner.look_at_answers((row,), [result], trusted=True, minimal=True)
        await runner.prove_raised()
        rows = await table.world.journal.findings(RUN)
        assert [(row.state, row.confirmed) for row in rows] == [("confirmed", 3)] * 2
        assert [tool for tool, _ in table.jail.calls] == ["qa_account"] * 3


def test_a_row_is_proven_without_what_its_findings_do_not_need() -> None:
    steps = [["one", "GET", f"/find?q={value}", {}, ""] for value in ("a", "a'", "a''", "a", "b", "c")]
    row = Step(tool="qa_account", args={"url": "{site}/join", "page": "/join", "steps": steps})
    answers = [{"status": 500 if "'" in one[2] and "''" not in one[2] else 200} for one in steps]
    apart = ((0, 1, 2, 3, 4, 5), *((at,) for at in range(1, 6)))

    def kept(said: list[dict[str, int]], **more: Any) -> list[list[Any]]:
        asked = row.model_copy(update={"args": {**row.args, **more}})
        cut, results = narrowed((asked,), [{"ok": True, "answers": said}], apart, Facts())
        assert [one["status"] for one in results[0]["answers"]] == [
            said[steps.index(one)]["status"] for one in cut[0].args["steps"]
        ]
        return list(cut[0].args["steps"])

    assert kept(answers) == steps[:4]
    assert kept(answers, together=(1, 3)) == steps
    assert kept([{"status": 200}] * 6) == steps  # it shows nothing, and is learned from as it is


@pytest.mark.parametrize(
    ("unjudged", "shown"),
    [
        (["gas_quote"], "could_not"),
        (["links", "gas_quote"], "could_not"),
        (["links"], "healthy"),
        ([], "healthy"),
    ],
)
def test_a_try_that_was_not_told_what_decides_does_not_count(unjudged: list[str], shown: str) -> None:
    row = FindingRow(
        run_id=RUN,
        fingerprint="ab",
        data={"fields": ["gas_quote", "gas_used"], "signature": "gas-quote high"},
    )
    proof = Proof(row, look("a"))
    call = {"tool": "qa_publish", "args": {}}
    said = {"ok": True, "unjudged": unjudged}
    proof.add(Attempt(state="healthy", calls=(call,), asked=(call,), results=(said,)), Facts())
    assert proof.seen == [shown]
    assert ("gas_quote" in proof.why) is (shown == "could_not")


SECRET = '!("private-key" in result.secrets)'


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_an_answer_that_refuses_to_speak_refutes_nothing(status: int, tmp_path: Path) -> None:
    shown = {"secrets": ["private-key"]}
    busy = {"ok": False, "error_class": "http", "status": status}
    answer = saying(lambda page, count: busy if count in (2, 4) else shown)
    async with seated(tmp_path, persona(look("a", SECRET)), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)


async def test_what_is_refused_to_the_end_is_kept_with_its_reason(tmp_path: Path) -> None:
    answer = saying(lambda page, count: {"secrets": ["private-key"]} if count == 1 else {"status": 429})
    async with seated(tmp_path, persona(look("a", SECRET)), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.data["why"]) == ("unverified", "the platform answered HTTP 429")


async def test_what_cannot_be_looked_at_any_more_is_kept_with_its_reason(tmp_path: Path) -> None:
    late = {"ok": False, "error_class": "timeout", "error": "late"}
    answer = saying(lambda page, count: {"status": 404} if count == 1 else late)
    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.state, row.data["why"]) == ("unverified", "qa_fetch: timeout: late")


async def test_a_dead_page_does_not_stop_the_proof_of_what_was_seen_on_it(tmp_path: Path) -> None:
    dead = {"ok": False, "error_class": "unreachable", "error": "gone"}
    answer = saying(lambda page, count: {"status": 404} if page == "a" else dead)
    pages = [look(id_) for id_ in "abcde"]
    async with seated(tmp_path, persona(*pages), hand=ANY, answer=answer) as table:
        rows = await proven(table, *"abcde")
        assert table.desk.state.withdrawn == ("web site",)
        assert [(row.probe, row.state) for row in rows] == [("a", "confirmed")]


async def test_what_an_answer_showed_is_raised_though_a_later_step_could_not_look(tmp_path: Path) -> None:
    dead = {"ok": False, "error_class": "unreachable", "error": "gone"}
    answer = saying(lambda page, count: {"secrets": ["private-key"]} if page == "a" else dead)
    two = look("a").model_copy(update={"steps": (*look("a").steps, *look("b").steps)})
    async with seated(tmp_path, persona(two), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a")
        assert (row.title, row.state) == ("Secret is public: GET /a shows a private key", "confirmed")
        assert row.repro == 'qa_fetch(url="{site}/a")'


async def test_one_defect_met_by_two_probes_is_one_finding(tmp_path: Path) -> None:
    answer = saying(lambda page, count: {"status": 500})
    twin = look("b", "result.status < 300", url="{site}/a")
    async with seated(tmp_path, persona(look("a"), twin), hand=ANY, answer=answer) as table:
        (row,) = await proven(table, "a", "b")
        assert (row.title, row.times, row.data["oracle"]) == (
            "Request causes a server error: GET /a answers 500",
            2,
            "server-error",
        )


def test_a_secret_is_masked_before_a_title_cuts_it() -> None:
    """Half a key looks like no secret."""
    steps = (Step(tool="qa_fetch", args={"url": "{site}/a"}),)
    (found,) = answered(steps, [{"status": 500}], Facts())
    said = f"{'x' * 62} sk-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    leaky = replace(found, sighting=replace(found.sighting, title=said), named="Request causes an error")
    row = leaky.row(RUN, persona(), redactor=Redactor())
    assert len(row.title) == 100
    assert "sk-ABC" not in row.title + row.data["seen"]
    assert "sk-ABC" in leaky.row(RUN, persona()).title
    named = replace(found, named=f"page leaks {'x' * 62} sk-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    row = named.row(RUN, persona(), redactor=Redactor())
    assert "sk-ABC" not in row.title + row.data["named"]


async def test_what_was_recorded_under_an_older_signature_is_shown_by_the_same_answer() -> None:
    steps = (Step(tool="qa_compile", args={"source": "const A: i32 = 1; fn frame() {}"}),)
    result = {"outcome": "accepted", "valid": True, "kind": "missing-entry", "said": "exports none of frame"}
    (found,) = answered(steps, [result], Facts(language="rustlite"))
    row = found.row(RUN, persona())
    asked = tuple({"tool": one.tool, "args": one.args} for one in steps)
    seen = Attempt(state="healthy", calls=asked, asked=asked, results=(result,))
    for signature, shown in (
        (row.data["signature"], True),
        ("missing-entry rustlite exports none of frame", True),
        ("missing-entry rustlite exports none of main", False),
        (f"{row.data['signature']} struct", False),
    ):
        older = replace(row, data=row.data | {"signature": signature})
        assert (showing(older, found.probe, seen, Facts(language="rustlite")) is not None) is shown
