"""One defect as several observations of one place: the more specific one remains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleet.findings.kinds import kind_of
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.personas.model import Step
from fleet.runs.proof.candidates import covering
from fleet.runs.proof.grades import graded
from fleet.store.rows import FindingRow, NewRun
from tests.runs.table import RUN, look, persona, seated
from tests.runs.test_desk import ANY

QUOTE, ERROR = ("moss", "moss%27", "moss%27%27", "moss"), ("moss", "%22x")
"""Two questions by the values they ask one parameter for."""


def row(
    oracle: str, route: str = "{site}/find", parameter: str = "parameter q", platform: str = "p", **data: Any
) -> FindingRow:
    kind = kind_of(oracle)
    where = (
        {part: {"route": route, "parameter": parameter}.get(part, "call") for part in kind.place}
        if kind
        else {}
    )
    return FindingRow(
        run_id="r",
        fingerprint="f" * 12,
        state="dropped",
        probe="x",
        persona="qa-x",
        surface="ux",
        severity="low",
        title=oracle,
        data={"oracle": oracle, "kind": kind.id if kind else "", "where": where, "platform": platform} | data,
    )


def test_the_more_specific_one_covers_the_other_at_its_place_only() -> None:
    error, quote = row("server-error"), row("quote-injection")
    assert covering(error, [error, quote]) is quote
    assert covering(quote, [error, quote]) is None
    assert covering(error, [row("quote-injection", route="{site}/other")]) is None
    assert covering(error, [row("quote-injection", platform="another")]) is None
    assert covering(row("server-error", parameter=""), [quote]) is None
    assert covering(error, [row("overcharged")]) is None


def test_a_covered_one_says_why_it_is_not_filed() -> None:
    assert graded(row("server-error", covered_by="a quote breaks it")).why == (
        "another finding says more of the same place: a quote breaks it"
    )


def test_an_error_and_an_injection_of_one_input_have_one_place() -> None:
    def page(value: str, status: int = 200) -> Exchange:
        url = {"url": f"{{site}}/find?q={value}"}
        return Exchange("qa_fetch", url, {"status": status, "text": "", "content_type": "text/html"})

    facts = Facts(site="http://h")
    (error,) = judge([page("moss"), page("%22x", 500)], facts)
    (quote,) = (
        one
        for one in judge([page("moss"), page("moss%27", 500), page("moss%27%27"), page("moss")], facts)
        if one.oracle == "quote-injection"
    )
    assert error.sighting.where == quote.sighting.where
    assert quote.sighting.where == {"route": "{site}/find", "parameter": "parameter q"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("mended", "states"),
    [
        (False, {"quote-injection": "confirmed", "server-error": "dropped"}),
        (True, {"quote-injection": "dropped", "server-error": "confirmed"}),
    ],
)
async def test_only_what_this_run_proves_covers_another(
    tmp_path: Path, mended: bool, states: dict[str, str]
) -> None:
    """An injection that an earlier run put on the log, and that is gone by now, hides nothing."""
    broken = {"moss%27", "%22x"}

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        status = 500 if str(args["url"]).partition("=")[2] in broken else 200
        return {"ok": status == 200, "status": status, "text": "", "content_type": "text/html"}

    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        runner, journal = table.drive.runner, table.world.journal
        for values in (ERROR, QUOTE):
            steps = tuple(Step(tool="qa_fetch", args={"url": f"{{site}}/find?q={one}"}) for one in values)
            results = [await answer(step.tool, dict(step.args)) for step in steps]
            await runner.look_at_answers(steps, results, trusted=True)
        raised = {str(one.data["oracle"]): one for one in await journal.findings(RUN)}
        assert set(raised) >= set(states)
        if mended:
            await journal.trigger(
                NewRun(
                    run_id="older",
                    persona="qa-paper",
                    key="older",
                    platform="paper",
                    trigger="",
                    rung="",
                    budget={},
                )
            )
            await journal.add_finding(replace(raised["quote-injection"], run_id="older", state="posted"))
            broken.remove("moss%27")
        await runner.prove_raised()
        found = {str(one.data["oracle"]): one.state for one in await journal.findings(RUN)}
        assert {oracle: found[oracle] for oracle in states} == states


TRACE = (
    'Traceback (most recent call last):\n  File "/srv/app/clock.py", line 88, in stamp\nValueError: bad {}'
)


@pytest.mark.anyio
async def test_one_defect_on_many_pages_is_one_finding_that_lists_them(tmp_path: Path) -> None:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        text = TRACE.format(len(str(args["url"])))
        return {"ok": False, "status": 500, "text": text, "content_type": "text/plain"}

    async with seated(tmp_path, persona(look("a")), hand=ANY, answer=answer) as table:
        runner, journal = table.drive.runner, table.world.journal
        for path in ("a", "tasks/7", "tasks/8", "a?x=1", "b"):
            step = Step(tool="qa_fetch", args={"url": f"{{site}}/{path}"})
            await runner.look_at_answers(
                (step,), [await answer(step.tool, dict(step.args))], trusted=True, minimal=True
            )
        await runner.prove_raised()
        (found,) = await journal.findings(RUN)
    assert (found.state, found.times, found.data["oracle"]) == ("confirmed", 5, "trace")
    assert found.title.startswith("Internal error is shown: GET /a answers 500 with a Python traceback")
    assert "also at: {site}/tasks/{n} (2 times, 20" in found.envelope
