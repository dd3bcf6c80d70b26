"""What the daemon says about itself: to systemd, to Prometheus, to a probe, to its log."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.app.bootstrap import GRACE_S
from fleet.errors import ConfigError
from fleet.events.daemon_events import PersonaRefused, SubscriptionLost, SubscriptionOpened
from fleet.events.model import GateDenied, Header, ToolRequested, ToolResponded
from fleet.findings.redact import Redactor
from fleet.service.daemon import LEAVE_S
from fleet.service.exposition import exposition
from fleet.service.http_server import application
from fleet.service.listeners import listeners
from fleet.service.log_events import log_daemon, log_run
from fleet.service.logs import configure, mask_with
from fleet.service.metrics import Tally
from fleet.service.readiness import Notifier
from fleet.service.snapshot import (
    DaemonSnapshot,
    JournalSnapshot,
    PersonaSummary,
    PlatformReach,
)
from tests.service.conftest import FETCH, Up, persona

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)
SNAPSHOT = DaemonSnapshot(
    rung="exercise",
    paused=False,
    live=1,
    beat_age_s=0.5,
    now=NOW,
    outcomes={"done": 4, "cancelled": 1},
    journal=JournalSnapshot(
        waiting={"qa-a": 2},
        left={"": {"writes": 99}, "qa-a": {"calls": 40}},
        reachable=PlatformReach(up=True, since="2026-11-21T17:50:00Z", by="qa-smoke", why=""),
    ),
    ages={"queued": "2026-11-21T17:59:00Z"},
    budgets={("qa-a", "calls"): 7},
    outbox=1,
    log_entries=12,
    log_mirrored=10,
    personas=(PersonaSummary(name="qa-y", day={"calls": 5}),),
    refused={"qa-x": "qa-x.md:3: bad"},
    upcoming={"qa-a": "2026-11-21T18:01:00Z"},
    last_success={"qa-a": "2026-11-21T17:50:00Z"},
    coverage={("qa-a", "looked"): 3, ("qa-a", "could_not"): 1},
    items={("confirmed", "high"): 2},
    worklist_age_s=90.0,
)


class Well:
    """A daemon that is fine, until told otherwise."""

    def __init__(self) -> None:
        self.is_ready, self.beat_age_s = True, 0.1

    async def snapshot(self) -> DaemonSnapshot:
        return SNAPSHOT

    async def metrics(self) -> bytes:
        return exposition(SNAPSHOT, Tally())


async def ask(well: Well, path: str, method: str = "GET", host: str = "127.0.0.1:9") -> httpx.Response:
    transport = httpx.ASGITransport(app=application(well))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9") as client:
        return await client.request(method, path, headers={"host": host})


@pytest.mark.anyio
async def test_a_loop_that_hangs_is_unhealthy_and_a_draining_daemon_not_ready() -> None:
    well = Well()
    assert (await ask(well, "/healthz")).status_code == 200
    assert (await ask(well, "/readyz")).json() == {
        "ok": True,
        "waiting": 2,
        "rung": "exercise",
        "paused": False,
        "runs": 1,
        "personas": 1,
        "degraded": "",
        "loaded": [{"name": "qa-y", "looks": True, "day": {"calls": 5}}],
        "refused": {"qa-x": "qa-x.md:3: bad"},
        "platform": {"up": True, "since": "2026-11-21T17:50:00Z", "by": "qa-smoke", "why": ""},
        "next": {"qa-a": "2026-11-21T18:01:00Z"},
        "log": {"entries": 12, "read": 10},
    }
    well.is_ready, well.beat_age_s = False, 31.0
    assert (await ask(well, "/healthz")).status_code == 503
    assert (await ask(well, "/readyz")).status_code == 503


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["evil.example", "evil.example:9", "127.0.0.1.evil.example", ""])
async def test_a_page_that_dns_pointed_here_gets_nothing(host: str) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await ask(Well(), path, host=host)).status_code == 421


@pytest.mark.anyio
async def test_nothing_can_be_changed_by_these_pages() -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert (await ask(Well(), path, method="POST")).status_code == 405


def test_metrics_say_what_is_asked_of_them() -> None:
    tally = Tally()
    tally.run(ToolRequested(call=1, tool="qa_fetch", args={}))
    tally.run(ToolResponded(call=1, tool="qa_fetch", is_error=False, result={}, seconds=0.5))
    tally.run(GateDenied(call=2, tool='x"} 1\nfleet_evil', rule="grant", reason=""))
    tally.daemon(PersonaRefused(file="qa-x.md", reason="bad", kept=False))
    lines = set(exposition(SNAPSHOT, tally).decode().splitlines())
    assert {
        'fleet_runs_total{outcome="done"} 4.0',
        'fleet_tool_calls_total{tool="qa_fetch",verdict="permit"} 1.0',
        'fleet_tool_calls_total{tool="other",verdict="grant"} 1.0',
        'fleet_tool_seconds_total{tool="qa_fetch"} 0.5',
        'fleet_queue_depth{persona="qa-a"} 2.0',
        'fleet_stage_age_seconds{stage="queued"} 60.0',
        'fleet_stage_age_seconds{stage="running"} 0.0',
        'fleet_budget_left{persona="qa-a",unit="calls"} 7.0',
        'fleet_day_budget_left{persona="",unit="writes"} 99.0',
        'fleet_day_budget_left{persona="qa-a",unit="calls"} 40.0',
        "fleet_log_lag 2.0",
        "fleet_rung 1.0",
        "fleet_paused 0.0",
        "fleet_outbox 1.0",
        "fleet_personas_refused_total 1.0",
        "fleet_triggers_skipped_total 0.0",
        "fleet_platform_up 1.0",
        'fleet_last_success_timestamp_seconds{persona="qa-a"} 1.7952834e+09',
        'fleet_coverage_probes{group="looked",persona="qa-a"} 3.0',
        'fleet_coverage_probes{group="could_not",persona="qa-a"} 1.0',
        'fleet_findings{severity="high",state="confirmed"} 2.0',
        "fleet_worklist_age_seconds 90.0",
    } <= lines
    assert not any("evil" in line for line in lines)


def test_the_subscription_to_new_blocks_is_shown_where_there_is_one() -> None:
    tally = Tally()
    gauges = []
    for event in (None, SubscriptionOpened(), SubscriptionLost(reason="cut"), SubscriptionOpened()):
        if event is not None:
            tally.daemon(event)
        page = exposition(replace(SNAPSHOT, subscription=tally.subscription), tally).decode().splitlines()
        gauges.append([line[-3:] for line in page if line.startswith("fleet_chain_subscribed")])
    assert gauges == [[], ["1.0"], ["0.0"], ["1.0"]]


@pytest.mark.anyio
async def test_a_lost_subscription_is_told_and_leaves_the_daemon_ready() -> None:
    class Lost(Well):
        async def snapshot(self) -> DaemonSnapshot:
            return replace(SNAPSHOT, subscription="lost: cut")

    found = await ask(Lost(), "/readyz")
    assert (found.status_code, found.json()["subscription"]) == (200, "lost: cut")


def test_an_unanswering_chain_leaves_the_lag_out_rather_than_at_zero() -> None:
    assert "fleet_log_lag" not in exposition(replace(SNAPSHOT, log_entries=None), Tally()).decode()


def test_what_is_not_known_yet_has_no_value() -> None:
    blind = replace(SNAPSHOT, journal=JournalSnapshot(), worklist_age_s=None)
    page = exposition(blind, Tally()).decode()
    assert "fleet_platform_up" not in page
    assert "fleet_worklist_age" not in page
    down = exposition(
        replace(SNAPSHOT, journal=JournalSnapshot(reachable=PlatformReach(up=False))), Tally()
    ).decode()
    assert "fleet_platform_up 0.0" in down


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """The other end of the notification socket."""
    path = tmp_path / "n"
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.bind(str(path))
    line.setblocking(False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    return line


def heard(line: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(line.recv(4096).decode())
        except BlockingIOError:
            return found


def test_the_watchdog_is_fed_at_most_twice_a_period_and_only_by_its_own_process(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    notifier = Notifier()
    notifier.feed()
    notifier.feed()
    assert heard(manager) == ["WATCHDOG=1"]
    monkeypatch.setenv("WATCHDOG_PID", "1")
    Notifier().feed()
    monkeypatch.delenv("WATCHDOG_USEC")
    Notifier().feed()
    assert heard(manager) == []
    manager.close()


def test_a_status_is_said_when_it_changes_and_a_manager_that_is_gone_is_no_reason_to_end(
    manager: socket.socket,
) -> None:
    notifier = Notifier()
    for text in ("one", "one", "two"):
        notifier.status(text)
    assert heard(manager) == ["STATUS=one", "STATUS=two"]
    manager.close()
    notifier.say("READY=1")


def test_the_socket_is_private_and_a_dead_daemon_s_is_replaced(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    for _ in range(2):
        (line,) = listeners(deep, None)
        assert (deep / "fleet.sock").stat().st_mode & 0o777 == 0o600
        line.close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match="port"):
            listeners(deep, taken.getsockname()[1])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    """What the process would write; the logging of pytest is put back afterwards."""
    root, out = logging.getLogger(), StringIO()
    before, level = root.handlers[:], root.level
    monkeypatch.setattr(sys, "stderr", out)
    configure()
    monkeypatch.undo()
    yield out
    root.handlers[:] = before
    root.setLevel(level)


def test_a_line_is_json_when_nobody_watches_and_holds_no_secret(log: StringIO) -> None:
    secret = "a1" * 32
    mask_with(Redactor((bytes.fromhex(secret),)).text)
    log_daemon(PersonaRefused(file="qa-x.md", reason=f"key {secret}\x1b[31m", kept=True))
    logging.getLogger("httpx").info("HTTP Request: every one of them")
    try:
        raise ValueError(f"0x{secret}")
    except ValueError:
        logging.getLogger("fleet.test").exception("it broke")
    refused, broke = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (refused["event"], refused["level"], refused["kept"]) == ("persona.refused", "warning", True)
    assert refused["file"] == "qa-x.md"
    assert "ValueError" in broke["exception"]
    assert secret not in log.getvalue()
    assert "\\u001b" not in log.getvalue()


def test_a_run_s_beginning_is_a_line_and_its_calls_are_not(log: StringIO) -> None:
    log_run(
        Header(
            run="abcdefgh",
            persona="qa-a",
            persona_sha256="0" * 64,
            driver="playbook",
            platform="p",
            chain_id=1,
            rung="observe",
            jail="b/t",
            budget={},
            trigger="t",
            brief={"MISSION": "1" * 64},
            policy={"mode": "bounded_batch"},
            groups={"web": ("qa_fetch",)},
            targets={"site": "http://127.0.0.1:9"},
        )
    )
    log_run(ToolRequested(call=1, tool="qa_fetch", args={}))
    (line,) = log.getvalue().splitlines()
    said = json.loads(line)
    assert said["run"] == "abcdefgh"
    assert (
        not {"brief", "policy", "groups", "targets", "model"} & said.keys()
    )  # its documents, and empty fields


@given(st.text())
def test_no_text_makes_two_lines_of_one(text: str) -> None:
    root, out = logging.getLogger(), StringIO()
    before, level, real = root.handlers[:], root.level, sys.stderr
    try:
        sys.stderr = out
        configure(as_json=True)
        log_daemon(PersonaRefused(file="f", reason=text.encode("utf-8", "replace").decode(), kept=False))
    finally:
        sys.stderr = real
        root.handlers[:] = before
        root.setLevel(level)
    assert len(out.getvalue().splitlines()) == 1


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
async def test_systemd_is_told_and_the_pages_answer(up: Up, manager: socket.socket) -> None:
    up.drop("qa-look", persona("qa-look", FETCH))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told_to = {"NOTIFY_SOCKET": os.environ["NOTIFY_SOCKET"], "WATCHDOG_USEC": "1000000"}
    process = up.start("--port", str(port), **told_to)
    said: list[str] = []

    def ready() -> bool:
        said.extend(heard(manager))
        return any("READY=1" in word for word in said) and said.count("WATCHDOG=1") >= 3

    await up.until(ready)
    await up.until(lambda: up.told("trigger.fired"))
    transport = httpx.AsyncHTTPTransport(uds=str(up.state / "fleet.sock"))
    async with httpx.AsyncClient(transport=transport, base_url="http://fleet") as client:
        assert (await client.get("/healthz")).status_code == 200
        await up.until(lambda: any(up.footers(path.name) for path in (up.state / "runs").iterdir()))
        told = (await client.get("/readyz")).json()
        while told["platform"]["up"] is None:  # the journal has the end of a run a moment after its record
            await anyio.sleep(0.05)
            told = (await client.get("/readyz")).json()
        assert (told["personas"], told["refused"], list(told["next"])) == (1, {}, ["qa-look"])
        assert (told["platform"]["up"], told["platform"]["by"]) == (True, "qa-look")
        assert told["page"] == f"http://127.0.0.1:{port}/"
        for path in ("", "worklist", "runs", "personas", "platform", "log"):
            inside = await client.get(f"/{path}", timeout=30)
            async with httpx.AsyncClient() as browser:
                outside = await browser.get(told["page"] + path, timeout=30)
            assert [inside.status_code, outside.status_code] == [200, 200], path
            said += heard(manager)  # its queue holds a few words
        assert "qa-look" in (await client.get("/")).text
        metrics = (await client.get("/metrics")).text
        assert 'fleet_coverage_probes{group="looked",persona="qa-look"} 1.0' in metrics
    assert await up.end(process) == 0
    said += heard(manager)
    assert "STATUS=exercise: 0 runs, 0 waiting" in said
    assert "STOPPING=1" in said
    assert f"EXTEND_TIMEOUT_USEC={int((GRACE_S + LEAVE_S) * 1e6)}" in said
    assert said.index("STOPPING=1") > said.index("WATCHDOG=1")
    assert not (up.state / "fleet.sock").exists()
    events = [json.loads(line)["event"] for line in up.log().splitlines()]
    assert events[0] == "daemon.started"
    assert events[-1] == "daemon.stopped"
    for key in (up.state / "keys").iterdir():
        assert key.read_text().strip() not in up.log()
    manager.close()
