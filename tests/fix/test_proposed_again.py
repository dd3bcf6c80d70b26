"""Which items are proposed, and which again: what was held, what no build answers, what is another defect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.drivers.session import RunOver
from fleet.errors import FixError
from fleet.fix.fix_pass import Fixing
from fleet.fix.model import GateStep, StepResult, TrackerHit
from fleet.fix.permission.permit import say_unlike, unlike
from fleet.fix.permission.preconditions import refusal
from fleet.store.rows import DecisionKind, DecisionRow, ItemRow
from fleet.triage.items.worklist import WorklistItem
from tests.fix.homes import PASSED, FixHome
from tests.fix.tasks import FP, item

pytestmark = pytest.mark.anyio
HIT = TrackerHit("issue", "https://example.org/issues/7", "compile panics", "open", "says the same")
HELD = (*PASSED[:5], StepResult(GateStep.OWN_TESTS, False, "3 failed"))
ROW = ("fingerprint", "state", "severity", "surface", "title", "repro", "names", "since", "trusted")
"""What an item of the worklist and its row share."""


async def test_what_the_gate_held_waits_until_it_changes_or_a_person_reopens_it(here: FixHome) -> None:
    async def why(one: WorklistItem, *, named: bool = False) -> str:
        found = refusal(await here.permit.facts(FP, one, named=named))
        return f"{found.rule}: {found.reason}" if found else ""

    here.parts.steps = HELD
    await here.propose()
    assert (await why(item())).startswith("tried: the gate held it at 20")
    assert (await why(item("f" * 12, names=("f" * 12, FP)))).startswith("tried: ")
    assert await why(item(), named=True) == ""
    for changed in ({"repro": 'qa_compile(source="fn g() {}")'}, {"state": "regression"}, {"since": "2999"}):
        assert await why(item(**changed)) == ""
    kinds: tuple[DecisionKind, ...] = ("severity", "reopen")
    for kind in kinds:
        assert await why(item()) != ""
        at = (await here.rows())[0].created
        said = DecisionRow(item=FP, kind=kind, reason="r", who="me", at=at, platform="p", name=kind)
        await here.journal.add_decision(said)
    assert await why(item()) == ""


async def test_a_run_of_qa_fix_passes_over_what_the_gate_held(here: FixHome) -> None:
    """Chosen by itself, and asked for by a trigger: it waits; the next item is taken."""
    fixing = Fixing(here, lambda: here.parts, here.tokens)  # type: ignore[arg-type]
    here.parts.steps = HELD
    await here.propose("r1")
    here.parts.steps = PASSED
    here.allow("f" * 12)
    other = item("f" * 12, rank=2)
    found = await fixing._best((item(), other), (await here.begin("r2")).ledger)
    assert found.fingerprint == other.fingerprint
    with pytest.raises(RunOver, match=r"tried: of 1 open items none may be fixed; .* as it was then"):
        await fixing._best((item(),), (await here.begin("r3")).ledger)
    rows = [ItemRow(**{key: getattr(one, key) for key in ROW}, persona="qa-fuzz") for one in (item(), other)]
    assert ["as it was then" in await fixing.waits(one) for one in rows] == [True, False]
    of_an_agent = replace(rows[1], repro='qa_call(target="docs", message="hello")')
    assert "qa_call needs a token" in await fixing.waits(of_an_agent)


@pytest.mark.parametrize(
    ("repro", "why"),
    [
        ('qa_call(target="docs", message="hello")', "qa_call needs a token that is signed for its moment"),
        ('qa_chain(function="totalNames")', "qa_chain needs a chain"),
        ('qa_browse(url="{site}/")', "qa_browse needs a browser"),
        ('qa_account(url="{site}/join", steps=[["one", "GET", "/me", {}]])', "qa_account needs more than"),
        ('qa_compile(source="x", other=true)', "compares with another program"),
        ('qa_fetch(url="{site}/")', "the repository has no service"),
    ],
)
async def test_what_no_build_can_answer_is_refused_before_anything_is_done(
    here: FixHome, repro: str, why: str
) -> None:
    with pytest.raises(RunOver, match=f"build: not reproducible in a build: .*{why}"):
        await here.propose(one=item(repro=repro))
    assert (await here.rows(), here.steps, here.parts.jails_.commands) == ([], [], [])


async def test_what_ended_before_the_gate_could_say_anything_is_tried_again(here: FixHome) -> None:
    here.parts.fails = FixError("the repository does not answer")
    with pytest.raises(FixError):
        await here.propose()
    assert refusal(await here.permit.facts(FP, item(), named=False)) is None


async def test_a_hit_that_a_person_calls_another_defect_blocks_no_more(here: FixHome) -> None:
    """Only that one: the next best hit counts."""
    other = replace(HIT, ref="https://example.org/issues/8")
    here.parts.tracker_.hits = [HIT, other]
    await say_unlike(here, FP, [HIT.ref], "me@host")
    assert "issues/8" in await here.propose()
    await say_unlike(here, FP, [other.ref], "you@host")
    said = await unlike(here, FP)
    assert [said[one.ref].split()[0] for one in (HIT, other)] == ["me@host", "you@host"]
    assert (await here.propose("r2")).startswith("open")
    assert await unlike(here, "f" * 12) == {}
