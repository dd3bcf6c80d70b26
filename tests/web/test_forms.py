"""What a page may change: with a token, in a session, by its own form, under a name, with its undo."""

from __future__ import annotations

import socket

import pytest

from fleet.gate.stop import stopped
from fleet.runs.call.questions import questions
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow, NewRun
from fleet.web.session import COOKIE, TOKEN
from tests.cli.test_status import ITEMS
from tests.web.conftest import FIRST, HELD, TEXTS, URL, Served

pytestmark = pytest.mark.anyio
OTHER = ITEMS[0].fingerprint
DISMISS = f"/items/{FIRST}/dismiss"


async def decided(served: Served) -> list[DecisionRow]:
    async with await Journal.open(served.state / "fleet.db") as journal:
        return await journal.decisions("devnet")


async def test_the_token_is_private_and_the_session_is_not_the_token(served: Served) -> None:
    assert str(served.state / TOKEN) in (await served.ask("/unlock")).text
    path = served.state / TOKEN
    token = path.read_text().strip()
    assert path.stat().st_mode & 0o777 == 0o600
    wrong = await served.ask("/unlock", "POST", form={"token": token[:-1]}, origin=URL)
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    answer = await served.ask("/unlock", "POST", form={"token": token, "back": "//evil.example"}, origin=URL)
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert token not in cookie
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    path.write_text("another token of enough length\n")
    assert "Unlock actions" in (await served.ask("/", cookie=cookie.partition(";")[0])).text
    path.chmod(0o644)
    assert (await served.ask("/unlock")).status_code == 503


@pytest.mark.parametrize(
    ("headers", "word", "rule"),
    [
        ({}, "right", "another page"),
        ({"origin": "http://evil.example"}, "right", "another page"),
        ({"origin": "null"}, "right", "another page"),
        ({"origin": "http://127.0.0.1:8081"}, "right", "another page"),
        ({"origin": URL, "sec_fetch_site": "cross-site"}, "right", "another page"),
        ({"origin": URL}, "wrong", "not of this session"),
        ({"origin": URL}, "", "not of this session"),
        ({"origin": URL, "cookie": ""}, "right", "not entered the token"),
        ({"origin": URL, "cookie": f"{COOKIE}=9999999999.x.y"}, "right", "not entered the token"),
        ({"origin": URL, "cookie": f"{COOKIE}=1.x.y"}, "right", "not entered the token"),
    ],
)
async def test_a_form_that_is_not_ours_changes_nothing(
    served: Served, headers: dict[str, str], word: str, rule: str
) -> None:
    cookie, csrf = await served.unlocked()
    form = {"reason": "x", "csrf": {"right": csrf}.get(word, word)}
    answer = await served.ask(DISMISS, "POST", form=form, **{"cookie": cookie, **headers})
    assert answer.status_code == 403
    assert rule in answer.text
    assert await decided(served) == []
    stop = await served.ask("/stop", "POST", form=form, **{"cookie": cookie, **headers})
    assert stop.status_code == 403
    assert stopped(served.state) is None


async def test_nothing_can_be_changed_without_the_token_or_by_reading(served: Served) -> None:
    text = (await served.ask(f"/items/{FIRST}")).text
    assert "Dismiss" not in text
    for path in ("/stop", "/resume", "/lock", DISMISS):
        assert (await served.ask(path)).status_code == 405
    assert (await served.ask("/stop", "POST", form={}, origin=URL)).status_code == 403


async def test_each_decision_is_recorded_with_who_and_why_and_has_its_undo(served: Served) -> None:
    cookie, csrf = await served.unlocked()

    async def post(path: str, **form: str) -> str:
        made = {"csrf": csrf, **form}
        answer = await served.ask(path, "POST", form=made, cookie=cookie, origin=URL)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    steps = (
        ("dismiss", {"reason": "by design", "for": "30d"}),
        ("undo", {"reason": "not so"}),
        ("snooze", {"reason": "after the release", "for": "1w"}),
        ("reopen", {"reason": "now"}),
        ("severity", {"reason": "internal", "level": "low"}),
        ("merge", {"reason": "the same page", "other": OTHER}),
        ("undo", {"reason": "they differ"}),
        ("split", {"reason": "another page", "part": FIRST}),
    )
    for kind, form in steps:
        to = await post(f"/items/{FIRST}/{kind}", back=f"/items/{FIRST}", **form)
        assert to.startswith(f"/items/{FIRST}?done={kind}&item={FIRST}&decision=")
        shown = (await served.ask(to, cookie=cookie)).text
        assert form["reason"] in shown
        assert f'action="/items/{FIRST}/undo"' in shown
    await post(f"/items/{HELD}/release", reason="ours to tell")
    made = await decided(served)
    kinds = ["dismiss", "undo", "snooze", "reopen", "severity", "merge", "undo", "split", "release"]
    assert [one.kind for one in made] == kinds
    assert (made[4].severity, made[5].other, made[6].undoes) == ("low", OTHER, made[5].name)
    assert {one.who for one in made} == {f"page@{socket.gethostname()}"}
    assert made[1].undoes == made[0].name
    assert [one.kind for one in made if one.until] == ["dismiss", "snooze"]
    assert "by design" in (served.state / "DECISIONS.md").read_text()


@pytest.mark.parametrize(
    ("path", "form", "why"),
    [
        (DISMISS, {"reason": " "}, "needs a reason"),
        (f"/items/{FIRST}/snooze", {"reason": "x"}, "a snooze ends"),
        (f"/items/{FIRST}/link", {"reason": "x"}, "cannot be decided here"),
        (f"/items/{FIRST}/merge", {"reason": "x"}, "needs the other item"),
        (f"/items/{FIRST}/severity", {"reason": "x", "level": "grave"}, "not a severity"),
        (f"/items/{FIRST}/split", {"reason": "x"}, "no item"),
        ("/runs/run0/cancel", {"reason": "x"}, "is over"),
        ("/runs/run0/cancel", {}, "needs a reason"),
        ("/runs/run0/pause", {}, "needs a reason"),
        ("/runs/run0/pause", {"reason": "x"}, "is not running"),
        ("/questions/0123456789ab/approve", {"reason": "x"}, "no open question"),
        ("/questions/0123456789ab/maybe", {"reason": "x"}, "is no answer"),
        (f"/items/{FIRST}/undo", {"reason": "x"}, "no decision about"),
        ("/items/zz/dismiss", {"reason": "x"}, "no item"),
        ("/resume", {}, "needs a reason"),
        (DISMISS, {"reason": "x" * 9_000}, "more than"),
    ],
)
async def test_a_decision_that_makes_no_sense_is_refused_with_a_way_on(
    served: Served, path: str, form: dict[str, str], why: str
) -> None:
    cookie, csrf = await served.unlocked()
    answer = await served.ask(path, "POST", form={"csrf": csrf, **form}, cookie=cookie, origin=URL)
    assert answer.status_code == 400
    assert why in answer.text
    assert await decided(served) == []


async def test_stop_and_go_on_by_the_page(served: Served) -> None:
    cookie, csrf = await served.unlocked()
    sent = {"cookie": cookie, "origin": URL}
    form = {"csrf": csrf, "reason": "a leak"}
    assert (await served.ask("/stop", "POST", form=form, **sent)).status_code == 303
    pause = stopped(served.state)
    assert pause is not None
    assert f"a leak (page@{socket.gethostname()}" in pause.why
    text = (await served.ask("/", cookie=cookie)).text
    assert "Everything is stopped." in text
    assert ">Stopped<" in text
    await served.ask("/resume", "POST", form={"csrf": csrf, "reason": "looked"}, **sent)
    assert stopped(served.state) is None
    async with await Journal.open(served.state / "fleet.db") as journal:
        acts = list((await journal.facts("halt:")).values())
    assert ['"act": "stop"' in acts[0], '"act": "resume"' in acts[1]] == [True, True]


async def test_the_log_is_compared_with_its_mirror_by_the_page(served: Served) -> None:
    cookie, csrf = await served.unlocked()
    sent = {"cookie": cookie, "origin": URL}
    missing = await served.ask("/log/verify", "POST", form={"csrf": csrf}, **sent)
    assert (missing.status_code, "no platform named" in missing.text) == (400, True)
    (served.state / "platforms").mkdir()
    profile = 'name = "devnet"\nlog = "file"\n[web]\nsite = "http://127.0.0.1:1"\n'
    (served.state / "platforms" / "devnet.toml").write_text(profile)
    assert (await served.ask("/log/verify", "POST", form={}, **sent)).status_code == 403
    assert "As compared" not in (await served.ask("/log")).text
    answer = await served.ask("/log/verify", "POST", form={"csrf": csrf}, **sent)
    assert (answer.status_code, answer.headers["location"]) == (303, "/log")
    text = (await served.ask("/log")).text
    assert "As compared at" in text
    assert f"{len(TEXTS)} entries, whole" in text
    assert "the log differs from index 0 on (0 entries there)" in text


async def test_a_run_is_cancelled_by_the_page(served: Served) -> None:
    async with await Journal.open(served.state / "fleet.db") as journal:
        await journal.trigger(
            NewRun(
                run_id="live0001",
                persona="qa-smoke",
                key="k",
                platform="devnet",
                trigger="every 1h",
                rung="",
                budget={},
            )
        )
    cookie, csrf = await served.unlocked()
    assert 'action="/runs/live0001/cancel"' in (await served.ask("/runs/live0001", cookie=cookie)).text
    assert "/cancel" not in (await served.ask("/runs/live0001")).text
    form = {"csrf": csrf, "reason": "the wrong build", "back": "/runs/live0001"}
    answer = await served.ask("/runs/live0001/cancel", "POST", form=form, cookie=cookie, origin=URL)
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/live0001")
    async with await Journal.open(served.state / "fleet.db") as journal:
        assert (
            await journal.run("live0001")
        ).cancel == f"cancelled by page@{socket.gethostname()}: the wrong build"
    assert "the wrong build" in (await served.ask("/runs/live0001")).text


async def test_a_run_is_paused_and_let_go_on_by_the_page(served: Served) -> None:
    run = NewRun(
        run_id="live0002",
        persona="qa-smoke",
        key="k2",
        platform="example",
        trigger="every 1h",
        rung="",
        budget={},
    )
    async with await Journal.open(served.state / "fleet.db") as journal:
        await journal.trigger(run)
        await journal.claim("live0002", pid=1, pid_start=1)
    cookie, csrf = await served.unlocked()
    sent = {"cookie": cookie, "origin": URL}
    assert 'action="/runs/live0002/pause"' in (await served.ask("/runs/live0002", cookie=cookie)).text
    form = {"csrf": csrf, "reason": "an odd answer", "back": "/"}
    assert (await served.ask("/runs/live0002/pause", "POST", form=form, **sent)).status_code == 303
    async with await Journal.open(served.state / "fleet.db") as journal:
        [asked] = await questions(journal)
    who = f"page@{socket.gethostname()}"
    assert (asked.run, asked.state, asked.what) == ("live0002", "open", f"paused by {who}: an odd answer")
    text = (await served.ask("/", cookie=cookie)).text
    assert f'action="/questions/{asked.ident}/approve"' in text
    assert f'formaction="/questions/{asked.ident}/deny"' in text
    assert f"fleet runs answer {asked.ident}" in (await served.ask("/")).text
    to = f"/questions/{asked.ident}/approve"
    assert (
        await served.ask(to, "POST", form={"csrf": csrf, "reason": "all is well"}, **sent)
    ).status_code == 303
    async with await Journal.open(served.state / "fleet.db") as journal:
        [said] = await questions(journal)
    assert (said.state, said.closing.who, said.closing.why) == ("approved", who, "all is well")
    assert "/questions/" not in (await served.ask("/", cookie=cookie)).text


async def test_without_a_daemon_nothing_can_be_run_by_the_page(served: Served) -> None:
    cookie, csrf = await served.unlocked()
    for path in ("/personas", "/runs/run0"):
        text = (await served.ask(path, cookie=cookie)).text
        assert ("/start" in text, "/replay" in text) == (False, False)
    for path in ("/personas/qa-ux/start", "/runs/run0/replay"):
        answer = await served.ask(path, "POST", form={"csrf": csrf}, cookie=cookie, origin=URL)
        assert answer.status_code == 503
        assert "no daemon is ready" in answer.text
