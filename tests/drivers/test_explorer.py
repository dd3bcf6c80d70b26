"""The explorers' driver: asks while there is room, tells each explorer its answers, keeps what it knows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from fleet.config import Platform
from fleet.drivers.desk import Allowance, Choice, Left, Question
from fleet.drivers.explore.driver import BATCH, DOUBTS, FIRST, explorer
from fleet.drivers.explore.endings import PATIENCE, Endings
from fleet.drivers.explore.lockout import LOCKED_OUT, WHY
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.pages import first_page
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.drivers.session import RunOver
from fleet.personas.model import Step
from fleet.unanswered import REFUSED, RESET
from tests.doubles.drivers import MemoryDesk

pytestmark = pytest.mark.anyio
PLATFORM = Platform.model_validate(
    {"name": "p", "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}}
)
GROUND = ExplorerContext(platform=PLATFORM, tools=frozenset({"qa_fetch"}), acts=True)


class Counting:
    """Asks for page after page, from where it was."""

    def __init__(self, ground: ExplorerContext, chance: Random, state: Mapping[str, Any]) -> None:
        self.at, self.told = int(state.get("at", 0)), list[tuple[str, int]]()

    def ask(self, most: int) -> Sequence[Question]:
        pages = range(self.at, min(self.at + 3, 9))
        self.at = min(self.at + 3, 9)
        steps = [Step(tool="qa_fetch", args={"url": f"{{site}}/{at}"}) for at in pages]
        return [Question((step,), led="pages in a row") for step in steps][:most]

    def learn(self, question: Question, results: Results) -> None:
        self.told.append((question.steps[0].args["url"], len(results)))

    def state(self) -> Mapping[str, Any]:
        return {"at": self.at, "told": self.told}


def answering(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if args["url"].endswith("/1") else {"ok": True}


async def test_it_asks_tells_and_keeps_what_it_knows(tmp_path: Path) -> None:
    desk, notebook = MemoryDesk(answers=answering), Notebook(tmp_path / "p")
    assert await explorer({"counting": Counting}, GROUND, notebook, "s")(desk) == "9 questions asked"
    assert [step.args["url"] for step in desk.posed] == [f"{{site}}/{at}" for at in range(9)]
    assert len(desk.turns) == 3
    told = [[f"{{site}}/{at}", int(at != 1)] for at in range(9)]
    assert notebook.read("counting") == {"at": 9, "told": told}
    assert await explorer({"counting": Counting}, GROUND, notebook, "s")(MemoryDesk()) == ""


async def test_what_it_asks_is_decided_with_a_reason_and_what_else_there_was(tmp_path: Path) -> None:
    class Doubting(MemoryDesk):
        def decide(self, choice: Choice, questions: Sequence[Question]) -> Sequence[Question]:
            super().decide(choice, questions)
            return [one for one in questions if not one.steps[0].args["url"].endswith("/1")]

    makers, notebook = {"counting": Counting, "other": Counting}, Notebook(tmp_path / "p")
    desk = Doubting(answers=answering)
    await explorer(makers, GROUND, notebook, "s")(desk)
    first = desk.choices[0]
    assert first.action == "counting asks 3 questions by qa_fetch, first qa_fetch {site}/0"
    assert first.why.startswith("pages in a row (3), from 0 answers of this run")
    assert [one.action for one in first.instead] == [
        *("questions of other", "more questions of counting at once", "ask nothing new")
    ]
    assert [one.category for one in first.instead] == [
        "lower_priority",
        "resource_intensive",
        "lower_priority",
    ]
    assert "{site}/1" not in {step.args["url"] for step in desk.posed}
    assert [one.steps[0].args["url"] for one in notebook.questions("counting")] == ["{site}/1"], (
        "the next run asks it"
    )
    assert desk.left["what mostly did not answer counting"].reason == "1 question of it wait for the next run"


async def test_an_explorer_of_which_nothing_is_likely_to_be_answered_waits_for_the_next_run(
    tmp_path: Path,
) -> None:
    class Doubting(MemoryDesk):
        def decide(self, choice: Choice, questions: Sequence[Question]) -> Sequence[Question]:
            super().decide(choice, questions)
            return []

    notebook = Notebook(tmp_path / "p")
    desk = Doubting(answers=answering)
    await explorer({"counting": Counting}, GROUND, notebook, "s")(desk)
    kept = notebook.questions("counting")
    assert (desk.posed, 0 < len(desk.choices) <= DOUBTS) == ([], True)
    assert len(kept) == len({str(one.steps) for one in kept}) > 0
    assert desk.left["what mostly did not answer counting"].reason.startswith(f"{len(kept)} questions of it")


async def test_what_a_person_wants_first_is_asked_before_the_rest(tmp_path: Path) -> None:
    desk, wanted = MemoryDesk(answers=answering), ["/7", "/4"]

    def place(one: Question) -> int:
        return next((n for n, end in enumerate(wanted) if one.steps[0].args["url"].endswith(end)), 2)

    drive = explorer({"counting": Counting}, GROUND, Notebook(tmp_path / "p"), "s", order=lambda: place)
    assert await drive(desk) == "9 questions asked"
    assert [step.args["url"][-1] for step in desk.posed] == list("740123568")


async def test_an_explorer_that_computes_for_long_holds_nothing_else_up(tmp_path: Path) -> None:
    turned = threading.Event()

    class Slow(Counting):
        def ask(self, most: int) -> Sequence[Question]:
            assert turned.wait(20), "nothing else had a turn meanwhile"
            return super().ask(most)

    asyncio.get_running_loop().call_later(0.1, turned.set)
    drive = explorer({"slow": Slow}, GROUND, Notebook(tmp_path), "s")
    assert await drive(MemoryDesk(answers=answering)) == "9 questions asked"


async def test_it_ends_by_itself_when_there_is_no_room(tmp_path: Path) -> None:
    desk = MemoryDesk(answers=answering, calls=4)
    assert (
        await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk) == "4 questions asked"
    )


async def test_it_says_why_the_platform_is_not_asked_any_more(tmp_path: Path) -> None:
    class Spent(MemoryDesk):
        async def room(self) -> Allowance:
            return Allowance(0, acts=1, why="the day is spent") if self.posed else await super().room()

    drive = explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")
    assert await drive(Spent(answers=answering)) == "3 questions asked, the day is spent"


async def test_a_turn_has_no_more_acts_than_there_is_room_for(tmp_path: Path) -> None:
    class Acting(Counting):
        def ask(self, most: int) -> Sequence[Question]:
            acts = [Question(one.steps * 2) for one in super().ask(most)]
            return [
                Question(
                    tuple(Step(tool="qa_fetch", args=step.args | {"method": "PUT"}) for step in one.steps)
                )
                if at < 2
                else one
                for at, one in enumerate(acts)
            ]

    class Held(MemoryDesk):
        async def room(self) -> Allowance:
            return Allowance((await super().room()).calls, acts=0 if len(self.posed) > 3 else 3)

    desk = Held(answers=answering)
    await explorer({"acting": Acting}, GROUND, Notebook(tmp_path), "s")(desk)
    asked = [(str(step.args["url"])[-1], step.args.get("method", "GET")) for step in desk.posed]
    assert asked == [("0", "PUT")] * 2 + [("2", "GET")] * 2 + [("5", "GET")] * 2 + [("8", "GET")] * 2


async def test_a_fence_ends_it(tmp_path: Path) -> None:
    desk = MemoryDesk(max_turns=1, answers=answering)
    with pytest.raises(RunOver):
        await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk)


def test_a_notebook_that_cannot_be_read_is_an_empty_one(tmp_path: Path) -> None:
    notebook = Notebook(tmp_path)
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "c.json").write_text("[1]")
    assert [notebook.read(name) for name in "abcd"] == [{}, {}, {}, {}]
    notebook.write("a", {"x": 1})
    assert notebook.read("a") == {"x": 1}


class Locking:
    """A platform that shows its pages until a number of requests."""

    def __init__(self, patience: int, front: int = 200) -> None:
        self.left, self._front = patience, front

    def __call__(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.left -= 1
        status = 429 if self.left < 0 else self._front if args["url"] == "{site}/" else 200
        return {"ok": status < 400, "status": status}


class Wide(Counting):
    """The first page, then ten pages a turn."""

    def ask(self, most: int) -> Sequence[Question]:
        pages = ["", *range(1, 31)][self.at : self.at + 10]
        self.at += len(pages)
        return [Question((Step(tool="qa_fetch", args={"url": f"{{site}}/{page}"}),)) for page in pages]


async def test_it_stops_at_a_platform_that_locks_it_out_and_learns_nothing_from_it(tmp_path: Path) -> None:
    desk, notebook = MemoryDesk(answers=Locking(10)), Notebook(tmp_path)
    said = await explorer({"wide": Wide}, GROUND, notebook, "s")(desk)
    assert said == f"20 questions asked, {WHY}"
    assert [step.args["url"] for step in desk.posed][20:] == ["{site}/"]
    assert notebook.read("wide")["told"] == [[f"{{site}}/{at or ''}", 1] for at in range(10)]


@pytest.mark.parametrize(
    ("platform", "said"),
    [
        (Locking(99), "31 questions asked"),
        (Locking(10, front=403), "31 questions asked"),  # its first page never was shown
        (Locking(14), f"30 questions asked, {WHY}"),  # the second turn had answers
    ],
)
async def test_a_lockout_refuses_a_whole_turn_and_a_page_that_was_shown(
    tmp_path: Path, platform: Locking, said: str
) -> None:
    desk = MemoryDesk(answers=platform)
    assert await explorer({"wide": Wide}, GROUND, Notebook(tmp_path), "s")(desk) == said


CUT = {"ok": False, "error_class": "unreachable", "error": f"127.0.0.1 closed without an answer: {RESET}"}


async def test_a_request_that_had_no_answer_is_asked_once_more_beside_the_first_page(tmp_path: Path) -> None:
    def cutting(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return CUT if args["url"].endswith("/4") else {"ok": True}

    desk = MemoryDesk(answers=cutting)
    assert await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk)
    asked = [dict(step.args) for step in desk.posed]
    assert asked[6] == {"url": "{site}/4", "alive": "{site}/"}
    assert [one["url"] for one in asked[:6] + asked[7:]] == [f"{{site}}/{at}" for at in range(9)]
    assert len(desk.turns) == 4


@pytest.mark.parametrize(
    ("url", "first"),
    [
        ("{site}/a/b?q=/x", "{site}/"),
        ("{proxy}", "{proxy}/"),
        ("{face:docs}%00", "{face:docs}"),
        ("{face:docs}/a?q=1", "{face:docs}"),
        ("https://a.test:8/b?q=1", "https://a.test:8/"),
        ("http://a.test?q=1", "http://a.test/"),
    ],
)
def test_the_first_page_of_the_same_server(url: str, first: str) -> None:
    assert first_page(url) == first


SEEN = "https://a.test:8/b?q=1"


def due(result: Mapping[str, Any], endings: Endings, **args: Any) -> list[list[dict[str, Any]]]:
    """What is asked after such an answer to the second call of a question."""
    first = Step(tool="qa_fetch", args={"url": SEEN})
    asked = Step(tool="qa_fetch", args={"url": "https://a.test:8/b?q=%"} | args)
    endings.observe(Question((first, asked)), [{"status": 200}, result])
    return [[dict(step.args) for step in question.steps] for question in endings.due()]


def test_a_refusal_is_no_cut_and_the_check_itself_is_not_checked() -> None:
    endings = Endings()
    for other in ({"status": 400}, {"error_class": "unreachable", "error": f"does not answer: {REFUSED}"}):
        assert due(other, endings) == []
    assert due(CUT, endings, alive="https://a.test:8/") == due(CUT, endings, repeat=3) == []


def test_what_had_no_answer_is_asked_a_few_times_only() -> None:
    endings = Endings()
    odd = {"url": "https://a.test:8/b?q=%", "alive": "https://a.test:8/"}
    for result in ({"status": 502, "error_class": "http"}, CUT, CUT):
        assert due(result, endings) == [[{"url": SEEN}, odd]]
        endings.answered([(question, [{"status": 200}]) for question in endings.due()])
    assert due(CUT, endings) == []


def test_what_is_refused_while_its_server_starts_again_is_asked_in_a_later_turn() -> None:
    endings = Endings()
    assert (asked := due(CUT, endings))
    for _ in range(PATIENCE):
        endings.answered([])
        assert endings.due() == []  # in this turn
        assert [[dict(step.args) for step in one.steps] for one in endings.due()] == asked
    endings.answered([(question, ()) for question in endings.due()])
    assert [endings.due(), endings.due()] == [[], []]


@pytest.mark.parametrize(("ended", "then"), [(True, 0), (False, 1)])
def test_of_many_parameters_one_is_asked_first(ended: bool, then: int) -> None:
    endings = Endings()
    many = "https://a.test:8/b?q=1&page=x&id=2"
    ((_, one),) = due(CUT, endings, url=many)
    assert one["url"] == "https://a.test:8/b?q=1"
    endings.answered([(question, [{"status": 200}, {"ended": ended}]) for question in endings.due()])
    assert [question.steps[-1].args["url"] for question in endings.due()] == [many] * then
    endings.answered([(question, [{"status": 200}, {"ended": False}]) for question in endings.due()])
    assert endings.due() == []


# -- nothing asked for is lost ------------------------------------------------------------------------------


class Marks(Counting):
    """Knows its pages as asked once it made their questions, three a turn, with a PUT as every third."""

    def ask(self, most: int) -> Sequence[Question]:
        return [
            Question((Step(tool="qa_fetch", args=one.steps[0].args | {"method": "PUT"}),))
            if one.steps[0].args["url"].endswith(("2", "5", "8"))
            else one
            for one in super().ask(most)
        ]


def asked(desk: MemoryDesk) -> str:
    return "".join(str(step.args["url"])[-1] for step in desk.posed)


async def test_what_no_room_was_left_for_is_asked_by_the_next_run(tmp_path: Path) -> None:
    class Calm(MemoryDesk):
        async def room(self) -> Allowance:
            return replace(await super().room(), acts=0)

    first, second, third = Calm(answers=answering), MemoryDesk(answers=answering), MemoryDesk()
    drive = explorer({"marks": Marks}, GROUND, Notebook(tmp_path), "s")
    assert await drive(first) == "6 questions asked"
    assert first.left["explorer marks"].reason == (
        "asked 6 of about 9 questions: its run had no room for more"
    )
    assert await drive(second) == "3 questions asked"
    assert await drive(third) == ""
    assert (asked(first), asked(second), asked(third)) == ("013467", "258", "")
    assert second.left == {}


async def test_an_act_that_a_limit_kept_from_an_answer_is_asked_by_the_next_run_too(tmp_path: Path) -> None:
    def limited(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ok": False, "error_class": "busy"} if args["url"][-1] in "45" else {"ok": True}

    first, second, third = MemoryDesk(answers=limited), MemoryDesk(), MemoryDesk()
    drive = explorer({"marks": Marks}, GROUND, Notebook(tmp_path), "s")
    for desk in (first, second, third):
        await drive(desk)
    assert (asked(first), asked(second), asked(third)) == ("012345678", "5", "")


@pytest.mark.parametrize(("lost", "order"), [({0}, "012345678"), ({1}, "012345678"), ({0, 1}, "345678")])
async def test_a_turn_that_took_too_long_is_asked_once_more(
    tmp_path: Path, lost: set[int], order: str
) -> None:
    class Slow(MemoryDesk):
        turn_number = -1

        @asynccontextmanager
        async def _turn(self, probe: str) -> AsyncIterator[Any]:
            self.turn_number += 1
            async with super()._turn(probe) as turn:
                if self.turn_number in lost:
                    raise TimeoutError
                yield turn

    desk = Slow(answers=lambda tool, args: {"ok": True})
    assert (
        await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk) == "9 questions asked"
    )
    assert "".join(sorted(asked(desk))) == order


@pytest.mark.parametrize(("calls", "cut"), [(3, True), (6, False)])
async def test_a_run_cut_short_says_how_many_questions_were_left_and_why(
    tmp_path: Path, calls: int, cut: bool
) -> None:
    class Spent(MemoryDesk):
        async def room(self) -> Allowance:
            return Allowance(0, 0, "the calls are spent") if self.calls <= 0 else await super().room()

    desk = Spent(answers=lambda tool, args: {"ok": True}, calls=calls)
    said = await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk)
    assert said == f"{calls} questions asked, the calls are spent"
    left = desk.left["explorer counting"]
    assert (left.reason, left.kind == "cut") == (
        f"asked {calls} of about 9 questions: the calls are spent",
        cut,
    )


@pytest.mark.parametrize("why", ["", "the budget of 9 writes is spent"])
async def test_what_was_not_asked_is_counted_though_only_acts_are_out(tmp_path: Path, why: str) -> None:
    class Acting(Counting):
        def ask(self, most: int) -> Sequence[Question]:
            put = {"method": "PUT"}
            return [
                Question((one.steps[0].model_copy(update={"args": one.steps[0].args | put}),))
                for one in super().ask(most)
            ]

    class Calm(MemoryDesk):
        async def room(self) -> Allowance:
            return Allowance(3, 0, why)

    desk = Calm(answers=answering)
    assert await explorer({"acting": Acting}, GROUND, Notebook(tmp_path), "s")(desk) == ""
    left = desk.left["explorer acting"]
    why = why or "its run had no room for more"
    assert left == Left("explorer acting", f"asked 0 of about 9 questions: {why}", "cut")


async def test_a_run_that_ends_in_mid_turn_counts_what_that_turn_asked(tmp_path: Path) -> None:
    class Ended(MemoryDesk):
        turn_number = -1

        @asynccontextmanager
        async def _turn(self, probe: str) -> AsyncIterator[Any]:
            self.turn_number += 1
            async with super()._turn(probe) as turn:
                if self.turn_number == 1:
                    scope.cancel()
                    await anyio.sleep_forever()
                yield turn

    desk = Ended(answers=lambda tool, args: {"ok": True})
    with anyio.CancelScope() as scope:
        await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(desk)
    assert scope.cancelled_caught
    why = "the time for exploring is over (budget.wall in the persona file)"
    assert desk.left["explorer counting"].reason == f"asked 3 of about 9 questions: {why}"


async def test_an_explorer_says_what_it_cannot_ask(tmp_path: Path) -> None:
    class Blind(Counting):
        def left(self) -> Sequence[Left]:
            return [Left("openapi.yaml", "in YAML, not read")]

    desk = MemoryDesk(answers=answering)
    await explorer({"blind": Blind}, GROUND, Notebook(tmp_path), "s")(desk)
    assert desk.left == {"openapi.yaml": Left("openapi.yaml", "in YAML, not read")}


@pytest.mark.parametrize(("locks", "said"), [(1, "questions asked"), (2, LOCKED_OUT), (9, LOCKED_OUT)])
async def test_a_platform_that_locks_us_out_again_is_asked_nothing_more(
    tmp_path: Path, locks: int, said: str
) -> None:
    seen: list[str] = []

    def locking(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append(args["url"])
        if "alive" in args and sum("alive" in one for one in seen) < locks:
            seen[-1] += " alive"
            return {"ok": False, "error_class": "busy", "error": "locked out", "locked_out": True}
        return CUT if args["url"][-1] in "0146" and "alive" not in args else {"ok": True}

    ended = await explorer({"counting": Counting}, GROUND, Notebook(tmp_path), "s")(
        MemoryDesk(answers=locking)
    )
    assert said in ended
    checks = [one for one in seen if one.endswith("alive")]
    assert len(checks) == min(locks, 2)
    if said == LOCKED_OUT:
        assert seen[-1] == checks[-1]


async def test_every_explorer_has_short_turns_before_any_has_a_long_one(tmp_path: Path) -> None:
    """On a slow site a turn of all the calls that one may have would take half a minute, and nothing that it
    showed was proven before it ended."""

    class Long(Counting):
        name = ""

        def ask(self, most: int) -> Sequence[Question]:
            pages = range(self.at, min(self.at + most, 200))
            self.at = pages.stop
            url = f"{{site}}/{self.name}/"
            return [Question((Step(tool="qa_fetch", args={"url": f"{url}{at}"}),)) for at in pages]

    class Other(Long):
        name = "other"

    desk = MemoryDesk()
    await explorer({"long": Long, "other": Other}, GROUND, Notebook(tmp_path / "p"), "s")(desk)
    asked = ["other" in str(step.args["url"]) for step in desk.posed]
    turns = [(who, len(list(calls))) for who, calls in groupby(asked)]
    begins = (FIRST, 2 * FIRST, BATCH)
    assert turns[:6] == [(who, calls) for calls in begins for who in (False, True)]
    assert max(calls for _, calls in turns) == BATCH
    assert asked.count(False) == asked.count(True) == 200


async def test_the_explorer_that_asked_least_is_next(tmp_path: Path) -> None:
    """An account's call is twenty requests: in turns of as many calls pages had a tenth of them."""

    class Pages(Counting):
        path = "p"

        def ask(self, most: int) -> Sequence[Question]:
            calls = range(self.at, self.at + most)
            self.at = calls.stop
            url = f"{{site}}/{self.path}"
            return [Question((Step(tool="qa_fetch", args={"url": f"{url}{at}"}),)) for at in calls]

    class Accounts(Pages):
        path = "a"

    desk = MemoryDesk(requests_of=lambda step: 20 if "/a" in str(step.args["url"]) else 1)
    await explorer({"accounts": Accounts, "pages": Pages}, GROUND, Notebook(tmp_path / "p"), "s")(desk)
    calls = ["/a" in str(step.args["url"]) for step in desk.posed]
    asked = {True: 20 * calls.count(True), False: calls.count(False)}
    assert abs(asked[True] - asked[False]) <= 20 * BATCH
    assert asked[False] > 400
