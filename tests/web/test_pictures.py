"""The pictures in README and docs: rooms of a demo's fleet in a real browser, light, 1280 pixels wide.

`make picture` makes them (DEMO_PICTURES=1); each change sees that they are there, small, and used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.applications import Starlette

from fleet.files import ROOT
from fleet.web.site import WebPages
from tests.sandbox.browsing import needs_browser
from tests.web.browser import browsing, serving

FOLDER = ROOT / "docs" / "pages"
STATE = ROOT / ".qa-fleet" / "demo"
ROOMS = {"now": "/", "worklist": "/worklist", "item": "", "runs": "/runs"}
LARGEST = 150_000
"""Bytes of a picture."""
AT_HOME = f"""for (const one of document.querySelectorAll("code"))
  one.textContent = one.textContent.replaceAll({json.dumps(str(ROOT))}, "~/qa-fleet")"""
"""A picture has no path of the machine that made it."""
MADE = "DEMO_PICTURES" in os.environ


@pytest.mark.skipif(not MADE, reason="DEMO_PICTURES is not set: make picture")
@needs_browser
def test_the_rooms_of_a_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(STATE))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(STATE))
    pages = WebPages(STATE)

    async def facts() -> Mapping[str, Any]:
        return {}

    FOLDER.mkdir(exist_ok=True)
    with serving(Starlette(routes=pages.routes(facts, {})), {}) as url:
        monkeypatch.setenv("QA_BROKER", url)
        with browsing(url) as tab:
            tab.shape(1280)
            for name, path in ROOMS.items():
                if not path:
                    tab.open("/worklist")
                    path = tab.run("document.querySelector('[data-row]').getAttribute('href')")
                tab.open(path)
                tab.run(AT_HOME)
                tab.picture(FOLDER / f"{name}.webp", most=1_000)
                assert tab.visited.events == []


def test_the_pictures_are_there_small_and_shown() -> None:
    told = "".join(path.read_text() for path in (ROOT / "README.md", ROOT / "docs" / "operate.md"))
    shown = set(re.findall(r"pages/(\w+)\.webp", told))
    assert {path.stem for path in FOLDER.iterdir()} == shown == set(ROOMS)
    for path in FOLDER.iterdir():
        data = path.read_bytes()
        assert (data[:4], data[8:12], len(data) < LARGEST) == (b"RIFF", b"WEBP", True), path
