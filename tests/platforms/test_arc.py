"""The arc of one item, unattended: found, posted, ranked, run again, verified fixed, back as a regression.

The same with all that the fleet remembers lost between two of the steps: the log ends with the same entries.
`make arc` loses it after each step in turn (ARC_FULL=1).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fleet.findings.reader import ParsedEntry, read
from fleet.findings.records import read_record
from fleet.gate.model import Rung
from tests.cli_process import run_fleet
from tests.platforms.bare import bare
from tests.platforms.firing import Home, fire, home
from tests.platforms.stand import Stand

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(900)]

LEAK = "<script>const OWNER_PRIVATE_KEY = '0x" + "5e31c4a9" * 8 + "'</script></html>"
OTHER = {"targets": {"manual": "{site}/letters.html"}}
FOUND = "Secret is public: GET / shows a private key"
DISMISSED = "Secret is public: GET /letters.html shows a private key"
STEPS = ("found", "ranked", "seen", "dismissed", "clean", "fixed", "back", "regressed")
FULL = os.environ.get("ARC_FULL") == "1"
LOST = [(), *((step,) for step in STEPS)] if FULL else [("dismissed", "fixed")]
"""Before it is repaired an item is known only from the log, and again before it breaks again."""
LOG = (
    f"critical {FOUND}",
    f"critical {DISMISSED}",
    "meta worklist changed: 2 open, 2 proven",
    f"info dismiss: {DISMISSED}",
    "meta worklist changed: 1 open, 1 proven",
    f"info verified-fixed: {FOUND}",
    "meta worklist changed: 0 open, 0 proven",
    f"critical {FOUND}",
    "meta worklist changed: 1 open, 1 proven",
)
"""What the log holds at the end, however often the fleet forgot."""


@dataclass(slots=True)
class Arc:
    """One platform with two defects, the fleet beside it, and the item that the arc is about."""

    stand: Stand
    at: Home
    site: Path
    item: str = ""

    def defect(self, page: str, *, on: bool) -> None:
        """Puts the leak on a page of the site, or takes it off."""
        path = self.site / page
        whole = path.read_text().replace(LEAK, "</html>\n")
        path.write_text(whole.replace("</html>\n", LEAK) if on else whole)

    async def fires(self, persona: str) -> tuple[str, list[ParsedEntry]]:
        """One firing: its detail, and what it put on the log."""
        fired = await fire(persona, self.stand, self.at, rung=Rung.OBSERVE)
        assert fired.code in (0, 1), fired.err
        return fired.data["detail"], [read(entry.text) for entry in fired.entries]

    def says(self, *words: str) -> str:
        """What `fleet` prints."""
        done = run_fleet(*words, env=self.at.environment(), timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listed(self, state: str = "open") -> list[tuple[str, str]]:
        """Fingerprint and title of the items in this state on the worklist, as it is on disk."""
        told = json.loads((self.at.state / "worklist.json").read_text())
        found = told["items"] if state == "open" else [one for one in told["closed"] if one["state"] == state]
        return [(one["fingerprint"], one["title"]) for one in found]

    def makes_list(self) -> None:
        """A reader: makes the list of the log, if it is lost."""
        if not (self.at.state / "worklist.json").exists():
            self.says("items")

    def digest(self, group: str) -> list[str]:
        """The fingerprints of one group of today's digest."""
        told = json.loads(self.says("items", "digest", "--offline", "--json"))
        return [line["fingerprint"] for line in told[group]]

    def forget(self) -> None:
        """The state directory is lost, but for the keys."""
        for path in self.at.state.iterdir():
            if path.name != "keys":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    async def found(self) -> None:
        for page in ("index.html", "letters.html"):
            self.defect(page, on=True)
        _, entries = await self.fires("qa-security")
        assert [one.title for one in entries] == [FOUND, DISMISSED]
        self.item = entries[0].fp

    async def ranked(self) -> None:
        await self.fires("qa-triage")
        assert [title for _, title in self.listed()] == [FOUND, DISMISSED]

    async def seen(self) -> None:
        """Run again while it is still there: nothing is posted again."""
        self.makes_list()
        assert await self.fires("qa-retest") == ("2 items run again, 2 shown", [])

    async def dismissed(self) -> None:
        self.makes_list()
        (second,) = [fp for fp, title in self.listed() if title == DISMISSED]
        self.says("items", "dismiss", second, "--reason", "a key for show", "--publish")
        await self.fires("qa-triage")
        assert self.listed() == [(self.item, FOUND)]

    async def clean(self) -> None:
        """It is off; what a person dismissed is still there, and is asked for as a sample."""
        self.defect("index.html", on=False)
        self.makes_list()
        again = "2 items run again, 1 shown, 1 clean, 1 of them as a sample"
        detail, entries = await self.fires("qa-retest")
        assert detail == again
        assert [one.title for one in entries] == [f"verified-fixed: {FOUND}"]  # recorded when the run ends

    async def fixed(self) -> None:
        await self.fires("qa-triage")
        if self.listed():  # what the re-runs saw was lost with the journal: they are done again
            await self.clean()
            await self.fires("qa-triage")
        assert self.listed() == []
        assert self.listed("verified-fixed") == [(self.item, FOUND)]
        assert self.digest("fixed") == [self.item]

    async def back(self) -> None:
        self.defect("index.html", on=True)
        _, entries = await self.fires("qa-security")
        assert [(one.fp, one.title) for one in entries] == [(self.item, FOUND)]

    async def regressed(self) -> None:
        await self.fires("qa-triage")
        (item,) = json.loads(self.says("items", "--offline", "--json"))
        assert (item["fingerprint"], item["state"], item["regression"]) == (self.item, "regression", True)
        resolved = next(
            read_record(one) for one in await self.log() if read_record(one) and one.fp == self.item
        )
        assert resolved is not None
        assert item["resolved_at"] == resolved.at
        assert f"resolved {resolved.at}, reported again {item['first_seen']}" in item["why"]
        assert [one["state"] for one in item["stages"]] == ["confirmed", "verified-fixed", "regression"]
        assert self.digest("regressed") == [self.item]
        assert [title for _, title in self.listed("dismissed")] == [DISMISSED]

    async def log(self) -> list[ParsedEntry]:
        return [read(entry.text) for entry in await self.stand.entries()]


@asynccontextmanager
async def arc(folder: Path) -> AsyncIterator[Arc]:
    async with bare(folder / "bare", more=OTHER) as stand:
        yield Arc(stand, await home(folder / "fleet", stand), folder / "bare" / "site")


async def run_through(folder: Path, lost: Sequence[str] = ()) -> None:
    """All steps in order; the state directory is lost after those named."""
    async with arc(folder) as one:
        for step in STEPS:
            await getattr(one, step)()
            if step in lost:
                one.forget()
        if STEPS[-1] in lost:
            await one.regressed()
        assert [f"{entry.severity} {entry.title}" for entry in await one.log()] == [*LOG]
        said = one.says("items", "show", one.item)
        assert "log entry 7" in said
        assert await one.fires("qa-triage") == ("1 item, as before", [])


@pytest.mark.parametrize("lost", LOST, ids=lambda lost: "+".join(lost) or "nothing")
async def test_the_arc_of_one_item_whatever_the_fleet_forgets(tmp_path: Path, lost: Sequence[str]) -> None:
    await run_through(tmp_path, lost)
