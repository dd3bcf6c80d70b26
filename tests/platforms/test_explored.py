"""The explorers of the shipped personas on a platform that they do not know: quiet, and inside the fences."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fleet.gate.model import Rung
from tests.platforms.bare import bare
from tests.platforms.firing import fire, home

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(900)]

EXPLORING = {"QA_FLEET_EXPLORE": "true"}


async def test_the_explorers_are_quiet_on_a_bare_platform_and_touch_nothing_else(tmp_path: Path) -> None:
    async with bare(tmp_path / "bare") as stand:
        at = await home(tmp_path / "fleet", stand)
        fired = await fire("qa-security", stand, at, rung=Rung.EXERCISE, env=EXPLORING)
        assert fired.code == 0, fired.err
        assert (fired.data["findings"], fired.entries) == ([], ())
        assert "questions asked" in fired.data["detail"]
        events = (at.state / "runs" / fired.data["run"] / "trajectory.jsonl").read_text().splitlines()
        asked = [event for event in map(json.loads, events) if event["type"] == "tool.requested"]
        hosts = {urlsplit(event["args"]["url"]).netloc for event in asked if "url" in event["args"]}
        assert hosts == {urlsplit(stand.data["web"]["site"]).netloc}
        assert len(asked) <= 3_000
        again = await fire("qa-security", stand, at, rung=Rung.EXERCISE, env=EXPLORING)
        assert (again.code, again.data["findings"], again.entries) == (0, [], ())


async def test_a_page_broken_in_a_way_that_no_probe_asks_about_is_found_and_learned(tmp_path: Path) -> None:
    async with bare(tmp_path / "bare") as stand:
        at = await home(tmp_path / "fleet", stand)
        page = tmp_path / "bare" / "site" / "names.html"
        page.write_text(page.read_text().replace("</body>", '<a href="/no-such-page.html">more</a></body>'))
        fired = await fire("qa-security", stand, at, rung=Rung.OBSERVE, env=EXPLORING)
        titles = [row["title"] for row in fired.data["findings"] if row["state"] == "posted"]
        assert titles == ["Link leads to nothing: /names.html links to /no-such-page.html, which answers 404"]
        (learned,) = (at.state / "learned" / "bare").glob("*.json")
        assert json.loads(learned.read_text())["oracle"] == "dead-link"
