"""What people read has times to the minute, and no names of the source; what programs read keeps both."""

from __future__ import annotations

import html
import re

import pytest

from tests.cli_process import run_fleet
from tests.web.conftest import FIRST, Served

SECONDS = re.compile(r"\d\d:\d\d:\d\d")
NAMES = re.compile(r"\b(?!qa_)[a-z]+(?:_[a-z]+)+\b")
COMMANDS = (
    "status",
    "dial",
    "items list --offline",
    "items list --offline --digest",
    "items list --offline --html",
    f"items show {FIRST}",
    "items decisions",
    "personas list",
    "report",
    "report --html",
    "service notify silences",
)
ROOMS = ("/", "/worklist?state=all", f"/items/{FIRST}", "/runs", "/personas", "/platform", "/log")


def words_of(page: str) -> str:
    """A page without its markup, style and scripts."""
    text = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S)
    return html.unescape(text)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_commands_say(served: Served, command: str) -> None:
    done = run_fleet(*command.split(), env={"STATE_DIRECTORY": str(served.state)})
    said = words_of(done.stdout + done.stderr) if "--html" in command else done.stdout + done.stderr
    assert (done.returncode, SECONDS.findall(said), NAMES.findall(said)) == (0, [], []), said


@pytest.mark.anyio
@pytest.mark.parametrize("path", ROOMS)
async def test_what_pages_say(served: Served, path: str) -> None:
    said = words_of((await served.ask(path)).text)
    assert (SECONDS.findall(said), NAMES.findall(said)) == ([], []), said
