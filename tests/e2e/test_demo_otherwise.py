"""`fleet demo` where there is nothing to find, where it stays, and where nothing may be exercised."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.devnet.defects import ALL_IDS, DEFECTS
from tests.e2e.conftest import LONG, Fleet, processes_of, signed

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(400)]

ENV = {"PATH": os.environ["PATH"], "QA_FLEET_EXPLORE": "false"}
OBSERVABLE = {defect.id for defect in DEFECTS if defect.rung == "observe"}


@LONG
def test_without_defects_it_finds_nothing_and_stays_when_asked_to(
    fleet: Fleet, state: Path, tmp_path: Path
) -> None:
    """In short: platforms/test_firing.py has the healthy devnet, test_look.py the pages of one that stays."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    words = ("demo", "--clean", "--json", "--open", "--port", url.rpartition(":")[2].strip("/"))
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleet.cli", *words],
            stdout=stdout,
            stderr=stderr,
            env={**ENV, "HOME": str(state), "STATE_DIRECTORY": str(state)},
        )
    try:
        while f"look at it: {url} until Ctrl-C" not in err.read_text():
            assert process.poll() is None, err.read_text()
            time.sleep(0.1)
        got, _ = json.JSONDecoder().raw_decode(out.read_text())
        for room in ("", "worklist", "runs", "personas", "platform", "log"):
            assert f'href="/{room}" aria-current="page"' in _page(process, url + room)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        down = fleet("--demo", "devnet", "down")
    assert down.code == 0, down.err
    assert (got["defects_seeded"], got["findings_posted"], got["false_findings"]) == (0, 0, 0)
    assert (got["log_entries"], got["worklist"]) == (0, [])
    assert (got["names_leaked"], got["jails_left"]) == (0, 0)
    assert "saw:" not in err.read_text()
    assert processes_of(state) == []


def _page(process: subprocess.Popen[bytes], url: str) -> str:
    """A page of a daemon that may still be on its way."""
    while process.poll() is None:
        with suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=20) as answer:
            text: str = answer.read().decode()
            return text
        time.sleep(0.1)
    raise AssertionError(f"the process ended with {process.returncode}")


@LONG
def test_at_observe_nothing_but_feedback_is_signed(fleet: Fleet, state: Path) -> None:
    said = fleet("demo", "--rung", "observe", "--json")
    assert said.code == 0, said.err
    got = said.data
    assert set(got["missed"]) == ALL_IDS - OBSERVABLE
    assert (got["defects_found"], got["findings_posted"]) == (len(OBSERVABLE), len(OBSERVABLE))
    assert (got["false_findings"], got["names_minted"]) == (0, 0)
    assert signed(state) == {"submitFeedback"}
