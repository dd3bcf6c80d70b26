"""What a person reads when a command refuses: the cause, and what to do; a golden file of all of them."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from fleet import cli
from fleet.cli.console import who

GOLDEN = Path(__file__).parent / "golden" / "errors.txt"
BROKEN = """+++
name = "qa-broken"
surface = "ux"
tools = ["qa_fetch"]
budget = { calls = 4 }
[[probe]]
id = "page"
severity = "medium"
steps = [{ tool = "qa_fetch", args = { url = "{sit}/" } }]
expect = 'result.statu == 200 && result.error_class != "timout"'
finding = "a page that every visitor sees"
+++
"""
LINES = (
    "backup restore nowhere.tar",
    "run qa-smok",
    "run qa-smoke",
    "stop --reason maintenance",
    "run qa-smoke",
    "run qa-smoke --json",
    "resume",
    "dial exercise",
    "dial full --reason x",
    "personas tools qa_fetc",
    "personas check qa-broken.md",
    "personas try nowhere.md",
    "items show 0123456789ab",
    "items verify 0123456789ab",
    "items snooze 0123456789ab --reason later --for soon",
    "runs show nothing",
    "items --since yesterday",
    "items log list",
    "check config --platform nowhere",
    "check platform",
    "propose 0123456789ab",
    "propose show 0123456789ab",
    "backup taken.tar",
    "service notify test",
    "service notify silence everything --for 1h",
    "service hook send deploy",
    "fuzz nothing",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet that never ran, in a folder with a broken persona and a file that is in the way."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "qa-broken.md").write_text(BROKEN)
    (tmp_path / "taken.tar").touch()
    return tmp_path


def told(line: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that a command prints, and its exit code, as on a terminal without colours."""
    monkeypatch.setattr(sys, "argv", ["fleet", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    text = (said.out + said.err).replace(str(place), "HERE")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text).replace(who(), "ann@desk")
    text = re.sub(r"(?m)[ \t]+$", "", text)
    return f"$ fleet {line}\n{text}exit {ended.value.code}\n"


def test_golden(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(told(line, place, monkeypatch, capsys) for line in LINES)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()
    assert "Traceback" not in text
    assert "exit 1\n" not in text
