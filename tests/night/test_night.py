"""A scripted night: half an hour in a minute or two; what status, page, digest and notices say of it.

In the evening one defect is known. In the night two others come, it is repaired, the site goes down and comes
back, a persona file is broken, and a person turns the dial by hand. The morning tells exactly that.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.clock import iso
from tests.night.evening import BROKEN, EVENING, Night, evening
from tests.notices.stand import receiving_inbox

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.devnet,
    pytest.mark.jail,
    pytest.mark.timeout(900),
    pytest.mark.skipif("NIGHT" not in os.environ, reason="takes minutes: make night"),
]

SECOND = "Secret is public: GET /letters.html shows a private key"
THIRD = "Secret is public: GET /names.html shows a private key"
OUTAGE = "Platform does not answer: outage of site"
NEWS = {"new": [SECOND, THIRD], "regressed": [], "fixed": sorted([EVENING, OUTAGE]), "still": []}
"""The digest of this night: an outage that is over is one of the things that were mended."""
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
