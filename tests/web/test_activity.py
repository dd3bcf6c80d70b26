"""The feed of what is done: live, searched, exported, archived; and notices that stand until dismissed."""

from __future__ import annotations

import csv
import json
import os
import socket
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from fleet.broker.egress_record import EGRESS
from fleet.config import FleetConfig
from fleet.events.daemon_events import FEED, DaemonLost
from fleet.events.model import (
    Event,
    FindingRaised,
    FindingVerified,
    Footer,
    GateDenied,
    Header,
    PhaseChanged,
    QuestionAnswered,
    QuestionAsked,
    ToolRequested,
    ToolResponded,
)
from fleet.runs.activity import SHOWN, ActivityFeed, ActivityFilter, archive, prune
from fleet.runs.call.sealed import TRAJECTORY
from fleet.service.notify.shown import shown_notices
from fleet.store.journal import Journal
from tests.notices.stand import Bench
from tests.web.conftest import TEXTS, Served

pytestmark = pytest.mark.anyio
AT = "2026-11-21T04:1{}:00.000Z"
SECOND = "2026-11-21T04:30:00.{:03}Z"
BRIEF = {"persona_sha256": "0", "driver": "playbook", "platform": "devnet", "chain_id": 1}
RIGHTS = {"rung": "observe", "jail": "bwrap", "trigger": "every 1h"}
EVENTS: tuple[Event, ...] = (
    Header(persona="qa-ux", budget={}, targets={"site": "https://shop.example/"}, **BRIEF, **RIGHTS),
    PhaseChanged(before="initialization", after="identification", why="a driver asks", rung="observe"),
    ToolRequested(call=1, tool="qa_fetch", args={"url": "https://shop.example/a"}, impact="low 8/8/8"),
    ToolResponded(call=1, tool="qa_fetch", is_error=False, result={}, seconds=0.1),
    GateDenied(call=2, tool="qa_fetch", rule="scope", reason=f"=x {TEXTS[0]}", args={}),
    FindingRaised(fingerprint="ab" * 6, probe="p", title="Secret is public", severity="high"),
    FindingVerified(fingerprint="ab" * 6, confirmed=2, tries=3, state="flaky"),
    QuestionAsked(
        question="q1", trigger="pause", place="", what="go on?", level="medium", until="2026-11-21T05:00:00Z"
    ),
    ToolRequested(call=3, tool="qa_chain", args={}),
)


def recorded(state: Path, run: str, events: tuple[Event, ...] = EVENTS, at: str = AT) -> Path:
    """A run whose events are a minute apart, or as `at` says."""
    folder = state / "runs" / run
    folder.mkdir(parents=True)
    stamped = [one.model_copy(update={"run": run, "at": at.format(n)}) for n, one in enumerate(events)]
    (folder / TRAJECTORY).write_text("".join(f"{one.model_dump_json()}\n" for one in stamped))
    asked = {"n": 1, "call": 1, "host": "cdn.example", "rule": "", "verb": "GET"}
    (folder / EGRESS).write_text(f"{json.dumps(asked)}\n")
    last = datetime.fromisoformat(at.format(len(events) - 1)).timestamp()
    os.utime(folder / TRAJECTORY, (last, last))
    return folder


def told(feed: ActivityFeed, **wanted: str) -> list[tuple[str, str, str, str]]:
    """The acts of runs, oldest first: what, status, severity, systems."""
    found = feed.search(ActivityFilter(**wanted))[::-1]
    return [(one.what, one.status, one.severity, " ".join(one.systems)) for one in found if one.run]


async def test_an_act_says_what_it_touched_how_it_went_and_who_must_agree(tmp_path: Path) -> None:
    folder = recorded(tmp_path, "run1")
    (tmp_path / FEED).write_text(DaemonLost(at=AT.format(0), last_seen=AT.format(0)).model_dump_json() + "\n")
    feed = ActivityFeed(tmp_path)
    assert told(feed) == [
        ("header", "completed", "info", "shop.example"),
        ("phase.changed", "completed", "info", ""),
        ("qa_fetch", "completed", "info", "shop.example cdn.example"),
        ("qa_fetch", "refused", "medium", ""),
        ("finding.raised", "completed", "high", ""),
        ("finding.verified", "failed", "high", ""),
        ("question.asked", "escalated", "medium", ""),
        ("qa_chain", "in progress", "info", ""),
    ]
    acts = {(one.what, one.call): one for one in feed.latest()}
    assert acts["finding.verified", 0].confidence == 0.67
    assert acts["question.asked", 0].approvals.startswith("a person, until 2026-11-21T05:00:00Z")
    assert (acts["qa_fetch", 1].type, acts["qa_fetch", 1].impact) == ("identification", "low 8/8/8")
    assert (acts["daemon.lost", 0].type, acts["daemon.lost", 0].severity) == ("fleet", "high")
    with (folder / TRAJECTORY).open("a") as file:
        said = QuestionAnswered(
            run="run1", at=AT.format(9), question="q1", answer="approved", who="ann", why=""
        )
        over = Footer(run="run1", at=AT.format(9), outcome="stopped")
        file.write(f"{said.model_dump_json()}\n{over.model_dump_json()}\n")
    acts = {(one.what, one.call): one for one in feed.latest()}  # it reads on where it was
    assert (acts["question.asked", 0].status, acts["question.asked", 0].approvals) == (
        "completed",
        "approved by ann",
    )
    assert (acts["qa_chain", 3].status, acts["footer", 0].status) == ("failed", "failed")


@pytest.mark.parametrize(
    ("wanted", "many"),
    [
        ({"host": "CDN.example"}, 1),
        ({"type": "qa_fetch"}, 2),
        ({"type": "initialization"}, 1),
        ({"severity": "high"}, 2),
        ({"status": "escalated"}, 1),
        ({"text": "secret public"}, 1),
        ({"since": "2026-11-21T04:17:00", "until": "2026-11-21T04:18:00"}, 1),
        ({"since": "2026-11-22"}, 0),
    ],
)
async def test_the_history_is_searched(tmp_path: Path, wanted: dict[str, str], many: int) -> None:
    recorded(tmp_path, "run1")
    assert len(told(ActivityFeed(tmp_path), **wanted)) == many


async def test_the_newest_are_shown_and_all_are_exported(served: Served) -> None:
    recorded(served.state, "run1")
    many = [ToolRequested(call=n, tool="qa_chain", args={}) for n in range(SHOWN)]
    recorded(served.state, "run2", (EVENTS[0], *many), SECOND)
    page = await served.ask("/activity")
    assert page.text.count("<tr><td>") == SHOWN
    found = await served.ask("/activity?host=shop&status=completed&q=qa_fetch")
    assert "1 newest" in found.text
    assert "shop.example, cdn.example" in found.text
    assert (await served.ask("/activity?status=dreadful")).status_code == 400
    assert (await served.ask("/activity?since=someday")).status_code == 400
    answer = await served.ask("/activity.csv?type=qa_fetch")
    assert answer.headers["content-type"] == "text/csv"
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [(one["at"], one["status"], one["systems"]) for one in rows] == [
        (AT.format(4), "refused", ""),
        (AT.format(2), "completed", "shop.example cdn.example"),
    ]
    whole = (await served.ask("/activity.json")).json()
    assert len(whole) >= SHOWN + 1 + len(EVENTS) - 1
    assert (await served.ask("/activity.xml")).status_code == 404
    assert (await served.ask("/activity.csv", host="evil.example")).status_code == 421


async def test_what_is_a_month_old_is_archived_and_still_found(tmp_path: Path) -> None:
    folder, now = recorded(tmp_path, "run1"), datetime(2026, 12, 21, 4, 30, tzinfo=UTC)
    before = told(ActivityFeed(tmp_path))
    assert archive(tmp_path, now - timedelta(days=1)) == 0
    assert (archive(tmp_path, now), archive(tmp_path, now)) == (1, 0)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert told(ActivityFeed(tmp_path)) == before
    assert len(told(ActivityFeed(tmp_path), host="cdn.example")) == 1
    prune(tmp_path, 0, now)
    prune(tmp_path, 30, now)
    assert told(ActivityFeed(tmp_path)) == before
    prune(tmp_path, 30, now + timedelta(days=1))
    assert told(ActivityFeed(tmp_path)) == []


async def test_a_notice_stands_on_every_page_until_a_person_dismisses_it(served: Served) -> None:
    async with await Journal.open(served.state / "fleet.db") as journal:
        here = Bench(journal, served.state, FleetConfig())  # nobody is notified: no webhook, no URL
        watch = here.watch()
        await here.items()
        await watch.round()
        await here.items("confirmed", title="the page is empty")
        await watch.round()
        (one,) = await shown_notices(journal)
    assert (one.event, one.severity, one.link) == ("finding", "high", "/items/000000000000")
    for path in ("/", "/worklist", "/activity"):
        page = (await served.ask(path)).text
        assert '<div class="banner high">' in page
        assert f'<a href="{one.link}"><bdi>{one.text}' in page
        assert "Dismiss</button>" not in page
    assert (await served.ask(f"/notices/{one.id}/dismiss", "POST", form={})).status_code == 403
    cookie, csrf = await served.unlocked()
    form = {"csrf": csrf, "back": "/worklist"}
    form_headers = {"cookie": cookie, "origin": "http://127.0.0.1:8080"}
    gone = await served.ask(f"/notices/{one.id}/dismiss", "POST", form=form, **form_headers)
    assert (gone.status_code, gone.headers["location"]) == (303, "/worklist")
    again = await served.ask(f"/notices/{one.id}/dismiss", "POST", form=form, **form_headers)
    assert again.status_code == 400
    assert "banner high" not in (await served.ask("/")).text
    async with await Journal.open(served.state / "fleet.db") as journal:
        await here_again(journal, served)
        (kept,) = await shown_notices(journal)
    assert kept.dismissed_by == f"page@{socket.gethostname()}"
    assert kept.dismissed[:4] == f"{datetime.now(UTC):%Y}"
    history = (await served.ask("/notices")).text
    assert kept.text in history
    assert kept.dismissed_by in history


async def here_again(journal: Journal, served: Served) -> None:
    """The next round of a daemon's watch neither repeats nor forgets it."""
    await Bench(journal, served.state, FleetConfig()).watch().round()
