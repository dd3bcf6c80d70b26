"""One attempt at a probe and its expectation, against a scripted session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from fleet.drivers.expect import ExpectationError, Values, holds, number
from fleet.drivers.expect_check import check
from fleet.drivers.session import OUR_FAILURES, PASSING, Answer, RunOver
from fleet.drivers.template import Bindings, wants_name
from fleet.personas.model import Probe, Step
from fleet.runs.proof.attempt import attempt, once

BINDINGS = Bindings(run="abc", name="qa-abc-1", site="http://s", proxy="http://p", face="http://f/{name}/")


class Scripted:
    """A session that answers from a list and remembers what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.fresh: list[bool] = []
        self.waits: list[tuple[str, int]] = []
        self.lacks: tuple[str, ...] = ()
        self.patience = 0

    async def fresh_callers(self) -> None:
        pass

    def bindings(self, *, fresh_name: bool) -> Bindings:
        self.fresh.append(fresh_name)
        return BINDINGS

    async def missing(self, needs: Iterable[str]) -> str:
        return "; ".join(need for need in needs if need in self.lacks)

    async def wait_for(self, tool: str, args: Mapping[str, Any], tries: int) -> bool:
        self.waits.append((tool, tries))
        return len(self.waits) <= self.patience

    async def call(
        self, tool: str, args: Mapping[str, Any], *, probe: str = "", proof: bool = False
    ) -> Answer:
        self.asked.append((tool, args))
        answer = self.answers.pop(0)
        if answer.denied == "stop":
            raise RunOver("stopped", "a STOP file")
        return answer

    def history(self) -> Mapping[str, float]:
        return {"p95": 10.0}

    def facts(self) -> Mapping[str, Any]:
        return {"price": 5}


def probe(*steps: Step, expect: str = "result.ok") -> Probe:
    return Probe(id="p", severity="low", steps=steps, expect=expect, finding="something is wrong")


LOOK = Step(tool="qa_fetch", args={"url": "{site}/x"})


@pytest.mark.anyio
async def test_a_held_expectation_is_healthy() -> None:
    session = Scripted(Answer({"ok": True, "error_class": ""}))
    assert (await attempt(session, probe(LOOK))).state == "healthy"
    assert session.asked == [("qa_fetch", {"url": "http://s/x"})]


@pytest.mark.anyio
async def test_a_broken_expectation_is_a_finding_with_its_calls() -> None:
    got = await attempt(Scripted(Answer({"ok": False, "error_class": "http"})), probe(LOOK))
    assert got.state == "finding"
    assert got.calls == ({"tool": "qa_fetch", "args": {"url": "http://s/x"}},)


@pytest.mark.anyio
@pytest.mark.parametrize("expect", ["result.ok", "result.status != 200 || result.ok"])
async def test_a_limit_of_requests_is_not_healthy_unless_it_is_what_was_asked(expect: str) -> None:
    limited = {"ok": True, "status": 429}
    got = await attempt(Scripted(Answer(limited)), probe(LOOK, expect=expect))
    assert (got.state, got.reason) == ("inconclusive", "the platform answered HTTP 429")
    later = Scripted(Answer(limited), Answer({"ok": True, "status": 200}))
    later.patience = 1
    assert (await attempt(later, probe(LOOK, expect=expect))).state == "healthy"
    asked = Scripted(Answer(limited))
    assert (await attempt(asked, probe(LOOK, expect="result.status == 429"))).state == "healthy"
    assert (await attempt(Scripted(Answer(limited | {"ok": False})), probe(LOOK))).state == "finding"


@pytest.mark.anyio
@pytest.mark.parametrize("word", sorted(OUR_FAILURES))
async def test_our_own_failure_is_never_a_finding(word: str) -> None:
    answer = Answer({"ok": False, "error": "why", "error_class": word})
    got = await attempt(Scripted(answer), probe(LOOK))
    assert (got.state, got.reason) == ("inconclusive", f"qa_fetch: {word}: why")


@pytest.mark.anyio
@pytest.mark.parametrize("word", sorted(PASSING))
async def test_what_may_pass_is_looked_at_again(word: str) -> None:
    session = Scripted(Answer({"ok": False, "error_class": word}), Answer({"ok": True, "error_class": ""}))
    session.patience = 1
    assert (await attempt(session, probe(LOOK))).state == "healthy"
    assert session.waits == [("qa_fetch", 0)]
    assert len(session.asked) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("word", sorted(PASSING))
async def test_a_look_without_another_try_asks_once_and_keeps_the_answer(word: str) -> None:
    session = Scripted(Answer({"ok": False, "error_class": word}))
    session.patience = 9
    got = await once(session, probe(LOOK))
    assert (got.state, [one["error_class"] for one in got.results]) == ("inconclusive", [word])
    assert (session.waits, len(session.asked)) == ([], 1)


@pytest.mark.anyio
@pytest.mark.parametrize("word", sorted(OUR_FAILURES - PASSING))
async def test_what_will_not_pass_is_not_asked_again(word: str) -> None:
    session = Scripted(Answer({"ok": False, "error_class": word}))
    session.patience = 9
    assert (await attempt(session, probe(LOOK))).state == "inconclusive"
    assert (session.waits, len(session.asked)) == ([], 1)


@pytest.mark.anyio
async def test_what_the_platform_lacks_is_not_applicable_and_costs_nothing() -> None:
    session = Scripted()
    session.lacks = ("site",)
    got = await attempt(session, probe(LOOK))
    assert (got.state, got.reason, session.asked) == ("not_applicable", "site", [])


@pytest.mark.anyio
async def test_a_function_that_the_diamond_has_not_is_not_offered() -> None:
    step = Step(tool="qa_chain", args={"function": "creditOf", "args": ["caller"]})
    said = {"ok": False, "error_class": "reverted", "error": "Diamond: function not found"}
    got = await attempt(Scripted(Answer(said)), probe(step))
    assert (got.state, got.reason) == ("not_applicable", "qa_chain: the diamond does not offer this function")
    other = await attempt(Scripted(Answer(said | {"error": "Panic(0x32)"})), probe(step))
    assert other.state == "finding"


@pytest.mark.anyio
async def test_a_control_that_does_not_hold_says_that_nothing_can_be_told() -> None:
    slow = probe(LOOK, expect="result.p95_ms < 5").model_copy(update={"control": "result.control_p95_ms < 5"})
    for control, state in ((9.0, "inconclusive"), (1.0, "finding")):
        session = Scripted(Answer({"p95_ms": 9.0, "control_p95_ms": control, "error_class": ""}))
        got = await attempt(session, slow)
        assert (got.state, got.cause) == (state, "busy" if state == "inconclusive" else "")


@pytest.mark.anyio
async def test_a_schedule_beside_a_restless_control_says_that_nothing_can_be_told() -> None:
    step = Step(tool="qa_fetch", args={"url": "{site}/a", "control": "{site}/b", "rate": 10.0, "repeat": 40})
    for late, state in ((100.0, "inconclusive"), (0.0, "healthy")):
        control = [5.0 + late * (at % 7 == 0) for at in range(40)]
        said = {"status": 200, "samples_ms": [5.0] * 40, "control_ms": control, "error_class": ""}
        got = await attempt(Scripted(Answer(said)), probe(step, expect="true"))
        assert (got.state, got.cause) == (state, "busy" if late else "")
        assert got.reason.startswith("could not tell: its control took 105 ms (p95)") is bool(late)


@pytest.mark.anyio
async def test_a_page_that_was_too_costly_to_judge_is_not_healthy() -> None:
    said = {"status": 200, "a11y": [], "unjudged": ["a11y", "canary_executable"], "error_class": ""}
    got = await attempt(Scripted(Answer(said)), probe(LOOK, expect="size(result.a11y) == 0"))
    assert got.state == "inconclusive"
    assert (
        await attempt(Scripted(Answer(said)), probe(LOOK, expect="result.status == 200"))
    ).state == "healthy"


@pytest.mark.anyio
async def test_a_first_look_begins_the_history_it_compares_with() -> None:
    noted = probe(LOOK, expect="result.p95_ms <= history.new * 3.0")
    noted = noted.model_copy(update={"note": {"new": "result.p95_ms"}})
    got = await attempt(Scripted(Answer({"p95_ms": 9.0, "error_class": ""})), noted)
    assert (got.state, got.reason) == ("healthy", "a first look: it begins the history of new")


@pytest.mark.anyio
async def test_facts_of_the_profile_are_in_reach_of_an_expectation() -> None:
    got = await attempt(
        Scripted(Answer({"n": 6, "error_class": ""})), probe(LOOK, expect="result.n <= facts.price")
    )
    assert got.state == "finding"


@pytest.mark.anyio
async def test_a_refusal_stops_the_probe_before_its_next_step() -> None:
    session = Scripted(Answer({}, denied="dial", reason="observe"))
    got = await attempt(session, probe(LOOK, LOOK))
    assert (got.state, got.reason, len(session.asked)) == ("inconclusive", "qa_fetch: dial: observe", 1)


@pytest.mark.anyio
async def test_an_undecidable_expectation_is_the_probe_s_failure() -> None:
    reverted = {"ok": False, "error_class": "reverted", "error": "no id", "value": None}
    got = await attempt(Scripted(Answer(reverted)), probe(LOOK, expect="result.value > 1"))
    assert got.state == "undecided"
    assert got.reason.startswith("the expectation cannot be decided: ")
    assert got.reason.endswith("(reverted: no id)")


@pytest.mark.anyio
async def test_a_platform_that_does_not_answer_is_not_the_probe_s_failure() -> None:
    silent = Answer({"ok": False, "error_class": "unreachable", "error": "refused"})
    assert (await attempt(Scripted(silent), probe(LOOK, expect="result.nope == 1"))).state == "inconclusive"


@pytest.mark.anyio
async def test_a_figure_that_no_run_has_kept_yet_is_not_the_probe_s_failure() -> None:
    got = await attempt(Scripted(Answer({"ok": True})), probe(LOOK, expect="history.later > 1.0"))
    assert (got.state, got.reason) == ("inconclusive", "no figure of earlier runs yet: later")


@pytest.mark.anyio
async def test_the_end_of_a_run_passes_through() -> None:
    with pytest.raises(RunOver, match="stopped"):
        await attempt(Scripted(Answer({}, denied="stop")), probe(LOOK))


@pytest.mark.anyio
async def test_a_name_is_asked_for_only_when_a_step_uses_it() -> None:
    create = Step(tool="qa_create", args={"name": "{name}"})
    session = Scripted(Answer({"ok": True}), Answer({"ok": True}))
    await attempt(session, probe(create))
    await attempt(session, probe(LOOK))
    assert session.fresh == [True, False]


@pytest.mark.anyio
async def test_history_is_in_reach_of_an_expectation() -> None:
    session = Scripted(Answer({"ok": True, "p95_ms": 31.0}))
    assert (
        await attempt(session, probe(LOOK, expect="result.p95_ms <= history.p95 * 3.0"))
    ).state == "finding"


def test_placeholders_resolve_inside_any_structure() -> None:
    raw = {"a": ["{name}", {"b": "{site}/{run}"}], "c": 3, "d": "{face:{name}}?q={face:docs}"}
    assert BINDINGS.resolve(raw) == {
        "a": ["qa-abc-1", {"b": "http://s/abc"}],
        "c": 3,
        "d": "http://f/qa-abc-1/?q=http://f/docs/",
    }
    assert wants_name(raw)
    assert not wants_name({"url": "{site}"})


@pytest.mark.parametrize("text", ["result ++ 1", "", "result.", "import os"])
def test_a_broken_expectation_says_why(text: str) -> None:
    assert check(text, ["qa_fetch"], "bool")[0].message.startswith("not a CEL expression")


def test_an_expectation_must_say_true_or_false() -> None:
    with pytest.raises(ExpectationError, match="neither true nor false"):
        holds("result.n", Values([{"n": 1}]))


def test_a_figure_must_be_a_number() -> None:
    assert number("result.n", Values([{"n": 2}])) == 2.0
    with pytest.raises(ExpectationError, match="not a number"):
        number("result.n", Values([{"n": "2"}]))


def test_python_is_out_of_reach() -> None:
    with pytest.raises(ExpectationError):
        holds("result.__class__ == 1", Values([{"n": 1}]))
