"""A real HTTP receiver on loopback, and a watch over a real journal with what it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fleet.config import FleetConfig
from fleet.findings.redact import Redactor
from fleet.service.notify.receivers import Receivers, receivers_of
from fleet.service.notify.watch import HostNews, NoticeWatch
from fleet.store.journal import Journal
from fleet.store.rows import ItemRow
from fleet.triage.run import DIGEST

SECRET = b"s" * 32
MASKED = "hunter2hunter2"


@dataclass
class Inbox:
    """What came to a real HTTP server, by path; `answers` are statuses by the path's first word."""

    url: str = ""
    came: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    hang: threading.Event = field(default_factory=threading.Event)

    def bodies(self, path: str) -> list[Any]:
        return [json.loads(body) for to, _, body in self.came if to == path]

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.came]


@dataclass
class HandClock:
    """A clock set by hand."""

    at: datetime = datetime(2026, 11, 23, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()


@dataclass
class Bench:
    """A watch, and what it is told."""

    journal: Journal
    state: Path
    config: FleetConfig
    clock: HandClock = field(default_factory=HandClock)
    trouble: str = ""
    refused: dict[str, str] = field(default_factory=dict)

    def watch(self, receivers: Receivers | None = None) -> NoticeWatch:
        """A new one, as after a restart."""
        find = partial(receivers_of, state=self.state, deadline_s=10.0)
        return NoticeWatch(
            self.journal,
            "acme",
            Redactor([MASKED]),
            self.clock,
            config=lambda: self.config,
            news=lambda: HostNews(refused=self.refused, trouble=self.trouble),
            receivers=(lambda _: receivers) if receivers else find,
        )

    async def items(self, *states: str, title: str = "the page is empty") -> None:
        """The list of a triage pass: one item for each state."""
        rows = [
            ItemRow(
                fingerprint=f"{n:012x}",
                state=state,
                severity="high",
                surface="ux",
                title=title,
                persona="qa-ux",
                repro="qa/run",
            )
            for n, state in enumerate(states)
        ]
        await self.journal.put_items("acme", rows)
        await self.journal.put(DIGEST, f"{states} {title}")

    async def later(self, watch: NoticeWatch, minutes: float = 20) -> None:
        self.clock.at += timedelta(minutes=minutes)
        await watch.round()


def private(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def bench(journal: Journal, state: Path, inbox: Inbox, **keys: Any) -> Bench:
    private(state / "keys" / "notify-webhook", SECRET)
    config = FleetConfig.model_validate({"notify": {"webhook": f"{inbox.url}/hook", **keys}})
    return Bench(journal, state, config)


@contextmanager
def receiving_inbox() -> Iterator[Inbox]:
    box = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            box.came.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if self.path == "/dead":
                box.hang.wait(30)
            self.send_response(box.answers.get(self.path, 200))
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *words: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    box.url = f"http://127.0.0.1:{server.server_port}"
    yield box
    box.hang.set()
    server.shutdown()
    server.server_close()
