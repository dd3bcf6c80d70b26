"""A scripted night: half an hour in a minute or two; what status, page, digest and notices say of it.

In the evening one defect is known. In the night two others come, it is repaired, the site goes down and comes
back, a persona file is broken, and a person turns the dial by hand. The morning tells exactly that.
"""

from __future__ import annotations

import html
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.clock import iso
from fleet.files import ROOT
from tests.notices.stand import SECRET, Inbox, private, receiving_inbox
from tests.platforms.bare import bare
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(900),
    pytest.mark.skipif("NIGHT" not in os.environ, reason="takes minutes: make night"),
]

LEAK = "<script>const OWNER_PRIVATE_KEY = '0x" + "5e31c4a9" * 8 + "'</script></html>"
PAGES = {"targets": {"manual": "{site}/letters.html", "settings": "{site}/names.html"}}
EVENING = "Secret is public: GET / shows a private key"
SECOND = "Secret is public: GET /letters.html shows a private key"
THIRD = "Secret is public: GET /names.html shows a private key"
OUTAGE = "Platform does not answer: outage of site"
NEWS = {"new": [SECOND, THIRD], "regressed": [], "fixed": sorted([EVENING, OUTAGE]), "still": []}
"""The digest of this night: an outage that is over is one of the things that were mended."""
PACE = {"qa-security": 'every = "4s"', "qa-retest": 'every = "5s"', "qa-triage": 'every = "3s"'}
"""The personas of this night, and how often each starts: hours become seconds."""
CONFIG = """
concurrency = 1
[notify]
webhook = "{url}/hook"
every = "1s"
"""
BROKEN = '+++\nname = "qa-broken"\nsurface = "sea"\n+++\nA file that somebody saved half way.\n'
_NUMBERS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?"), "TIME"),
    (re.compile(r"\([0-9a-f]{12}\)"), "(ID)"),
    (re.compile(r"http:/ ?/127\.0\.0\.1:\d+"), "SITE"),
    (re.compile(r"\b\d+(\.\d+)? (s|min|seconds|minutes)\b"), "LENGTH"),
)


def groups(digest: Any) -> dict[str, list[str]]:
    """Titles by group; of an outage, what did not answer."""
    found = {name: sorted(one["title"] for one in digest[name]) for name in NEWS}
    return {name: [one.partition(",")[0].partition(": c")[0] for one in ones] for name, ones in found.items()}


def plain(text: str) -> str:
    """A line without its times, lengths, addresses and fingerprints."""
    for pattern, word in _NUMBERS:
        text = pattern.sub(word, text)
    return text


@dataclass(slots=True)
class Night:
    """The platform, the fleet's daemon over it, and the operator's inbox."""

    stand: Stand
    at: Home
    site: Path
    personas: Path
    inbox: Inbox
    url: str
    daemon: subprocess.Popen[bytes]

    def defect(self, page: str, *, on: bool) -> None:
        path = self.site / page
        whole = path.read_text().replace(LEAK, "</html>\n")
        path.write_text(whole.replace("</html>\n", LEAK) if on else whole)

    def says(self, *words: str) -> str:
        command = [sys.executable, "-m", "fleet.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self.at.environment(), timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def items(self) -> dict[str, str]:
        """State by title, as the last triage left them."""
        try:
            told = json.loads((self.at.state / "worklist.json").read_text())
        except FileNotFoundError:
            return {}
        return {one["title"]: one["state"] for one in (*told["items"], *told["closed"])}

    def is_evening(self) -> bool:
        """The first item is on the list, and the watch of notices knows it: it is not news in the morning."""
        if self.items().get(EVENING) != "confirmed":
            return False
        with closing(sqlite3.connect(self.at.state / "fleet.db")) as db:
            row = db.execute("SELECT value FROM meta WHERE key = 'notify.bare'").fetchone()
        return bool(row and json.loads(row[0])["items"])

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


@asynccontextmanager
async def evening(folder: Path, inbox: Inbox) -> AsyncIterator[Night]:
    """One known defect, and a daemon at `observe` that has told of nothing yet."""
    async with bare(folder / "bare", more=PAGES) as stand:
        text = stand.profile.read_text().replace("[web]\n", "[web]\npatience_s = 0.35\n")
        stand.profile.write_text(text)
        at = await home(folder / "fleet", stand, CONFIG.format(url=inbox.url))
        private(at.state / "keys" / "notify-webhook", SECRET)
        personas = folder / "personas"
        personas.mkdir()
        for name, pace in PACE.items():
            text = (ROOT / "personas" / f"{name}.md").read_text()
            text = re.sub(r"^triggers = .*$", f"triggers = [{{ {pace} }}]", text, count=1, flags=re.MULTILINE)
            (personas / f"{name}.md").write_text(text)
        with socket.create_server(("127.0.0.1", 0)) as line:
            port = line.getsockname()[1]
        command = [sys.executable, "-m", "fleet.cli", "up", "--personas", str(personas), "--port", str(port)]
        with (folder / "up.log").open("wb") as log:
            daemon = await anyio.to_thread.run_sync(
                lambda: subprocess.Popen(command, stdout=log, stderr=log, env=at.environment())
            )
        try:
            night = Night(
                stand, at, folder / "bare" / "site", personas, inbox, f"http://127.0.0.1:{port}", daemon
            )
            night.defect("index.html", on=True)
            await night.until(night.is_evening)
            yield night
        finally:
            daemon.send_signal(signal.SIGTERM)
            try:
                await anyio.to_thread.run_sync(daemon.wait, 60)
            finally:
                daemon.kill()


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    with receiving_inbox() as inbox:
        async with evening(tmp_path, inbox) as one:
            yield one


async def half_an_hour(night: Night) -> None:
    """The events of the night, each once the one before was seen."""
    for page in ("letters.html", "names.html"):
        night.defect(page, on=True)
    await night.until(lambda: night.items().get(SECOND) == night.items().get(THIRD) == "confirmed")
    night.defect("index.html", on=False)
    await night.until(lambda: night.items().get(EVENING) == "verified-fixed")
    await anyio.to_thread.run_sync(night.stand.web.end)
    await night.until(lambda: any(" is down since " in line for line in night.notices()))
    await night.stand.web.start()
    await night.until(lambda: any(" is up: " in line for line in night.notices()))
    (night.personas / "qa-broken.md").write_text(BROKEN)
    await night.until(lambda: any("qa-broken" in line for line in night.notices()))
    dial = night.at.state / "autonomy"
    dial.write_text("exercise\n")


async def test_the_morning_tells_exactly_what_the_night_was(night: Night) -> None:
    await anyio.sleep(1.1)  # times are in seconds: the night begins in one of its own
    since = iso(datetime.now(UTC))
    told = len(night.notices())
    await half_an_hour(night)
    await night.until(lambda: len(night.notices()) - told >= 6)
    await night.until(lambda: night.status(since)["digest"]["still"] == [])
    await anyio.sleep(5)  # whatever else would be said, is

    heard = sorted(plain(line) for line in night.notices()[told:])
    assert heard == [
        "TIME bare is down since TIME: site did not answer",
        "TIME bare is up: site, since TIME, LENGTH",
        f"TIME fixed: critical, security: {EVENING} (ID)",
        f"TIME new finding: critical, security: {SECOND} (ID)",
        f"TIME new finding: critical, security: {THIRD} (ID)",
        next(line for line in heard if line.startswith("TIME persona qa-broken refused: ")),
    ]

    status = night.status(since)
    assert groups(status["digest"]) == NEWS
    assert (status["dial"]["rung"], status["dial"]["why"], status["stop"]) == ("exercise", "by hand", "")
    assert (status["reachable"]["up"], status["outages"], status["undecided"]) == (True, [], [])
    assert [one["persona"] for one in status["personas"]["refused"]] == ["qa-broken"]
    assert status["personas"]["loaded"] == 3
    (broken,) = status["wrong"]
    assert broken.startswith("persona refused: ")
    assert "qa-broken" in broken

    page = [plain(line) for line in night.says("status", "--since", since).splitlines()]
    assert page[0].startswith("exercise by ")
    lines = [line[:60] for line in page if line.startswith(("WRONG", "new ", "fixed ", "still ", "back "))]
    lines[1:3] = sorted(lines[1:3])  # the two new ones are of one rank
    assert lines == [
        next(line[:60] for line in page if line.startswith("WRONG     persona refused: ")),
        f"new       critical security {SECOND}"[:60],
        f"new       critical security {THIRD}"[:60],
        f"fixed     critical security {EVENING}"[:60],
        f"fixed     high     ux       {OUTAGE}"[:60],
    ]
    assert "since     TIME UTC: 2 new, 0 regressed, 2 fixed, 0 still" in page
    digest = json.loads(night.says("items", "digest", "--since", since, "--offline", "--json"))
    assert groups(digest) == NEWS

    now = night.room("/")
    for words in (
        "Not well",
        "persona refused: ",
        "qa-broken",
        "exercise",
        "2 new",
        "2 fixed",
        SECOND,
        THIRD,
        EVENING,
    ):
        assert words in now, (words, now)
    assert " back " not in now.partition("Since yesterday")[2].partition("What happened")[0]
    platform = night.room("/platform")
    assert "It answers, as " in platform
    assert "Down on 1 day, " in platform
    assert "qa-broken" in night.room("/personas").partition("Refused")[2]
    assert night.room("/worklist?state=open").count(" confirmed ") == 2
