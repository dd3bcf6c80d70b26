"""`fleet status`, the morning page: after a night on a real journal, at 80 by 24, as JSON and watched."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import chdir
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from threading import Thread
from typing import Any

import anyio
import pytest
import typer
from typer.testing import CliRunner

from fleet.app.lock import only_one
from fleet.app.status import NO_JOURNAL
from fleet.app.status_words import wrong
from fleet.cli.check.machine import CHECKS
from fleet.cli.items import items
from fleet.cli.operate.status import app as status_app
from fleet.cli.operate.status_page import page
from fleet.cli.run import runs
from fleet.clock import SystemClock
from fleet.findings.outage import FACTS, Outage, OutageBook
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import stop
from fleet.runs.desk.exit_codes import LEFT, MODEL_ENDED, UNDECIDED, UNEXPLORED
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from fleet.triage.items.unproven import WAITS
from fleet.triage.outputs.document import LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from tests.cli.test_worklist_command import own, screen
from tests.triggers.conftest import FakeClock

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parents[2]
SINCE = "2026-11-21T00:00:00Z"
BEFORE, AT = "2026-11-20T10:00:00Z", "2026-11-21T04:10:00Z"
HOSTILE = "evil\x1b]0;title\x07 \u202etxt.exe 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
OUT = Outage(
    fp="a" * 12,
    targets=("site",),
    since="2026-11-21T11:00:00Z",
    run="r",
    persona="qa-smoke",
    severity="high",
    title="platform-unreachable: the site refused 4 looks over 7 s",
)


def old(number: int, title: str, **more: Any) -> Any:
    return own(number, title, first_seen=BEFORE, since=BEFORE, **more)


ITEMS = (
    own(1, "GET {site}/llms.txt answers 500 to every agent", first_seen=AT, severity="critical"),
    own(2, HOSTILE, first_seen=AT, fingerprint="b" * 12),
    replace(old(3, "a name can be claimed twice", fingerprint="c" * 12), regression=True, since=AT),
    *(old(number, f"open for a while {number}", fingerprint=f"{number:012x}") for number in range(4, 24)),
    replace(
        old(0, "the compiler panicked on an enum", fingerprint="f" * 12), state="verified-fixed", since=AT
    ),
)


async def night(state: Path) -> None:
    """Two good runs, one that failed, an outage, and a probe that could not be decided."""
    clock = FakeClock()
    async with await Journal.open(state / "fleet.db", clock=clock) as journal:
        ends = [("qa-smoke", "done", ""), ("qa-fuzz", "crashed", "the process ended"), ("qa-ux", "done", "")]
        for number, (persona, outcome, detail) in enumerate(ends):
            run = f"run{number}"
            await journal.trigger(
                NewRun(
                    run_id=run,
                    persona=persona,
                    key=run,
                    platform="devnet",
                    trigger="t",
                    rung="observe",
                    budget={},
                )
            )
            await journal.claim(run, pid=1, pid_start=1)
            await journal.spend(run, "calls", 40, 100)
            await journal.finish(run, outcome, detail)
            clock.advance(60)
        undecided = [{"probe": "header", "reason": "no such member: x-frame-options"}]
        for persona in ("qa-ux", "qa-gone"):  # the second has no file any more
            await journal.put(f"{UNDECIDED}devnet:{persona}", json.dumps(undecided))


async def outage(state: Path) -> None:
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.put(FACTS + "devnet", OutageBook(open=OUT).model_dump_json())
        await journal.spend("run0", "writes", 3, 10)
        await journal.spend("run0", "usd_micro", 120_000, 10**6)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    save(path, ITEMS, WorklistHeader(platform="devnet", as_of=LogPosition(0, 42, AT)))
    write_dial(path, Rung.EXERCISE, "the night before the release", "ann@desk", FakeClock())
    anyio.run(night, path)
    return path


def data_of(state: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(state))
        done = CliRunner().invoke(status_app, ["--since", SINCE, "--json"])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_golden_at_80_by_24(state: Path) -> None:
    anyio.run(outage, state)
    text = screen(state, "status", "--since", SINCE)
    text = re.sub(r"(?m)^journal   /.*$", "journal   STATE/fleet.db", text)
    path = GOLDEN / "status.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
    assert len(text.splitlines()) == 23  # and the prompt
    assert "\x1b" not in text


def test_what_ended_a_model_is_said_until_the_personas_next_run(state: Path) -> None:
    ended = [{"run": "run2", "reason": "agent_stuck: 3 failed turns in a row, last: provider_error"}]

    async def keep(rows: list[dict[str, str]]) -> None:
        async with await Journal.open(state / "fleet.db") as journal:
            await journal.put(f"{MODEL_ENDED}devnet:qa-ux", json.dumps(rows))

    anyio.run(keep, ended)
    data = data_of(state)
    assert data["models"] == [{"platform": "devnet", "persona": "qa-ux", **ended[0]}]
    said = "model ended: qa-ux run run2: agent stuck: 3 failed turns in a row, last: provider error; "
    said += "the playbook went on"
    assert said in data["wrong"]
    anyio.run(keep, [])
    assert said not in data_of(state)["wrong"]


def test_a_flood_of_strangers_is_a_number_and_hides_nothing_of_ours(state: Path) -> None:
    flood = [
        replace(own(0, f"flood {number}", first_seen=AT, fingerprint=f"{number:012x}"), trusted=False)
        for number in range(100, 160)
    ]
    save(state, [*ITEMS, *flood], WorklistHeader(platform="devnet", as_of=LogPosition(0, 42, AT)))
    lines = screen(state, "status", "--since", SINCE).splitlines()
    assert "strangers 60 new that only they report" in lines
    assert len(lines) == 23
    text = "\n".join(lines)
    assert ("flood 1" in text, "GET {site}/llms.txt answers 500" in text) == (False, True)


def test_json_has_the_documented_fields_and_the_same_content(state: Path) -> None:
    data = data_of(state)
    stated = (ROOT / "docs/reference/status.md").read_text()
    heads = [line.split("|")[1] for line in stated.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(heads))) == data.keys()
    assert {name: [one["title"] for one in data["digest"][name]] for name in ("regressed", "fixed")} == {
        "regressed": ["a name can be claimed twice"],
        "fixed": ["the compiler panicked on an enum"],
    }
    assert [len(data["digest"][name]) for name in ("new", "still")] == [2, 20]
    assert data["reachable"] == {"up": True, "since": "2026-11-21T12:02:00Z", "by": "qa-ux", "why": ""}
    assert data["wrong"] == [
        "undecided: qa-ux header: no such member: x-frame-options",
        "run failed: qa-fuzz crashed 2026-11-21 12:01, run run1: the process ended",
    ]
    assert data["outcomes"] == {"done": 2, "crashed": 1}
    assert data["dial"] | {"trusted": True} == {
        "rung": "exercise",
        "until": "",
        "trusted": True,
        "fault": "",
        "who": "ann@desk",
        "when": "2026-11-21T12:00:00Z",
        "why": "the night before the release",
    }


def test_what_explorers_could_not_look_at_is_a_red_line(state: Path) -> None:
    part = {"probe": "accounts of {site}/join", "reason": "no account could be made, because … 422"}

    async def refused() -> None:
        async with await Journal.open(state / "fleet.db") as journal:
            for persona in ("qa-ux", "qa-gone"):
                await journal.put(f"{UNEXPLORED}devnet:{persona}", json.dumps([part]))

    anyio.run(refused)
    data = data_of(state)
    assert data["unexplored"] == [{"platform": "devnet", "persona": "qa-ux", **part}]
    assert data["wrong"][1] == (
        "unexplored: qa-ux accounts of {site}/join: no account could be made, because … 422"
    )


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (status_app, []),
        (runs.app, ["list", "--all"]),
        (runs.app, ["show", "run0"]),
        (items.app, ["findings"]),
    ],
)
def test_the_id_of_a_run_has_one_name_in_json(
    state: Path, monkeypatch: pytest.MonkeyPatch, app: typer.Typer, words: list[str]
) -> None:
    async def found() -> None:
        async with await Journal.open(state / "fleet.db") as journal:
            await journal.add_finding(FindingRow(run_id="run0", fingerprint="ab" * 6, state="posted"))

    anyio.run(found)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    said = CliRunner().invoke(app, [*words, "--json"])
    assert said.exit_code == 0, said.output
    assert '"run": "run0"' in said.stdout
    assert '"run_id"' not in said.stdout


def test_a_quiet_night_says_nothing_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    data = data_of(path)
    assert (data["wrong"], data["reachable"]["up"], data["runs"]) == ([], None, [])
    assert (
        data.items()
        >= {key: value for key, value in NO_JOURNAL.items() if key not in ("failing", "today")}.items()
    )


def test_what_runs_what_drains_and_what_was_cut_off_is_said_once(state: Path) -> None:
    data = data_of(state)
    run = {"run": "run7", "persona": "qa-ux", "state": "running", "since": "2026-11-21T12:01:30Z"}
    data["running"] = [run, run | {"run": "run8", "state": "settling"}]
    data["lost"] = [
        {
            "why": "it died at 2026-11-21 12:00 UTC; back since 2026-11-21 12:01 UTC",
            "at": "x",
            "runs": ["run1"],
        }
    ]
    data["wrong"] = wrong(data)

    def text(**more: Any) -> str:
        return "\n".join(one.text for one in page(data | more, width=200, height=40))

    up = text(daemon=4711, daemon_since="2026-11-21T12:01:02Z")
    assert "daemon    pid 4711, up since 2026-11-21 12:01 UTC\n" in up
    assert "running   qa-ux since 2026-11-21 12:01 UTC, run run7\nsettling  qa-ux since" in up
    assert "daemon lost: it died at 2026-11-21 12:00 UTC; back since 2026-11-21 12:01 UTC\n" in up
    assert "run run1: the process ended" not in up
    later = [{"persona": f"qa-{n}", "at": data["at"]} for n in range(5)]
    drains = text(daemon=4711, draining="SIGTERM", next=later)
    assert "qa-4" not in drains
    assert drains.startswith("DRAINING after SIGTERM: no run starts; dial exercise; devnet answers")
    assert "draining  qa-ux since" in drains
    assert "cut off   qa-ux since" in text(daemon=0)


def test_a_proof_that_is_stuck_is_in_the_first_sentence_and_not_said_twice(state: Path) -> None:
    data = data_of(state)
    row = {"severity": "high", "surface": "ux", "title": "late one", "fingerprint": "ab", "run": "run1"}
    row |= {"why": "seen, being proven", "at": "2026-11-21T10:00:00Z"}
    data["proving"] = [
        row,
        row | {"title": "a new one", "at": data["at"]},
        row | {"title": "held", "why": WAITS},
    ]
    data["wrong"] = wrong(data)
    lines = [one.text for one in page(data, width=200, height=40)]
    assert "; 1 proof stuck; devnet answers" in lines[0]
    assert [line for line in lines if "late one" in line] == [
        "WRONG     proof stuck: late one (ab, run run1): seen, being proven, since 2026-11-21 10:00",
    ]
    assert len([line for line in lines if line.startswith("proving")]) == 2


def test_no_word_of_the_source_says_how_a_run_ended(state: Path) -> None:
    data = data_of(state)
    data["models"] = [
        {
            "persona": "qa-ux",
            "run": "run2",
            "reason": "agent_stuck: 3 failed turns in a row, last: provider_error",
        }
    ]
    data |= {"wrong": wrong(data), "outcomes": {"iteration_budget": 2}}
    text = "\n".join(one.text for one in page(data, width=200, height=40))
    assert "agent stuck: 3 failed turns in a row, last: provider error" in text
    assert "2 iteration budget in that time" in text


def test_while_stopped_the_headline_says_so_and_names_no_next_start(state: Path) -> None:
    stop(state, "ann@desk", "the site is down", FakeClock())
    os.utime(state / "STOP", (1_795_000_000, 1_795_000_000))
    data = data_of(state)
    data["next"] = [{"persona": "qa-smoke", "at": "2026-11-22T01:04:00Z"}]
    lines = [one.text for one in page(data, width=200, height=30)]
    assert lines[0].startswith(
        "STOPPED since 2026-11-18 11:06 UTC (the site is down (ann@desk, 2026-11-21 12:00 UTC)): "
        "nothing starts until `fleet resume`; dial exercise; "
    )
    assert "qa-smoke 01:04" not in "\n".join(lines)
    assert ("\n".join(lines).count("the site is down"), data["wrong"][0][:6]) == (1, "STOP: ")
    assert data["stopped_since"] == "2026-11-18T11:06:40.000Z"
    (state / "STOP").write_bytes(b"")
    assert re.match(r"STOPPED since \S+ \S+ UTC: nothing", page(data_of(state), width=200, height=30)[0].text)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (b"exercize\n", "'exercize'"),
        (b"Exercise", "'Exercise'"),
        (b"exercise ", "'exercise '"),
        (b"exercise\r\n", "'exercise\\r'"),
        ("ехercise".encode(), "'\\u0435\\u0445ercise'"),
        (b"\x1b[2Jobserve", "'\\x1b[2Jobserve'"),
        (b"\xff\xfd", "'\\ufffd\\ufffd'"),
    ],
)
def test_a_word_that_is_no_rung_is_a_warning_that_quotes_it(state: Path, word: bytes, shown: str) -> None:
    (state / "autonomy").write_bytes(word)
    said = f"autonomy: not one of observe, exercise, propose: {shown}"
    data = data_of(state)
    assert data["wrong"][0] == f"dial: {said}: it means observe"
    text = "\n".join(one.text for one in page(data, width=200, height=30))
    assert text.startswith(f"THE DIAL CANNOT BE READ ({said}): it means observe; devnet answers")
    assert text.count(said) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(state))
        rows = anyio.run(CHECKS["state directory"], None)
    assert rows[1] == ("dial", False, f"observe: {said}")


BAD: dict[str, Any] = {
    "stop": "hold it",
    "degraded": "the disk is full",
    "left_today": {"": {"writes": 0, "calls": 3}, "qa-a": {"usd_micro": 0}},
    "log": {"entries": 12, "read": 10, "behind": True},
}


@pytest.mark.parametrize(("width", "height"), [(80, 23), (40, 12), (200, 60)])
def test_what_is_broken_is_red_and_the_page_fits(state: Path, width: int, height: int) -> None:
    data = data_of(state) | BAD
    data["personas"]["refused"] = [{"persona": "qa-x", "reason": "qa-x.md:3: unknown key"}]
    data["wrong"] = wrong(data)
    said = "\n".join(data["wrong"])
    for why in (
        "STOP: hold it",
        "degraded: the disk is full",
        "persona refused: qa-x.md:3: unknown key",
        "budget spent: the fleet has no writes left today",
        "budget spent: qa-a has no usd left today",
        "chain: triage is 2 entries behind the log",
    ):
        assert why in said
    lines = page(data, width=width, height=height)
    assert len(lines) <= height
    assert max(len(one.text) for one in lines) <= width
    assert [one.bad for one in lines if one.text.startswith("WRONG")] == [True] * 6


def test_a_daemon_s_next_starts_and_its_refused_files_are_in_the_first_sentence(state: Path) -> None:
    data = data_of(state) | {"daemon": 4711, "waiting": {"qa-ux": 2}, "page": "http://127.0.0.1:8080/"}
    data["at"] = "2026-11-21T09:00:00Z"
    data["next"] = [{"persona": f"qa-{n}", "at": f"2026-11-21T1{n}:30:00Z"} for n in range(5)]
    data["next"] += [{"persona": f"qa-{n}", "at": f"2026-11-22T1{n}:30:00Z"} for n in range(5, 8)]
    data["personas"] = {"loaded": 6, "refused": [{"persona": "x", "reason": "y"}], "failing": []}
    text = " ".join(one.text for one in page(data, width=80, height=23))
    assert "devnet answers (qa-ux, 2026-11-21 12:02); 6 personas, 1 refused (x); next qa-0 10:30," in text
    assert "qa-2 12:30. daemon    pid 4711 page      http://127.0.0.1:8080/" in text
    assert "then      qa-3 13:30, qa-4 14:30, qa-5 2026-11-22 15:30, qa-6 2026-11-22 16:30," in text
    assert "           qa-7 2026-11-22 17:30" in text
    assert "2 done in that time, 2 waiting; worklist to entry 41" in text


def test_the_chain_that_does_not_answer_is_said(state: Path) -> None:
    data = data_of(state) | {"log": {"entries": None, "read": 0, "behind": True}}
    assert "chain: it does not answer the daemon" in wrong(data)


def test_watch_shows_it_again_until_ctrl_c(state: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "STATE_DIRECTORY": str(state)}
    argv = [sys.executable, "-m", "fleet.cli", "status", "--watch", "--json"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, text=True)
    assert child.stdout is not None
    first = json.loads(child.stdout.readline())
    write_dial(state, Rung.OBSERVE, "enough", "ann@desk", SystemClock())
    second = json.loads(child.stdout.readline())
    assert (first["dial"]["rung"], second["dial"]["rung"]) == ("exercise", "observe")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 0
    child.stdout.close()


class _Page(BaseHTTPRequestHandler):
    """A daemon's /readyz."""

    def do_GET(self) -> None:
        body = json.dumps(READY).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a socket"

    def log_message(self, *_: object) -> None:
        """Quiet."""


READY = {
    "ok": True,
    "loaded": [
        {"name": "qa-ux", "looks": True, "day": {"calls": 500}},
        {"name": "qa-triage", "looks": False, "day": {}},
    ],
    "refused": {"qa-bad": "qa-bad.md:3: unknown key"},
    "next": {"qa-ux": "2026-11-22T06:00:00Z"},
    "log": {"entries": 42, "read": 42},
}


def test_a_running_daemon_is_asked_and_neither_files_nor_tools_are_read(state: Path) -> None:
    script = "import sys, fleet.cli\nsys.argv = ['fleet', 'status', '--json']\n"
    script += "try: fleet.cli.main()\nexcept SystemExit: pass\n"
    script += (
        "print(sorted({'httpx', 'web3', 'celpy', 'sandbox.compiler', 'fleet.chain'} & sys.modules.keys()))"
    )
    environment = {"PATH": os.environ["PATH"], "STATE_DIRECTORY": str(state)}
    with chdir(state), only_one(state), UnixStreamServer("fleet.sock", _Page) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
            cwd=ROOT,
        )
        thread.join()
    said, loaded = done.stdout.splitlines()
    data = json.loads(said)
    assert loaded == "[]"
    assert data["daemon"] == os.getpid()
    assert data["personas"]["loaded"] == 2
    assert [one["persona"] for one in data["personas"]["refused"]] == ["qa-bad"]
    assert data["today"]["qa-ux"]["calls"] == {"spent": 0, "limit": 500}
    assert data["reachable"]["by"] == "qa-ux"
    assert data["next"] == [{"persona": "qa-ux", "at": "2026-11-22T06:00:00Z"}]
    assert data["log"] == {"entries": 42, "read": 42, "behind": False}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("--help", {"sqlalchemy", "anyio", "pydantic"}),
        ("status", {"httpx", "celpy", "rich.console"}),
        ("dial", {"httpx", "sqlalchemy", "celpy"}),
        ("worklist --offline", {"httpx", "celpy"}),
        ("personas check", {"httpx", "sqlalchemy"}),
    ],
)
def test_a_command_that_does_not_touch_the_chain_loads_none_of_its_libraries(
    state: Path, words: str, more: set[str]
) -> None:
    script = f"import sys, fleet.cli\nsys.argv = ['fleet', *{words.split()}]\n"
    script += "try: fleet.cli.main()\nexcept SystemExit: pass\n"
    script += f"print(sorted({more | {'web3', 'eth_account'}} & sys.modules.keys()))"
    environment = {"PATH": os.environ["PATH"], "STATE_DIRECTORY": str(state)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_was_seen_stands_on_the_page_until_it_is_proven(state: Path) -> None:
    async def seen() -> None:
        async with await Journal.open(state / "fleet.db") as journal:
            row = FindingRow(
                run_id="run1",
                fingerprint="d" * 12,
                persona="qa-ux",
                severity="critical",
                surface="security",
                title="GET {site}/ shows a private key",
            )
            await journal.add_finding(row)
            lesser = replace(row, fingerprint="e" * 12, severity="low", title="GET {site}/x: 500")
            await journal.add_finding(replace(lesser, state="unverified", data={"why": "its time was over"}))
            left = {"part": "explorer web", "reason": "asked 208 of about 730 questions: why", "cut": True}
            await journal.put(f"{LEFT}devnet:qa-ux", json.dumps([left]))

    anyio.run(seen)
    data = data_of(state)
    assert [(one["fingerprint"], one["why"]) for one in data["proving"]] == [("d" * 12, "seen, being proven")]
    lines = [one.text for one in page(data, width=120, height=40)]
    assert (
        "proving   critical security GET {site}/ shows a private key (run run1: seen, being proven)" in lines
    )
    assert "unproven  low      security GET {site}/x: 500 (run run1: its time was over)" in lines
    assert "left      qa-ux explorer web: asked 208 of about 730 questions: why" in lines
