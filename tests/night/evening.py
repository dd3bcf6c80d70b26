"""A daemon over a small real platform with one known defect, and an operator's inbox."""

from __future__ import annotations

import html
import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from fleet.files import ROOT
from tests.notices.stand import SECRET, Inbox, private
from tests.platforms.bare import bare
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand

LEAK = "<script>const OWNER_PRIVATE_KEY = '0x" + "5e31c4a9" * 8 + "'</script></html>"
PAGES = {"targets": {"manual": "{site}/letters.html", "settings": "{site}/names.html"}}
EVENING = "Secret is public: GET / shows a private key"
PACE: Mapping[str, str] = {
    "qa-security": 'every = "4s"',
    "qa-retest": 'every = "5s"',
    "qa-triage": 'every = "3s"',
}
"""The personas of the night, and how often each starts: hours become seconds."""
CONFIG = """
concurrency = 1
[notify]
webhook = "{url}/hook"
every = "1s"
"""
BROKEN = '+++\nname = "qa-broken"\nsurface = "sea"\n+++\nA file that somebody saved half way.\n'


@dataclass(slots=True)
class Watched:
    """A fleet's daemon, and the operator's inbox."""

    at: Home
    inbox: Inbox
    url: str
    daemon: subprocess.Popen[bytes]

    def says(self, *words: str) -> str:
        command = [sys.executable, "-m", "fleet.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self.at.environment(), timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listed(self) -> list[dict[str, Any]]:
        """The items, open and closed, as the last triage left them."""
        try:
            told = json.loads((self.at.state / "worklist.json").read_text())
        except FileNotFoundError:
            return []
        return [*told["items"], *told["closed"]]

    def items(self) -> dict[str, str]:
        """State by title."""
        return {one["title"]: one["state"] for one in self.listed()}

    def notices(self) -> list[str]:
        """Every line of every message, in the order in which they came."""
        return [line for body in self.inbox.bodies("/hook") for line in body["text"].splitlines()]

    def room(self, path: str) -> str:
        """The words of a page, without its markup."""
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.read().decode())).split())

    def status(self, since: str) -> Any:
        return json.loads(self.says("status", "--since", since, "--json"))

    async def until(self, check: Callable[[], Any], seconds: float = 240) -> Any:
        """What `check` says once it says something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.daemon.poll() is None, "the daemon ended"
            if found := check():
                return found
            await anyio.sleep(0.3)
        raise AssertionError(f"nothing happened within {seconds} s: {self.items()}; {self.notices()}")


@dataclass(slots=True)
class Night(Watched):
    """The same over a platform whose defects come and go."""

    stand: Stand
    site: Path
    personas: Path

    def defect(self, page: str, *, on: bool) -> None:
        path = self.site / page
        whole = path.read_text().replace(LEAK, "</html>\n")
        path.write_text(whole.replace("</html>\n", LEAK) if on else whole)

    def is_evening(self) -> bool:
        """The first item is on the list, and the watch of notices knows it: it is not news in the morning."""
        if self.items().get(EVENING) != "confirmed":
            return False
        with closing(sqlite3.connect(self.at.state / "fleet.db")) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'notify.bare'").fetchone()
        return bool(row and json.loads(row[0])["items"])


@asynccontextmanager
async def resident(folder: Path, at: Home, inbox: Inbox, *words: str) -> AsyncIterator[Watched]:
    """`fleet up` with its pages; its log is in `folder`."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        port = line.getsockname()[1]
    command = [sys.executable, "-m", "fleet.cli", "up", "--port", str(port), *words]
    with (folder / "up.log").open("wb") as log:
        daemon = await anyio.to_thread.run_sync(
            lambda: subprocess.Popen(command, stdout=log, stderr=log, env=at.environment())
        )
    try:
        yield Watched(at, inbox, f"http://127.0.0.1:{port}", daemon)
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            await anyio.to_thread.run_sync(daemon.wait, 60)
        finally:
            daemon.kill()


@asynccontextmanager
async def evening(folder: Path, inbox: Inbox, paces: Mapping[str, str] = PACE) -> AsyncIterator[Night]:
    """One known defect, and a daemon at `observe` that has told of nothing yet; "" keeps a persona's own
    pace."""
    async with bare(folder / "bare", more=PAGES) as stand:
        text = stand.profile.read_text().replace("[web]\n", "[web]\npatience_s = 0.35\n")
        stand.profile.write_text(text)
        at = await home(folder / "fleet", stand, CONFIG.format(url=inbox.url))
        private(at.state / "keys" / "notify-webhook", SECRET)
        personas = folder / "personas"
        personas.mkdir()
        for name, pace in paces.items():
            text = (ROOT / "personas" / f"{name}.md").read_text()
            if pace:
                text = re.sub(
                    r"^triggers = .*$", f"triggers = [{{ {pace} }}]", text, count=1, flags=re.MULTILINE
                )
            (personas / f"{name}.md").write_text(text)
        async with resident(folder, at, inbox, "--personas", str(personas)) as watched:
            made = (watched.at, watched.inbox, watched.url, watched.daemon)
            night = Night(*made, stand, folder / "bare" / "site", personas)
            night.defect("index.html", on=True)
            await night.until(night.is_evening)
            yield night
