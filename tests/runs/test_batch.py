"""An explorer's questions in batches: one jail for many calls, each judged, charged and recorded alone."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from fleet.broker.broker import EgressPolicy
from fleet.broker.egress_record import EgressRecord
from fleet.drivers.desk import Question
from fleet.drivers.session import RunOver
from fleet.errors import JailError
from fleet.events.spans import CloseSpan, Spans, flush, fold
from fleet.gate.budget import Ledger
from fleet.gate.gate import Rate
from fleet.gate.model import Rung
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.model import Egress, End, Image, Outcome
from fleet.personas.model import Step
from fleet.retry import SILENT_TARGET
from fleet.runs.context import way_out
from fleet.unanswered import REFUSED, RESET
from sandbox.guest import MAX_CALLS
from sandbox.spec import PROTOCOL
from tests.runs.table import PLATFORM, RUN, PaperJail, Table, look, persona, seated
from tests.sandbox.doubles import Server, http_answer

pytestmark = pytest.mark.anyio
Said = Callable[[list[dict[str, Any]]], tuple[list[dict[str, Any] | bytes | None], int]]
"""The arguments of a jail's calls, to its lines (a result, raw bytes, or nothing) and its exit status."""


def page(args: Mapping[str, Any]) -> dict[str, Any]:
    return {"ok": True, "status": 200, "text": args.get("url", "")}


class ScriptedJail(PaperJail):
    """Notes what was asked in each jail, and prints what a test says."""

    def __init__(self, says: Said) -> None:
        self.says, self.jails = says, list[list[str]]()

    async def call(
        self, request: bytes, *, deadline_s: float, egress: Egress | None = None, resources: str = ""
    ) -> Outcome:
        asked = json.loads(request)
        batch = "calls" in asked
        args = [one["args"] for one in asked["calls"]] if batch else [asked["args"]]
        self.jails.append([next(iter(one.values())).removeprefix("http://site/") for one in args])
        said, code = self.says(args)
        if code < 0:
            raise JailError("the jail was killed")
        out = b""
        for number, result in enumerate(said):
            place = {"call": number} if batch else {}
            line = {"v": PROTOCOL, **place, "result": result}
            out += (
                result if isinstance(result, bytes) else json.dumps(line).encode() + b"\n" if result else b""
            )
        return Outcome(end=End.EXITED, code=code, stdout=out, stderr=b"", seconds=0.0)


def well(args: list[dict[str, Any]]) -> tuple[list[dict[str, Any] | bytes | None], int]:
    return [page(one) for one in args], 0


def ask(*questions: str, tool: str = "qa_fetch", **args: Any) -> list[Question]:
    """Each question's pages, with spaces between them."""
    return [
        Question(tuple(Step(tool=tool, args={"url": f"{{site}}/{page}", **args}) for page in one.split()))
        for one in questions
    ]


async def pose(table: Table, questions: list[Question]) -> list[list[Any]]:
    async with table.desk.turn() as turn:
        found = await turn.pose(questions)
    return [[one.get("text") or one["error_class"] for one in results or ()] for results in found]


def trail(table: Table) -> list[str]:
    """The run's calls as recorded: requested, answered, denied, each with its number."""
    marks = {"tool.requested": "?", "tool.responded": "!", "gate.denied": "x"}
    return [f"{event.call}{marks[event.type]}" for event in table.events if event.type in marks]  # type: ignore[union-attr]


async def test_the_calls_of_several_questions_share_one_jail(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    async with seated(tmp_path, persona(), real=jail) as table:
        first, *others = ask("a b", "c", "d e")
        found = await pose(table, [replace(first, led="page /a"), *others])
        assert found == [
            ["http://site/a", "http://site/b"],
            ["http://site/c"],
            ["http://site/d", "http://site/e"],
        ]
        assert jail.jails == [["a", "b", "c", "d", "e"]]
        assert trail(table) == ["1?", "2?", "3?", "4?", "5?", "1!", "2!", "3!", "4!", "5!"]
        assert table.said("turn")[0].executed == (1, 2, 3, 4, 5)
        assert {event.probe for event in table.said("tool.requested")} == {"explore"}
        assert [event.why for event in table.said("tool.requested")] == ["page /a", "", "", "", ""]
        assert await table.world.journal.spent(RUN) == {"calls": 5, "requests": 5}
        assert spans_left(table) == ()


def spans_left(table: Table) -> tuple[str, ...]:
    """Tools whose span no answer closed."""
    spans, cut = Spans(), list[str]()
    for event in table.events:
        spans, signals = fold(spans, event)
        cut += [one.key for one in signals if isinstance(one, CloseSpan) and not one.is_complete]
    return (*cut, *(one.key for one in flush(spans)[1] if one.key.startswith("tool:")))


async def test_a_batch_is_bounded_and_of_one_tool(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([page(one) if "url" in one else {"ok": True} for one in args], 0))
    chain = Question((Step(tool="qa_chain", args={"function": "feedbackCount"}),))
    async with seated(tmp_path, persona(tools=("qa_fetch", "qa_chain")), real=jail) as table:
        pages = ask(*(f"p{n}" for n in range(MAX_CALLS + 2)))
        async with table.desk.turn() as turn:
            await turn.pose([*pages, chain, chain, *ask("last")])
        assert [len(one) for one in jail.jails] == [MAX_CALLS, 2, 2, 1]
        assert jail.jails[2] == ["feedbackCount"] * 2


async def test_a_refused_call_is_not_sent_and_ends_its_question_only(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    questions = [
        *ask("a"),
        Question((Step(tool="qa_fetch", args={"url": "http://other/"}), *ask("b")[0].steps)),
    ]
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, [*questions, *ask("c")]) == [["http://site/a"], [], ["http://site/c"]]
        assert (jail.jails, trail(table)) == ([["a", "c"]], ["1?", "2x", "3?", "1!", "3!"])


def gone(word: str) -> dict[str, Any]:
    error = f"site does not answer: {word}"
    return {"ok": False, "latency_ms": 1.0, "error": error, "error_class": "unreachable", "hint": ""}


class Restarting:
    """A server that a page ends: that one has no answer, and the next ones find nobody for a few jails."""

    def __init__(self, away: int) -> None:
        self.left, self._away = 0, away

    def __call__(self, args: list[dict[str, Any]]) -> tuple[list[dict[str, Any] | bytes | None], int]:
        lines: list[dict[str, Any] | bytes | None] = []
        refused = self.left > 0
        self.left -= refused
        for one in args:
            lines.append(gone(REFUSED) if refused else page(one))
            if one["url"].endswith("ends"):
                lines[-1], refused, self.left = gone(RESET), True, self._away
        return lines, 0


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits for a target [s], which take no time here; other tasks of the loop sleep as they do."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    own = SimpleNamespace(**{**vars(anyio), "sleep": sleep})
    monkeypatch.setattr("fleet.runs.call.session.anyio", own)
    return waits


async def test_what_met_no_server_is_asked_when_it_is_back(tmp_path: Path, paused: list[float]) -> None:
    jail = ScriptedJail(Restarting(2))
    async with seated(tmp_path, persona(), real=jail, patience_s=15.0) as table:
        found = await pose(table, ask("a", "ends", "b", "c d", "e"))
        there = [["http://site/b"], ["http://site/c", "http://site/d"], ["http://site/e"]]
        assert found == [["http://site/a"], ["unreachable"], *there]
        control = [""]
        assert jail.jails == [["a", "ends", "b", "c", "d", "e"], control, ["b"], ["b"], ["c", "d", "e"]]
        assert paused == [0.5, 1.0]


async def test_a_server_that_does_not_come_back_is_awaited_for_a_while_only(
    tmp_path: Path, paused: list[float]
) -> None:
    jail = ScriptedJail(Restarting(99))
    async with seated(tmp_path, persona(), real=jail, patience_s=15.0) as table:
        assert await pose(table, ask("ends", "b", "c", "d")) == [["unreachable"], [], [], []]
        assert jail.jails == [["ends", "b", "c", "d"], [""], *[["b"]] * (SILENT_TARGET.attempts - 1)]
        assert len(paused) == SILENT_TARGET.attempts - 1


async def test_what_follows_a_failed_call_of_a_question_is_recorded_as_not_sent(tmp_path: Path) -> None:
    def says(args: list[dict[str, Any]]) -> tuple[list[dict[str, Any] | bytes | None], int]:
        return [{"ok": False, "error_class": "timeout"}, None, page(args[2])], 0

    jail = ScriptedJail(says)
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, ask("a b", "c")) == [["timeout"], ["http://site/c"]]
        assert (jail.jails, trail(table)) == ([["a", "b", "c"]], ["1?", "2?", "3?", "1!", "2!", "3!"])
        assert [one.result.get("error_class") for one in table.said("tool.responded")][:2] == [
            "timeout",
            "internal",
        ]


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        ([None, None], 1),
        ([b"nonsense\n", None], 0),
        ([b'{"v": 1, "call": 0, "result": {"ok": true}}\n', None], 0),
        ([b'{"v": 1, "call": true, "result": {"ok": true}}\n', None], 0),
        ([b'{"v": 1, "call": 1, "result": {"ok": true, "status": "x"}}\n', page({})], 0),
        ([b'{"v": 1, "call": 1, "result": {"ok": tr', None], 0),
    ],
    ids=["died", "garbage", "again", "a-bool", "another-type", "cut"],
)
async def test_a_jail_that_breaks_spoils_its_unanswered_calls_which_are_asked_alone(
    tmp_path: Path, rest: list[dict[str, Any] | bytes | None], code: int
) -> None:
    def says(args: list[dict[str, Any]]) -> tuple[list[dict[str, Any] | bytes | None], int]:
        return ([page(args[0]), *rest], code) if len(args) > 1 else well(args)

    jail = ScriptedJail(says)
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, ask("a", "b", "c")) == [
            ["http://site/a"],
            ["http://site/b"],
            ["http://site/c"],
        ]
        assert jail.jails == [["a", "b", "c"], ["b"], ["c"]]
        assert trail(table) == ["1?", "2?", "3?", "1!", "2!", "3!", "4?", "4!", "5?", "5!"]
        assert (await table.world.journal.spent(RUN))["calls"] == 5
        assert spans_left(table) == ()


async def test_a_jail_that_is_killed_gave_no_answer(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([], -1) if len(args) > 1 else well(args))
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, ask("a", "b")) == [["http://site/a"], ["http://site/b"]]
        assert jail.jails == [["a", "b"], ["a"], ["b"]]


async def test_what_was_not_begun_goes_into_another_batch(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([page(one) for one in args[:2]], 0))
    async with seated(tmp_path, persona(), real=jail) as table:
        found = await pose(table, ask("a b", "c d", "e"))
        assert [len(one) for one in found] == [2, 2, 1]
        assert jail.jails == [["a", "b", "c", "d", "e"], ["c", "d", "e"], ["e"]]


async def test_a_guest_that_ends_well_without_an_answer_is_asked_alone_once(
    tmp_path: Path,
) -> None:
    jail = ScriptedJail(lambda args: ([], 0))
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, ask("a", "b")) == [["internal"], ["internal"]]
        assert jail.jails == [["a", "b"], ["a"], ["b"]]


ACTING = PLATFORM.model_copy(
    update={"web": PLATFORM.web.model_validate(PLATFORM.web.model_dump() | {"act_paths": ["{site}/cart"]})}
)


async def test_an_act_is_never_repeated(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([], 1))
    async with seated(tmp_path, persona(), real=jail, platform=ACTING) as table:
        acts = ask("cart/1", "cart/2", method="POST")
        assert await pose(table, [*acts, *ask("cart/3")]) == [[], [], ["internal"]]
        assert jail.jails == [["cart/1", "cart/2", "cart/3"], ["cart/3"]]
        assert await table.world.journal.spent(RUN) == {"calls": 4, "writes": 2, "requests": 3}


async def test_a_single_act_on_a_page_is_not_repeated_either(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([], -1))
    async with seated(tmp_path, persona(), real=jail, platform=ACTING) as table:
        session = table.drive.runner.session
        answer = await session.call("qa_fetch", {"url": "http://site/cart", "method": "PUT"})
        assert (answer.lost, jail.jails) == (True, [["cart"]])
        assert not await session.wait_for("qa_fetch", {"url": "http://site/cart", "method": "PUT"}, 0)


async def test_what_a_jail_says_that_the_listener_heard_is_not_believed(tmp_path: Path) -> None:
    word = "qah0123456789ab"
    jail = ScriptedJail(lambda args: ([page(one) | {"heard": [word]} for one in args], 0))
    async with seated(tmp_path, persona(), real=jail) as table:
        single = await table.drive.runner.session.call("qa_fetch", {"url": f"http://site/{word}"})
        await pose(table, ask(word))
        told = [event.result["heard"] for event in table.said("tool.responded")]
        assert (single.result["heard"], told) == ([], [[], []])


async def test_acts_are_left_out_below_their_rung(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    async with seated(tmp_path, persona(), real=jail, platform=ACTING, rung=Rung.OBSERVE) as table:
        assert await pose(table, [*ask("cart", method="POST"), *ask("a")]) == [[], ["http://site/a"]]
        assert [one.rule for one in table.said("gate.denied")] == ["dial"]
        assert jail.jails == [["a"]]


async def test_a_target_that_keeps_failing_is_withdrawn_by_a_batch_too(tmp_path: Path) -> None:
    jail = ScriptedJail(lambda args: ([{"ok": False, "error_class": "unreachable"}] * len(args), 0))
    async with seated(tmp_path, persona(), real=jail) as table:
        assert await pose(table, ask("a", "b", "c", "d")) == [["unreachable"]] * 4
        assert len(table.said("extension_disabled")) == 1
        assert await pose(table, ask("e")) == [[]]
        assert table.drive.runner.session.contacts.failed == {"site": 4}
        assert jail.jails == [["a", "b", "c", "d"], [""]]


async def test_a_target_that_is_known_to_be_down_is_not_asked(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    async with seated(tmp_path, persona(), real=jail) as table:
        table.drive.runner.session.contacts.down["site"] = "the site is down"
        assert await pose(table, ask("a b", "c")) == [["unreachable"], ["unreachable"]]
        assert jail.jails == []


async def test_a_stop_while_a_batch_is_judged_sends_nothing(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    async with seated(tmp_path, persona(), real=jail) as table:
        gate = table.drive.runner.session._gate
        decide, count = gate.decide, list[int]()

        async def stopping(action: Any, **how: bool) -> Any:
            count.append(1)
            if len(count) == 2:
                table.stop()
            return await decide(action, **how)

        gate.decide = stopping  # type: ignore[method-assign]
        with pytest.raises(RunOver, match="stopped"):
            await pose(table, ask("a", "b", "c"))
        assert (jail.jails, trail(table)) == ([], ["1?", "2x", "1!"])


async def test_the_requests_of_a_day_are_counted_durably_and_end_the_exploring(tmp_path: Path) -> None:
    jail = ScriptedJail(well)
    async with seated(tmp_path, persona(), real=jail) as table:
        ledger: Ledger = table.drive.ledger
        ledger._fleet = lambda: {"requests": 6}
        assert (await table.desk.room()).calls == 6
        await pose(table, ask("a", "b", "c", "d"))
        assert ((await table.desk.room()).calls, jail.jails) == (2, [["a", "b", "c", "d"]])
        table.drive.runner.session.requests += 1  # the broker served more than was asked for
        await table.drive.runner.session.count_requests(0, 0)
        assert (await table.desk.room()).calls == 1
        assert await pose(table, ask("e", "f")) == [[], []]
        assert {one.rule for one in table.said("gate.denied")} == {"requests"}
        await pose(table, ask("g"))
        room = await table.desk.room()
        assert (room.calls, room.why) == (0, "the budget of 6 requests a day of the fleet is spent")
        assert (await table.world.journal.spent_today())[""] == {"calls": 5, "requests": 6}


async def test_what_the_broker_served_beyond_the_calls_is_counted_too(tmp_path: Path) -> None:
    async def served(table: Table) -> None:
        def egress(port: object, calls: int = 1, note: Any = None, *rest: Any) -> Any:
            for _ in range(calls * 3):
                note(EgressRecord(verb="GET", host="site", what="/", status=200))

        object.__setattr__(table.world, "egress", egress)
        await pose(table, ask("a", "b"))

    async with seated(tmp_path, persona(), real=ScriptedJail(well)) as table:
        await served(table)
        assert await table.world.journal.spent(RUN) == {"calls": 2, "requests": 6}


@pytest.mark.jail
async def test_in_a_real_jail_a_hostile_page_spoils_its_own_answer_and_stop_acts_within_a_batch(
    tmp_path: Path,
) -> None:
    said: dict[str, bytes] = {
        "/good": http_answer(200, b"good"),
        "/bomb": http_answer(200, gzip.compress(b"x" * (8 << 20)), "content-encoding: gzip"),
        "/noise": b"\x00\xff not HTTP at all\r\n\r\n",
        "/cut": b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf",
        "/forged": http_answer(200, b'{"v":1,"call":4,"result":{"ok":true,"status":299}}\n'),
    }
    (tmp_path / "jails").mkdir()
    jail = BwrapJail(Image(), pool=0, spool=tmp_path / "jails")
    async with Server(lambda got: said[got.path]) as site:
        web = PLATFORM.web.model_validate(PLATFORM.web.model_dump() | {"site": site.url})
        platform = PLATFORM.model_copy(update={"web": web})

        def rung() -> str:
            return "observe" if len(site.got) < 6 else "stop"

        way = partial(way_out, replace(EgressPolicy.of(platform), rung=rung))
        try:
            async with seated(tmp_path, persona(), real=jail, egress=way, platform=platform) as table:
                pages = ("good", "bomb", "noise", "cut", "forged", "good", "good")
                async with table.desk.turn() as turn:
                    found = [one or () for one in await turn.pose(ask(*pages))]
                seen = [(one["status"], one["error_class"]) for (one,) in found]
                assert seen == [
                    (200, ""),
                    (0, "too_large"),
                    (0, "garbage"),
                    (0, "garbage"),
                    (200, ""),
                    (200, ""),
                    (0, "refused"),
                ]
                assert len(table.said("tool.responded")) == 7
                assert await table.world.journal.spent(RUN) == {"calls": 7, "requests": 7}
        finally:
            await jail.aclose()
    assert [got.path for got in site.got] == [f"/{page}" for page in pages[:-1]]


async def test_an_explorer_waits_for_the_gates_rate(tmp_path: Path) -> None:
    rate = Rate(calls=3, seconds=0.3)
    async with seated(tmp_path, persona(), real=ScriptedJail(well), rate=rate) as table:
        assert [len(one) for one in await pose(table, ask(*"abcdefgh"))] == [1] * 8
        assert table.said("gate.denied") == []


async def test_the_profile_says_how_often_explorers_ask_on_a_day(tmp_path: Path) -> None:
    async with seated(tmp_path, persona()) as table:
        assert table.world.day()["requests"] == 20_000


@pytest.mark.jail
async def test_a_pause_that_the_platform_asks_for_is_kept_and_nothing_is_lost(tmp_path: Path) -> None:
    """Three requests a second and a half, then 429: every question is answered in the end."""
    times: list[float] = []

    def answer(got: Any) -> bytes:
        now = time.monotonic()
        recent = [at for at in times if at > now - 1.5]
        if len(recent) >= 3:
            refused.append((got.path, now))
            return http_answer(429, b"slow down", "retry-after: 2")
        times.append(now)
        return http_answer(200, got.path.encode())

    refused: list[tuple[str, float]] = []
    (tmp_path / "jails").mkdir()
    jail = BwrapJail(Image(), pool=0, spool=tmp_path / "jails")
    async with Server(answer) as site:
        web = PLATFORM.web.model_validate(PLATFORM.web.model_dump() | {"site": site.url})
        platform = PLATFORM.model_copy(update={"web": web})
        way = partial(way_out, replace(EgressPolicy.of(platform), rung=lambda: "observe"))
        try:
            async with seated(tmp_path, persona(), real=jail, egress=way, platform=platform) as table:
                pages = [f"page-{letter}" for letter in "abcdefgh"]
                async with table.desk.turn() as turn:
                    found = await turn.pose(ask(*pages))
                session = table.drive.runner.session
                assert [[one["status"] for one in results or ()] for results in found] == [[200]] * 8
                assert session.limited == len(refused) > 0
        finally:
            await jail.aclose()
    for _, at in refused:
        assert not [one for one in times if at < one < at + 1.9]


async def test_a_pause_that_outlasts_the_run_ends_the_exploring_and_is_said(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(), real=ScriptedJail(well)) as table:
        session = table.drive.runner.session
        session._noted(EgressRecord(verb="GET", host="site", what="/", status=200, pause=3_600.0))
        with anyio.fail_after(60):
            async with table.desk.turn() as turn:
                assert await turn.pose(ask("a", "b")) == [None, None]
            room = await table.desk.room()
    assert room.calls == 0
    assert room.why == "the platform asked for a pause of 3600 s (Retry-After), which outlasts the run"


@pytest.mark.parametrize(
    ("limited", "answered", "kind"),
    [(4, 6, ""), (5, 51, ""), (6, 60, "left"), (30, 60, "cut"), (9, 9, "cut")],
)
async def test_what_the_platform_refused_for_its_rate_is_said(
    tmp_path: Path, limited: int, answered: int, kind: str
) -> None:
    async with seated(tmp_path, persona(look("a")), real=ScriptedJail(well)) as table:
        table.drive.seat()
        session = table.drive.runner.session
        session.limited, session.answered = limited, answered
        table.drive._limited()
        kept = table.desk.state.left
    assert [one.kind for one in kept] == [kind][: bool(kind)]
    if kind:
        assert kept[0].reason.startswith(f"{limited} of {answered} answers were 429 (too many requests)")


@pytest.mark.parametrize("trouble", ["unreachable", "timeout"])
async def test_a_path_that_never_answers_does_not_blind_its_host(tmp_path: Path, trouble: str) -> None:
    """Silence and resets at one path: the host's other pages are all asked."""

    def says(args: list[dict[str, Any]]) -> tuple[list[dict[str, Any] | bytes | None], int]:
        dead = {"ok": False, "error_class": trouble}
        return [dead if "/dead" in one["url"] else page(one) for one in args], 0

    async with seated(tmp_path, persona(), real=ScriptedJail(says)) as table:
        found = await pose(table, ask("dead?1", "dead?2", "dead?3", "dead?4"))
        assert found == [[trouble]] * 4
        assert await pose(table, ask("a", "b", "c")) == [[f"http://site/{name}"] for name in "abc"]
        assert await pose(table, ask("dead?5")) == [[]]
        (event,) = table.said("extension_disabled")
        assert event.namespace == "web site/dead"
