"""The watch over a real journal and real receivers on loopback: restarts, kills, dead receivers."""

from __future__ import annotations

import email
import json
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli.operate.notify import app
from fleet.clock import iso
from fleet.config import FleetConfig
from fleet.errors import ConfigError
from fleet.runs.desk.exit_codes import LEFT, LOCK_OUT, UNEXPLORED
from fleet.service.notify import apprise_send
from fleet.service.notify.receivers import receivers_of
from fleet.service.notify.state import NoticeMessage
from fleet.service.notify.watch import REACHED, HostNews, NoticeWatch
from fleet.store.journal import Journal
from fleet.store.rows import HOLD, FindingRow, NewRun
from fleet.triggers.hooks.webhook import Delivery, verify
from tests.notices.stand import MASKED, SECRET, Bench, Inbox, bench, private, receiving_inbox


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with receiving_inbox() as box:
        yield box


@pytest.mark.anyio
async def test_it_is_signed_masked_clean_and_said_once_over_restarts(tmp_path: Path, inbox: Inbox) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        await here.items("confirmed")
        await here.watch().round()
        assert inbox.came == []
        await here.items("confirmed", "confirmed", title=f"<!channel> {MASKED} \x1b[31mhttps://evil.example")
        for _ in range(3):
            await here.later(here.watch())
        ((path, sent, body),) = inbox.came
        at = datetime.now(UTC)
        assert path == "/hook"
        assert verify(Delivery("ops", tuple(sent.items()), body), secrets=[SECRET], personas=["qa-a"], now=at)
        told = json.loads(body)
        assert told.pop("notice") == sent["x-qa-delivery"]
        assert told == {
            "v": 1,
            "at": "2026-11-23T12:20:00Z",
            "events": ["finding"],
            "title": "[HIGH] QA fleet, acme: 1 finding (decide what becomes of it)",
            "text": "2026-11-23T12:20:00Z new finding: high, ux: ‹!channel› [redacted:secret] "
            "https:/ /evil.example (000000000001)",
        }


@pytest.mark.anyio
async def test_a_kill_between_send_and_mark_repeats_that_message_under_its_name(
    tmp_path: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        await here.items()
        await here.watch().round()
        await here.items("confirmed", "confirmed")

        async def killed(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(NoticeWatch, "_mark", killed)
            with pytest.raises(KeyboardInterrupt):
                await here.later(here.watch())
        await here.later(here.watch())
        await here.later(here.watch())
        first, second = (headers["x-qa-delivery"] for _, headers, _ in inbox.came)
        assert first == second


@pytest.mark.anyio
async def test_what_a_dead_receiver_lacks_is_sent_when_it_is_back_and_others_have_it_once(
    tmp_path: Path, inbox: Inbox
) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        host = inbox.url.removeprefix("http://")
        private(tmp_path / "keys" / "notify", f"# chat\njson://{host}/apprise\n".encode())
        inbox.answers["/hook"] = 500
        await here.items()
        await here.watch().round()
        await here.items("confirmed")
        watch = here.watch()
        await here.later(watch)
        await here.later(watch, 0.5)  # too soon to try again
        assert sorted(inbox.paths()) == ["/apprise", "/hook"]
        inbox.answers["/hook"] = 202
        await here.later(watch)
        await here.later(watch)
        assert sorted(inbox.paths()) == ["/apprise", "/hook", "/hook"]
        facts = await journal.facts(REACHED)
        first, second = (key.removeprefix(REACHED).split(" ", 2) for key in facts)
        assert (first[0], second[0]) == ("2026-11-23T12:20:00Z", "2026-11-23T12:40:30Z")
        assert (first[2].partition(" ")[0], second[1:]) == ("json", [first[1], "webhook"])
        (chat,) = inbox.bodies("/apprise")
        assert (chat["title"], chat["message"].partition(" ")[2]) == (
            "[HIGH] QA fleet, acme: 1 finding (decide what becomes of it)",
            "new finding: high, ux: the page is empty (000000000000)",
        )


@pytest.mark.anyio
async def test_each_send_has_a_deadline(
    tmp_path: Path, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    private(tmp_path / "keys" / "notify-webhook", SECRET)
    host = inbox.url.removeprefix("http://")
    private(tmp_path / "keys" / "notify", f"json://{host}/dead?rto=60\n".encode())
    config = FleetConfig.model_validate({"notify": {"webhook": f"{inbox.url}/dead"}})
    to = receivers_of(config, tmp_path, deadline_s=1.5)
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = Bench(journal, tmp_path, config)
        watch = here.watch(to)
        await here.items()
        await watch.round()
        await here.items("confirmed")
        with anyio.fail_after(30):
            await here.later(watch)
    said = [record.getMessage() for record in caplog.records if record.name == "fleet.notify"]
    assert len(said) == 2
    assert all("no answer within 1.5 s; runs continue" in text for text in said)


@pytest.mark.anyio
async def test_figures_of_the_daemon_are_posted_to_who_watches_it(tmp_path: Path, inbox: Inbox) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        private(tmp_path / "keys" / "notify", f"figures {inbox.url}/figures\n".encode())
        watch = here.watch()
        watch._news = lambda: HostNews(figures={"fleet_runs_live": 2, "fleet_paused": 0.0})
        await watch.round()
        assert inbox.paths() == ["/figures"]
        assert [body for path, _, body in inbox.came if path == "/figures"] == [
            b"fleet_runs_live 2\nfleet_paused 0\n"
        ]


@pytest.mark.anyio
async def test_silences_hold_and_trouble_fails_the_dead_mans_switch(tmp_path: Path, inbox: Inbox) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        private(tmp_path / "keys" / "notify", f"ping {inbox.url}/ping/uuid\n".encode())
        await journal.put("notify-silence.degraded", iso(here.clock.at + timedelta(hours=1)))
        watch = here.watch()
        await watch.round()
        await here.later(watch, 0.5)
        here.trouble = "the disk is full"
        await here.later(watch)
        here.trouble = ""
        await here.later(watch)
        assert inbox.paths() == ["/ping/uuid", "/ping/uuid/fail", "/ping/uuid"]
        here.clock.at += timedelta(hours=2)
        here.trouble = "the disk is full"
        await watch.round()
        assert [body["events"] for body in inbox.bodies("/hook")] == [["degraded"]]


@pytest.mark.anyio
async def test_of_two_daemons_on_one_journal_one_sends_until_it_is_gone(tmp_path: Path, inbox: Inbox) -> None:
    class SharedJournal(Journal):
        @property
        def shared(self) -> bool:
            return True

    async with await SharedJournal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        one, two = here.watch(), here.watch()
        one._host, two._host = "one", "two"
        await here.items()
        await one.round()
        await two.round()
        await here.items("confirmed")
        here.clock.at += timedelta(minutes=1)
        await two.round()
        assert inbox.came == []
        await one.round()
        assert len(inbox.came) == 1
        await here.items("confirmed", "confirmed")
        await here.later(two)  # the turn of the first one has ended
        assert len(inbox.came) == 2


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (b"ntfy://ntfy.example/topic\n", 0o644, "lets others in"),
        (b"# fine\nhello world\n", 0o600, "notify:2: neither an Apprise URL"),
        (b"ping ftp://x\n", 0o600, "notify:1: neither"),
    ],
)
def test_a_bad_file_of_urls_is_refused(tmp_path: Path, text: bytes, mode: int, said: str) -> None:
    private(tmp_path / "keys" / "notify", text)
    (tmp_path / "keys" / "notify").chmod(mode)
    with pytest.raises(ConfigError, match=said):
        receivers_of(FleetConfig(), tmp_path)


@pytest.mark.anyio
@pytest.mark.parametrize("program", ["/bin/false", "/nonexistent"])
async def test_a_sender_that_cannot_start_is_only_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    private(tmp_path / "keys" / "notify", b"json://127.0.0.1:1/x\n")
    (send,) = receivers_of(FleetConfig(), tmp_path).by_name.values()
    monkeypatch.setattr("fleet.service.notify.receivers.sys.executable", program)
    message = NoticeMessage(id="a" * 16, title="t" * 100_000, body="b", at="", events=(), left=())
    assert await send(message)


def test_the_commands(tmp_path: Path, inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    ask = CliRunner().invoke
    assert ask(app, ["silences"]).exit_code == 0
    assert ask(app, ["silence", "fixed", "--for", "2h"]).exit_code == 0
    (row,) = json.loads(ask(app, ["silences", "--json"]).stdout)
    assert row["event"] == "fixed"
    assert ask(app, ["unsilence", "fixed"]).exit_code == 0
    assert json.loads(ask(app, ["silences", "--json"]).stdout) == []
    assert ask(app, ["silence", "weather", "--for", "2h"]).exit_code != 0
    assert "no receiver" in str(ask(app, ["test"]).exception)
    assert json.loads(ask(app, ["sent", "--json"]).stdout) == []

    async def reached() -> None:
        async with await Journal.open(tmp_path / "state" / "fleet.db") as journal:
            told = {"title": "1 question", "events": ["question"], "made": "2026-11-28T09:00:00Z"}
            await journal.put(f"{REACHED}2026-11-28T09:00:02Z abcd json 12ab", json.dumps(told))

    anyio.run(reached)
    (row,) = json.loads(ask(app, ["sent", "--json"]).stdout)
    assert (row["at"], row["notice"], row["receiver"]) == ("2026-11-28T09:00:02Z", "abcd", "json 12ab")
    assert row["title"] == "1 question"
    host = inbox.url.removeprefix("http://")
    urls = f"json://{host}/chat\nnosuch://x\nping {inbox.url}/ping\n"
    private(tmp_path / "state" / "keys" / "notify", urls.encode())
    said = ask(app, ["test", "--json"])
    results = {row["receiver"].split()[0]: row["result"] for row in json.loads(said.stdout)}
    assert results == {
        "json": "delivered",
        "nosuch": "Apprise does not know this kind of URL",
        "ping": "delivered",
    }
    assert "not delivered to nosuch" in str(said.exception)
    assert sorted(inbox.paths()) == ["/chat", "/ping"]


@pytest.mark.anyio
async def test_a_lock_out_of_a_last_run_is_said_once_and_again_when_there_is_another(
    tmp_path: Path, inbox: Inbox
) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        runs: list[list[tuple[str, str]]] = [
            [("explorer web", "asked 2 of 9"), (LOCK_OUT, "locked out: 9.1 s")],
            [(LOCK_OUT, "locked out: 9.1 s")],
            [],
            [(LOCK_OUT, "locked out: 2.0 s")],
        ]
        for parts in runs:
            rows = [{"part": part, "reason": reason, "cut": False} for part, reason in parts]
            await journal.put(f"{LEFT}acme:qa-security", json.dumps(rows))
            await journal.put(f"{LEFT}other:qa-security", json.dumps([{"part": LOCK_OUT, "reason": "x"}]))
            await here.later(here.watch())
        told = [json.loads(body) for _, _, body in inbox.came]
    assert [one["events"] for one in told] == [["locked-out"]] * 2
    assert [one["text"].partition(" ")[2] for one in told] == [
        "acme, qa-security: locked out: 9.1 s",
        "acme, qa-security: locked out: 2.0 s",
    ]


@pytest.mark.anyio
async def test_what_waits_for_a_person_before_it_is_posted_is_said_once_and_in_quiet_hours(
    tmp_path: Path, inbox: Inbox
) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox, quiet="00:00-23:59")
        for platform in ("acme", "other"):
            run = NewRun(
                run_id=platform, persona="p", key=platform, platform=platform, trigger="t", rung="", budget={}
            )
            await journal.trigger(run)
        rows = (("acme", "a", True), ("acme", "b", False), ("other", "c", True))
        for run_id, name, is_held in rows:
            row = FindingRow(
                run_id=run_id,
                fingerprint=name * 12,
                state="confirmed",
                severity="critical",
                title=f"Secret is public: {name} {MASKED}",
                data={HOLD: True} if is_held else {},
            )
            await journal.add_finding(row)
        for _ in range(3):
            await here.later(here.watch())
        told = [json.loads(body) for _, _, body in inbox.came]
        for state in ("posting", "posted"):
            await journal.set_finding("acme", "a" * 12, state=state)
        await here.later(here.watch())
    [one] = told
    assert one["events"] == ["finding"]
    said = one["text"].partition(" ")[2]
    assert said.startswith(
        "acme, critical, waits for a person before it is posted: Secret is public: a [redacted"
    )
    assert said.endswith("(fleet items release aaaaaaaaaaaa)")
    assert MASKED not in said
    assert len(inbox.came) == 1


@pytest.mark.anyio
async def test_a_part_without_accounts_is_said_once_until_accounts_are_made(
    tmp_path: Path, inbox: Inbox
) -> None:
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        here = bench(journal, tmp_path, inbox)
        runs = [
            ["accounts of {site}/join", "description {site}/x"],
            ["accounts of {site}/join"],
            [],
            ["accounts by {site}/x"],
        ]
        for at, parts in enumerate(runs):
            rows = [{"probe": part, "reason": f"no account could be made, because {at}"} for part in parts]
            await journal.put(f"{UNEXPLORED}acme:qa-security", json.dumps(rows))
            await here.later(here.watch())
        told = [json.loads(body) for _, _, body in inbox.came]
    assert [one["events"] for one in told] == [["no-account"]] * 2
    assert [one["text"].partition(" ")[2] for one in told] == [
        "acme, accounts of {site}/join: no account could be made, because 0",
        "acme, accounts by {site}/x: no account could be made, because 3",
    ]


class MailDrop(socketserver.StreamRequestHandler):
    """As much of SMTP as one mail needs; the mails are the server's."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example\r\n")
        while command := self.rfile.readline()[:4].upper():
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                mail = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.mails.append(email.message_from_bytes(mail))  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 yes\r\n")


def test_a_mail_about_something_grave_asks_for_a_receipt() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), MailDrop) as server:
        mails: list[Any] = []
        server.mails = mails  # type: ignore[attr-defined]
        for grave in (True, False):
            url = f"mailto://127.0.0.1:{server.server_address[1]}?from=qa@mail.example&to=ann@mail.example"
            asked = {"url": f"{url}&mode=insecure", "title": "t", "body": "b", "grave": grave}
            command = [sys.executable, "-m", apprise_send.__name__]
            with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as sender:
                sender.stdin.write(json.dumps(asked))  # type: ignore[union-attr]
                sender.stdin.close()  # type: ignore[union-attr]
                server.handle_request()
            assert sender.returncode == apprise_send.DONE
    told = [(mail["subject"], mail["disposition-notification-to"]) for mail in mails]
    assert told == [("t", "qa@mail.example"), ("t", None)]
