"""The arc of one item, unattended: found, posted, ranked, gone, verified fixed, back as a regression.

Between two of the steps the state directory's memory is lost: nothing is doubled.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.chain.codec import Entry
from fleet.findings.reader import ParsedEntry, read
from fleet.gate.model import Rung
from tests.platforms.bare import bare
from tests.platforms.firing import Home, fire, home
from tests.platforms.stand import Stand

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(600)]

LEAK = "<script>const OWNER_PRIVATE_KEY = '0x" + "5e31c4a9" * 8 + "'</script></html>"


async def posted(persona: str, stand: Stand, at: Home) -> list[ParsedEntry]:
    """What one firing put on the log."""
    fired = await fire(persona, stand, at, rung=Rung.OBSERVE)
    assert fired.code in (0, 1), fired.err
    entries: tuple[Entry, ...] = fired.entries
    return [read(entry.text) for entry in entries]


def shown(at: Home, fingerprint: str) -> str:
    """`fleet findings show`."""
    words = [sys.executable, "-m", "fleet.cli", "findings", "show", fingerprint]
    done = subprocess.run(words, capture_output=True, text=True, env=at.environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(at: Home) -> list[tuple[str, int, bool]]:
    items = json.loads((at.state / "worklist.json").read_text())["items"]
    return [(item["fingerprint"], item["count"], item["regression"]) for item in items]


async def test_the_arc_of_one_item(tmp_path: Path) -> None:
    async with bare(tmp_path / "bare") as stand:
        at = await home(tmp_path / "fleet", stand)
        page = tmp_path / "bare" / "site" / "index.html"
        healthy = page.read_text()
        broken = healthy.replace("</html>", "") + LEAK

        page.write_text(broken)
        (found,) = await posted("qa-security", stand, at)
        assert (found.title, found.severity) == ("GET {site}/ shows a private key", "critical")
        (summary,) = await posted("qa-triage", stand, at)
        assert summary.title == "worklist changed: 1 open, 1 proven"
        assert listed(at) == [(found.fp, 1, False)]

        assert await posted("qa-security", stand, at) == []  # seen again: counted, not posted
        await posted("qa-triage", stand, at)
        assert listed(at) == [(found.fp, 2, False)]

        (at.state / "fleet.db").unlink()  # everything that this fleet remembers
        shutil.rmtree(at.state / "runs")
        assert await posted("qa-security", stand, at) == []

        page.write_text(healthy)
        assert await posted("qa-security", stand, at) == []
        fixed, summary = await posted("qa-triage", stand, at)
        assert fixed.fp == found.fp
        assert fixed.title.startswith("verified-fixed: 3 clean re-runs in run ")
        assert fixed.title.endswith(": GET {site}/ shows a private key")
        assert summary.title == "worklist changed: 0 open, 0 proven"
        assert listed(at) == []
        assert await posted("qa-triage", stand, at) == []

        said = shown(at, found.fp)
        assert "log entry 0\n" in said
        assert "clean since " in said

        page.write_text(broken)
        (again,) = await posted("qa-security", stand, at)
        assert again.fp == found.fp
        await posted("qa-triage", stand, at)
        assert [(fp, back) for fp, _, back in listed(at)] == [(found.fp, True)]
