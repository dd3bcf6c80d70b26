"""An outage: told by controls, one item however many look, and never our own trouble."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.drivers.session import RunOver
from fleet.errors import ConfigError, Unreachable
from fleet.findings.outage import WORD, Outage, OutageBook, fingerprint_of, lasted, read_book
from fleet.runs.call.targets import Contacts, Reach, has_name, reach_of, targets_of
from fleet.runs.desk.coverage import coverage
from fleet.runs.desk.exit_codes import LOCK_OUT
from fleet.runs.outage.book import answered, book_of, key_of, noticed, settle
from fleet.runs.outage.decide import (
    Control,
    CouldNotTell,
    Down,
    How,
    Patience,
    TargetLook,
    Up,
    Verdict,
    decide,
    severity,
)
from fleet.runs.outage.watch import Watch
from fleet.store.journal import Journal
from fleet.unanswered import NO_NAME, REFUSED, RESET, TIMED_OUT
from tests.runs.table import PLATFORM, RUN, Table, look, persona, seated, well

AT = (0.0, 1.0, 3.0, 7.0)
HOSTS = {
    "site": (Reach.PUBLIC, True),
    "proxy": (Reach.PUBLIC, True),
    "node": (Reach.PRIVATE, False),
    "near": (Reach.LOOPBACK, False),
}
HOWS: dict[str, How] = {"a": "answered", "s": "silent", "o": "ours"}


def told(
    said: str = REFUSED,
    controls: tuple[Control, ...] = (),
    hosts: dict[str, tuple[Reach, bool]] | None = None,
    **looks: str,
) -> Verdict:
    """Of looks as letters by round: `a` answered, `s` silent, `o` ours, `-` not looked at."""
    made = [
        TargetLook(target, turn, AT[turn], HOWS[letter], said if letter == "s" else "")
        for target, letters in looks.items()
        for turn, letter in enumerate(letters)
        if letter != "-"
    ]
    return decide(made, controls, hosts or HOSTS, Patience())


def control(rounds: str, reach: Reach = Reach.PUBLIC, *, named: bool = True, own: bool = False) -> Any:
    return tuple(
        Control("elsewhere", turn, reach, named, letter == "a", own) for turn, letter in enumerate(rounds)
    )


OWN = control("aaaa", Reach.LOOPBACK, named=False, own=True)
DOWN: tuple[tuple[str, tuple[str, ...], Verdict], ...] = (
    ("one of two is silent", ("site",), told(site="ssss", proxy="aaaa")),
    ("three looks over six seconds", ("site",), told(site="-sss", proxy="aaaa")),
    ("the first look was ours", ("site",), told(site="osss", proxy="aaaa")),
    (
        "both, and a page elsewhere answers",
        ("site", "proxy"),
        told(site="ssss", proxy="ssss", controls=control("aaaa")),
    ),
    ("the node, and the site answers", ("node",), told(node="ssss", site="aaaa")),
    ("here, by a listener of ours", ("near",), told(near="ssss", controls=OWN)),
    ("its name is gone, and another's is there", ("site",), told(NO_NAME, site="ssss", proxy="aaaa")),
)
UNCLEAR: tuple[tuple[str, str, Verdict], ...] = (
    ("nothing answers", "our network or machine: site: connection refused; no control", told(site="ssss")),
    (
        "no control answers",
        "our network or machine: site: connection refused; elsewhere did not answer either",
        told(site="ssss", controls=control("ssss")),
    ),
    ("a control answered once", "too few looks", told(site="ssss", controls=control("sssa"))),
    ("two looks", "too few looks", told(site="ooss", proxy="aaaa")),
    ("three looks in three seconds", "too few looks", told(site="sss", proxy="aaa")),
    (
        "the node next door is no way out",
        "our network or machine: site: connection refused; no control",
        told(site="ssss", node="aaaa"),
    ),
    (
        "a listener of ours is no way out",
        "our network or machine: site: connection refused; no control",
        told(site="ssss", controls=OWN),
    ),
    (
        "no name resolves, and an address answers",
        "our network or machine: site: the name does not resolve; no control",
        told(NO_NAME, site="ssss", controls=control("aaaa", named=False)),
    ),
    ("every look was ours", "no look had a result", told(site="oooo")),
)
UP: tuple[tuple[str, Verdict], ...] = (
    ("all answer", told(site="a", proxy="a")),
    ("one answers late", told(site="sssa", proxy="aaaa")),
    ("one could not be looked at", told(site="oooo", proxy="aaaa")),
    ("nothing to look at", told()),
)


@pytest.mark.parametrize(("name", "targets", "verdict"), DOWN, ids=[row[0] for row in DOWN])
def test_down(name: str, targets: tuple[str, ...], verdict: Verdict) -> None:
    assert isinstance(verdict, Down)
    assert verdict.targets == targets
    assert {look.how for look in verdict.tried} == {"silent"}


@pytest.mark.parametrize(("name", "why", "verdict"), UNCLEAR, ids=[row[0] for row in UNCLEAR])
def test_nobody_can_tell(name: str, why: str, verdict: Verdict) -> None:
    assert isinstance(verdict, CouldNotTell)
    assert why in verdict.why


@pytest.mark.parametrize(("name", "verdict"), UP, ids=[row[0] for row in UP])
def test_up(name: str, verdict: Verdict) -> None:
    assert isinstance(verdict, Up)


def test_patience_scales_and_no_look_is_too_short() -> None:
    usual, short = Patience(), Patience(0.7)
    assert (sum(usual.pauses), usual.spread_s, usual.deadlines) == (7.0, 5.0, (5.0, 5.0, 5.0, 15.0))
    assert (round(sum(short.pauses), 6), short.deadlines) == (0.7, (2.0, 2.0, 2.0, 8.0))


def test_all_of_it_or_the_node_is_critical_a_part_is_high() -> None:
    assert severity(["site"], ["site", "node"]) == "high"
    assert severity(["node"], ["site", "node"]) == "critical"
    assert severity(["site"], ["site"]) == "critical"


# -- targets ------------------------------------------------------------------------------------------------


def test_targets_are_origins_and_what_the_profile_lacks_is_none() -> None:
    assert [one.name for one in targets_of(PLATFORM)] == ["site", "proxy", "faces", "node"]
    bare = PLATFORM.web.model_copy(update={"site": "http://one", "proxy": "", "face": "http://one/f/{name}/"})
    (web, node) = targets_of(PLATFORM.model_copy(update={"web": bare}))
    assert (web.name, node.name) == ("site and faces", "node")
    assert [call.args["url"] for call in web.repro()] == ["{site}/", "{face:claude}"]
    assert [web.url(turn) for turn in range(4)] == [
        "http://one/",
        "http://one/f/claude/",
        "http://one/llms.txt",
        "http://one/f/claude/llms.txt",
    ]
    none = bare.model_copy(update={"site": "", "face": ""})
    assert [one.name for one in targets_of(PLATFORM.model_copy(update={"web": none}))] == ["node"]


def test_a_call_belongs_to_the_target_it_goes_to() -> None:
    contacts = Contacts(targets_of(PLATFORM))
    urls = ("http://site/x", "http://other.face/", "http://face/", "http://elsewhere/", "nonsense")
    assert [contacts.of("qa_fetch", {"url": url}) for url in urls] == ["site", "faces", "", "", ""]
    assert [contacts.of(tool, {}) for tool in ("qa_call", "qa_chain", "qa_compile")] == ["proxy", "node", ""]
    contacts.count("qa_fetch", {"url": "http://site/"}, {"error_class": "http", "status": 404})
    assert not contacts.failed
    contacts.count("qa_fetch", {"url": "http://site/"}, {"error_class": "http", "status": 503})
    assert contacts.failed == {"site": 1}


@pytest.mark.parametrize(
    ("host", "reach", "named"),
    [
        ("127.0.0.1", Reach.LOOPBACK, False),
        ("a.localhost", Reach.LOOPBACK, False),
        ("[::1]", Reach.LOOPBACK, False),
        ("10.0.0.7", Reach.PRIVATE, False),
        ("8.8.8.8", Reach.PUBLIC, False),
        ("example.org", Reach.PUBLIC, True),
    ],
)
def test_how_far_a_host_is_away(host: str, reach: Reach, named: bool) -> None:
    assert (reach_of(host), has_name(host)) == (reach, named)


def test_a_control_is_another_host() -> None:
    section = type(PLATFORM.web)
    with pytest.raises(ValueError, match="is the platform itself"):
        section(site="http://a", face="http://{name}.a/", proxy="http://p", controls=("http://p/x",))


# -- the one open outage ------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def maker(*targets: str) -> Callable[[str], Outage]:
    return lambda since: Outage(
        fp=fingerprint_of("p", targets, since),
        targets=targets,
        since=since,
        run="r",
        persona="qa-a",
        severity="high",
        title=f"{WORD}: {targets}",
    )


def seen(book: OutageBook, *targets: str, after_s: float = 0) -> tuple[OutageBook, Any]:
    return noticed(book, targets, maker(*targets), NOW + timedelta(seconds=after_s))


def test_the_same_outage_stays_one_and_the_next_is_another() -> None:
    one, _ = seen(OutageBook(), "site")
    assert seen(one, "site", after_s=60) == (one, None)
    over, end = answered(one, ["site", "node"], ["site", "node"], NOW + timedelta(seconds=90))
    assert end is not None
    assert (over.open, end.seconds, end.until, lasted(end.seconds)) == (
        None,
        90,
        "2026-11-22T12:01:30Z",
        "90 s",
    )
    again, _ = seen(over, "site", after_s=120)
    assert again.open is not None
    assert one.open is not None
    assert again.open.fp != one.open.fp
    assert again.ended == (end,)


def test_an_outage_that_grows_or_shrinks_is_another_item_that_began_then() -> None:
    one, _ = seen(OutageBook(), "site")
    grown, end = seen(one, "site", "proxy", after_s=60)
    assert grown.open is not None
    assert (grown.open.targets, grown.open.since) == (("site", "proxy"), "2026-11-22T12:00:00Z")
    assert end.why == "continues as another item: proxy went down too"
    less, end = seen(grown, "proxy", after_s=120)
    assert less.open is not None
    assert less.open.since == "2026-11-22T12:00:00Z"
    assert end.why == "continues as another item: site answered again"
    other, end = seen(less, "node", after_s=180)
    assert other.open is not None
    assert (other.open.since, end.why) == ("2026-11-22T12:03:00Z", "answered again, when node did not")


def test_who_sees_a_part_of_it_only_does_not_end_the_rest() -> None:
    one, _ = seen(OutageBook(), "site", "node")
    assert noticed(one, ["node"], maker("node"), NOW, unseen=["site", "proxy"]) == (one, None)
    assert noticed(one, ["node"], maker("node"), NOW, unseen=["proxy"])[1] is not None


def test_a_part_that_answers_does_not_end_it_and_a_part_that_is_gone_from_the_profile_is_not_waited_for() -> (
    None
):
    one, _ = seen(OutageBook(), "site", "proxy")
    assert answered(one, ["site"], ["site", "proxy"], NOW) == (one, None)
    assert answered(one, ["site"], ["site"], NOW)[0].open is None
    assert answered(one, [], ["new"], NOW) == (one, None)
    assert answered(one, ["new"], ["new"], NOW)[0].open is None


def test_a_damaged_book_is_an_error() -> None:
    with pytest.raises(ConfigError):
        read_book("{")


@pytest.mark.anyio
async def test_many_who_see_it_at_once_have_one_outage_and_one_of_them_its_end(tmp_path: Path) -> None:
    place = tmp_path / "fleet.db"
    async with await Journal.open(place) as one, await Journal.open(place) as two:
        found, ends = list[str](), list[Any]()

        async def notice(journal: Journal, late: int) -> None:
            after, _ = await settle(journal, "p", lambda book: seen(book, "site", after_s=late))
            assert after.open is not None
            found.append(after.open.fp)

        async def end(journal: Journal) -> None:
            _, over = await settle(journal, "p", lambda book: answered(book, ["site"], ["site"], NOW))
            ends.append(over)

        async with anyio.create_task_group() as tasks:
            for late in range(12):
                tasks.start_soon(notice, (one, two)[late % 2], late)
        assert (len(found), len(set(found))) == (12, 1)
        async with anyio.create_task_group() as tasks:
            for late in range(12):
                tasks.start_soon(end, (one, two)[late % 2])
        assert len([over for over in ends if over is not None]) == 1
        assert len((await book_of(one, "p")).ended) == 1
        assert list(await one.facts("outage.")) == [key_of("p")]


# -- a run's own look ---------------------------------------------------------------------------------------

QUICK = PLATFORM.model_copy(
    update={"web": PLATFORM.web.model_copy(update={"patience_s": 0.1}), "name": "quick"}
)
LOST = {"ok": False, "error_class": "unreachable", "error": f"x:80 does not answer: {REFUSED}"}


def silent(*hosts: str, times: int = 1_000, result: dict[str, Any] = LOST) -> Callable[..., Awaitable[Any]]:
    """All is well, but for so many calls to these hosts."""
    left = [times]

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if any(f"//{host}" in args.get("url", "") for host in hosts) and left[0]:
            left[0] -= 1
            return result
        return await well(tool, args)

    return answer


def watching(*probes: Any) -> Any:
    one = persona(*probes)
    return type(one)(
        persona=one.persona.model_copy(update={"outages": True}),
        body=one.body,
        sha256=one.sha256,
        path=one.path,
    )


async def rows(table: Table) -> list[tuple[str, str, str]]:
    found = await table.world.journal.findings(RUN)
    return [(row.probe, row.state, row.severity) for row in found]


@pytest.mark.anyio
async def test_a_healthy_platform_costs_one_look_at_each_target(tmp_path: Path) -> None:
    async with seated(tmp_path, watching(look("a")), platform=QUICK) as table:
        assert await table.drive() == ""
        asked = {args["url"] for _, args in table.jail.calls[:3]}  # at the same time
        assert asked == {"http://site/", "http://proxy/", "http://claude.face/"}
        assert len(table.jail.calls) == 4
        assert await rows(table) == []


@pytest.mark.anyio
async def test_a_part_that_is_down_is_found_first_and_never_waited_for_again(tmp_path: Path) -> None:
    async with seated(
        tmp_path, watching(look("a"), look("b", url="{proxy}/")), platform=QUICK, answer=silent("site")
    ) as table:
        assert await table.drive() == "1 of 2 probes looked at"
        assert await rows(table) == [(WORD, "confirmed", "high")]
        (row,) = await table.world.journal.findings(RUN)
        assert "outage of site: connection refused, 4 looks" in row.title
        assert row.title.endswith("; proxy, faces and node answer")
        assert "rate=3/3 ev=sha256:" in row.envelope
        assert (table.folder / "evidence" / f"{row.evidence}.json").is_file()
        assert [event.fingerprint for event in table.said("outage.noticed")] == [row.fingerprint]
        sites = [args["url"] for _, args in table.jail.calls if "//site" in args["url"]]
        assert sites == ["http://site/", "http://site/llms.txt", "http://site/skill.md", "http://site/"]
        assert f"outage {row.fingerprint} is noticed" in table.decisions()


@pytest.mark.anyio
async def test_trouble_in_the_middle_of_any_run_is_looked_into(tmp_path: Path) -> None:
    late = {"ok": False, "error_class": "timeout", "error": "no complete answer in time from site"}
    answer = silent("site", result=late)
    async with seated(tmp_path, persona(look("a", "true")), platform=QUICK, answer=answer) as table:
        with pytest.raises(RunOver, match="blind"):  # nothing was looked at
            await table.drive()
        assert await rows(table) == [(WORD, "confirmed", "high")]
        assert TIMED_OUT in (await table.world.journal.findings(RUN))[0].title


@pytest.mark.anyio
async def test_what_answers_a_moment_later_was_no_outage(tmp_path: Path) -> None:
    answer = silent("site", times=2)
    async with seated(tmp_path, persona(look("a")), platform=QUICK, answer=answer) as table:
        with pytest.raises(RunOver, match="blind"):  # nothing was looked at
            await table.drive()
        assert await rows(table) == []
        assert table.said("outage.noticed") == []


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["internal", "refused", "disk_full"])
async def test_our_own_trouble_is_no_outage(tmp_path: Path, kind: str) -> None:
    ours = {"ok": False, "error_class": kind, "error": "ours"}
    answer = silent("site", result=ours)
    async with seated(tmp_path, watching(look("a")), platform=QUICK, answer=answer) as table:
        with pytest.raises(RunOver, match="blind"):  # nothing was looked at
            await table.drive()
        assert await rows(table) == []
        assert (await book_of(table.world.journal, "quick")).open is None


@pytest.mark.anyio
async def test_with_nothing_that_answers_the_run_says_that_it_cannot_tell(tmp_path: Path) -> None:
    async with seated(
        tmp_path, watching(look("a")), platform=QUICK, answer=silent("site", "proxy", "claude.face")
    ) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert found.value.outcome == "could_not_tell"
        assert await rows(table) == []
        (event,) = table.said("check.failed")
        assert event.reason.startswith("could not tell: our network or machine: site, proxy and faces: ")
        assert not [event for event in table.said("tool.requested") if event.probe == "a"]


@pytest.mark.anyio
async def test_any_run_ends_an_outage_that_is_over(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        journal = table.world.journal
        now = datetime.now(UTC)
        before, _ = await settle(journal, "paper", lambda book: noticed(book, ["site"], maker("site"), now))
        await table.drive()
        (end,) = table.said("outage.ended")
        assert before.open is not None
        assert (end.fingerprint, end.targets) == (before.open.fp, ("site",))
        assert (await book_of(journal, "paper")).open is None
        assert f"outage {before.open.fp} is over" in table.decisions()
        assert await rows(table) == []


async def dead(deadline_s: float) -> str:
    return REFUSED


async def unhealthy() -> None:
    error = Unreachable("the node does not answer")
    error.how = REFUSED
    raise error


@pytest.mark.anyio
async def test_a_node_that_is_down_is_kept_until_it_is_back(tmp_path: Path) -> None:
    async with seated(tmp_path, persona(look("a")), platform=QUICK, check=unhealthy, node=dead) as table:
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert (found.value.outcome, found.value.detail) == (
            "failed",
            "health check: the node does not answer",
        )
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.severity, row.data["held"]) == ("confirmed", "critical", True)
        assert row.repro == 'qa_chain(function="feedbackCount")'
        assert not [event for event in table.said("tool.requested") if event.probe == "a"]


@pytest.mark.anyio
@pytest.mark.parametrize("held", [True, False], ids=["the node", "a run that was killed"])
@pytest.mark.parametrize(("seconds", "posted"), [(1.0, False), (90.0, True)], ids=["short", "long"])
async def test_what_could_not_be_posted_is_when_it_is_over_unless_it_lasted_for_seconds_only(
    tmp_path: Path, seconds: float, posted: bool, held: bool
) -> None:
    async with seated(tmp_path, persona(look("a"))) as table:
        journal = table.world.journal
        began = datetime.now(UTC) - timedelta(seconds=seconds)
        since = began.isoformat()
        known = maker("node")(since).model_copy(update={"held": held})
        await settle(journal, "paper", lambda book: (OutageBook(open=known), None))
        await table.drive()
        assert len(table.said("outage.ended")) == 1
        found = await journal.findings(RUN)
        assert [(row.state, row.data["held"]) for row in found] == [("confirmed", False)] * posted


@pytest.mark.anyio
async def test_stop_ends_a_look(tmp_path: Path) -> None:
    async with seated(tmp_path, watching(look("a")), platform=QUICK, answer=silent("site")) as table:
        table.stop()
        with pytest.raises(RunOver) as found:
            await table.drive()
        assert found.value.outcome == "stopped"
        assert table.jail.calls == []


@pytest.mark.anyio
async def test_a_platform_that_locked_us_out_is_not_down(tmp_path: Path) -> None:
    async def silent(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if "alive" in args:
            return {"ok": False, "error_class": "busy", "error": "locked out: no answer", "locked_out": True}
        return {"ok": False, "error_class": "unreachable", "error": f"site: {RESET}"}

    async with seated(tmp_path, persona(), answer=silent) as table:
        session = table.drive.runner.session
        for args in ({"url": "http://site/%", "alive": "http://site/"}, {"url": "http://site/a"}):
            await session.call("qa_fetch", args, probe="x")
        watch = Watch(table.world, RUN, persona(), session, table.drive.runner.stream)
        await watch.after()
        (failed,) = table.said("check.failed")
    assert failed.reason == "its silence is not an outage: locked out: no answer"
    assert table.said("outage.noticed") == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "word", ["there is no other way to ask: it may have ended", "another caller had one"]
)
async def test_a_lock_out_is_reported_and_is_an_outage_if_the_next_run_finds_it_silent(
    tmp_path: Path, word: str
) -> None:
    """One remote address that dies has no witness: a run cannot tell and says so, the next one can."""
    why = f"locked out: no answer to us for 9.1 s; {word}"

    async def ended(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        if "alive" in args:
            return {"ok": False, "error_class": "busy", "error": why, "locked_out": True}
        return LOST if "//site" in args["url"] else await well(tool, args)

    attack = look("attack", url="{site}/%", alive="{site}/")
    async with seated(tmp_path, persona(attack, look("a")), platform=QUICK, answer=ended) as table:
        with suppress(RunOver):
            await table.drive()
        assert not table.said("outage.noticed")
        (left,) = coverage(table.folder, RUN, "done")["left"]
    assert left["part"] == LOCK_OUT
    assert left["reason"] == f"{why}; if it stays silent, the next run looks for an outage"
    async with seated(tmp_path, persona(look("a")), platform=QUICK, answer=ended, run="laterrun") as table:
        with suppress(RunOver):
            await table.drive()
        (noticed_,) = table.said("outage.noticed")
        assert noticed_.targets == ("site",)
        assert coverage(table.folder, "laterrun", "done")["left"] == []
