"""A platform that is down is noticed within one smoke run, posted once, and over when it answers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fleet.findings.outage import WORD
from tests.e2e.conftest import LONG, Fleet, Said, command

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(240)]

PATIENCE_S = 0.35
"""Of the looks of these tests: a twentieth of what is usual, and so is what an outage must last."""
DEAD = "http://127.0.0.1:9"
NOWHERE = "http://192.0.2.1:81"


class Stand:
    """A clean devnet whose platform can be killed, stopped and brought back; no other defects."""

    def __init__(self, state: Path, fleet: Fleet) -> None:
        self.state, self.fleet = state, fleet
        self.folder = state / "devnet"
        self.url = self._line("site").split('"')[1]
        self._own: subprocess.Popen[bytes] | None = None
        self.profile("paced")

    def profile(self, name: str, called: str = "", **changes: str) -> str:
        """The devnet's own profile with short patience and other values of `[web]` or `[chain]`."""
        text = (self.folder / "devnet.toml").read_text()
        text = text.replace('name = "devnet"', f'name = "{called or name}"')
        text = text.replace("[web]\n", f"[web]\npatience_s = {PATIENCE_S}\n")
        for key, value in changes.items():
            text = text.replace(self._line(key), f'{key} = "{value}"') if key != "controls" else text
        if "controls" in changes:
            text = text.replace("[web]\n", f'[web]\ncontrols = ["{changes["controls"]}"]\n')
        (self.folder / f"{name}.toml").write_text(text)
        return name

    def _line(self, key: str) -> str:
        text = (self.folder / "devnet.toml").read_text()
        return next(line for line in text.splitlines() if line.startswith(f"{key} ="))

    def smoke(self, name: str = "paced") -> Said:
        said = self.fleet("run", "qa-smoke", "--platform", name, "--json")
        assert "Traceback" not in said.err, said.err
        return said

    def triage(self, name: str = "paced") -> list[dict[str, Any]]:
        assert self.fleet("run", "qa-triage", "--platform", name).code == 0
        items: list[dict[str, Any]] = self.fleet("items", "--offline", "--json").data
        return items

    def log(self) -> list[str]:
        """Our entries about outages."""
        rows = self.fleet("items", "log", "list", "--platform", "paced", "--json").data
        return [row["text"] for row in rows if WORD in row["text"] and "sev=meta" not in row["text"]]

    def pid(self) -> int:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"fleet.devnet.platform" in words and os.fsencode(self.state) in words:
                    return int(entry.name)
        raise AssertionError("no platform is running")

    def kill(self) -> list[str]:
        """The platform is gone, and the node stays; what it was started with."""
        pid = self.pid()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().removesuffix("\0").split("\0")
        os.kill(pid, signal.SIGKILL)
        return words

    def bring_back(self, words: list[str]) -> None:
        """The same platform at the same address."""
        words[words.index("--port") + 1] = self.url.rpartition(":")[2]
        self._own = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self._own.stdout is not None
        assert b"ready" in self._own.stdout.readline()

    def end(self) -> None:
        if self._own is not None:
            self._own.kill()
            self._own.wait()
            assert self._own.stdout is not None
            self._own.stdout.close()


@pytest.fixture(scope="module")
def stand(shared: Path) -> Iterator[Stand]:
    fleet = command(shared)
    up = fleet("devnet", "up", "--clean", "--json")
    assert up.code == 0, up.err
    stand = Stand(shared, fleet)
    try:
        yield stand
    finally:
        stand.end()
        assert fleet("devnet", "down").code == 0


def _one(said: Said) -> dict[str, Any]:
    (found,) = said.data["findings"]
    assert found["probe"] == WORD
    found = dict(found)
    return found


def test_a_healthy_platform_is_looked_at_and_nothing_is_said(stand: Stand) -> None:
    said = stand.smoke()
    assert (said.code, said.data["findings"], said.data["outcome"]) == (0, [], "done")
    assert stand.fleet("status", "--json").data["outages"] == []
    assert stand.log() == []


def test_a_killed_platform_is_noticed_posted_once_and_over_when_it_is_back(stand: Stand) -> None:
    words = stand.kill()
    first = stand.smoke()
    found = _one(first)
    assert (first.code, found["state"], found["severity"], found["surface"]) == (1, "posted", "high", "ux")
    assert (found["confirmed"], found["tries"]) == (3, 3)
    assert "outage of site, proxy and faces: connection refused, 4 looks" in found["title"]
    assert found["title"].endswith("; node answers")
    assert found["repro"].startswith('qa_fetch(url="{site}/")')
    again = stand.smoke()
    assert (again.code, _one(again)["state"]) == (1, "repeated")
    assert _one(again)["fingerprint"] == found["fingerprint"]
    assert len(stand.log()) == 1
    (open_,) = stand.fleet("status", "--json").data["outages"]
    assert (open_["fingerprint"], open_["posted"]) == (found["fingerprint"], True)
    assert [item["fingerprint"] for item in stand.triage()] == [found["fingerprint"]]
    bundle = stand.fleet("items", "show", found["fingerprint"], "--json").data["evidence_bundle"]
    assert len([step for step in bundle["steps"] if step["result"]["error"] == "connection refused"]) == 4

    stand.bring_back(words)
    after = stand.smoke()
    assert (after.code, after.data["findings"]) == (0, [])
    assert stand.fleet("status", "--json").data["outages"] == []
    assert stand.triage() == []
    over = stand.log()
    assert len(over) == 2
    assert f"fp={found['fingerprint']}" in over[1]
    assert f"{WORD}: over: site, proxy, faces, since" in over[1]
    assert stand.triage() == []
    assert len(stand.log()) == 2
    assert f"outage {found['fingerprint']} is over" in (stand.state / "DECISIONS.md").read_text()


@LONG
def test_a_platform_that_accepts_and_never_answers_is_a_new_outage(stand: Stand) -> None:
    before = stand.log()
    pid = stand.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        said = stand.smoke()
    finally:
        os.kill(pid, signal.SIGCONT)
    found = _one(said)
    assert (said.code, found["state"], found["severity"]) == (1, "posted", "high")
    assert "site, proxy and faces do not answer: no answer in time, " in found["title"]
    assert len(stand.log()) == len(before) + 1
    assert not any(found["fingerprint"] in text for text in before)
    after = stand.smoke()
    assert (after.code, after.data["findings"]) == (0, [])
    assert stand.triage() == []


@LONG
def test_half_a_platform_is_named_and_the_other_half_is_looked_at(stand: Stand) -> None:
    said = stand.smoke(stand.profile("half", called="half", proxy=DEAD))
    found = _one(said)
    assert (said.code, found["state"], found["severity"]) == (1, "posted", "high")
    assert "proxy does not answer: connection refused" in found["title"]
    assert found["title"].endswith("; site, faces and node answer")
    assert found["repro"] == 'qa_fetch(url="{proxy}/")'
    plan = (stand.state / "runs" / said.data["run"] / "PLAN.md").read_text()
    assert "- [x] chain-views: healthy" in plan
    back = stand.smoke(stand.profile("half", called="half"))
    assert (back.code, back.data["findings"]) == (0, [])
    assert stand.triage("half") == []


@LONG
def test_a_dead_node_is_kept_here_shown_and_posted_when_it_is_back(stand: Stand) -> None:
    before = len(stand.log())
    name = stand.profile("nodeless", called="nodeless", rpc=DEAD)
    said = stand.smoke(name)
    found = _one(said)
    assert (said.code, found["state"], found["severity"]) == (1, "confirmed", "critical")
    assert "outage of node: connection refused" in found["title"]
    assert _one(stand.smoke(name))["state"] == "confirmed"
    (open_,) = stand.fleet("status", "--json").data["outages"]
    assert (open_["fingerprint"], open_["posted"]) == (found["fingerprint"], False)
    assert found["title"] in stand.fleet("items").out
    since = datetime.fromisoformat(found["data"]["outage"]["since"])
    time.sleep(max(0.0, 4.0 - (datetime.now(UTC) - since).total_seconds()))  # worth posting

    back = stand.smoke(stand.profile("nodeless", called="nodeless"))
    late = _one(back)
    assert (back.code, late["state"], late["fingerprint"]) == (1, "posted", found["fingerprint"])
    assert "; back at 20" in late["title"]
    assert stand.triage("nodeless") == []
    assert len(stand.log()) == before + 2  # the outage, and its end
    states = [
        row["state"]
        for row in stand.fleet("items", "findings", "--json").data
        if row["fingerprint"] == found["fingerprint"]
    ]
    assert states == ["repeated", "repeated", "posted"]
    assert stand.smoke("nodeless").data["findings"] == []


@LONG
def test_without_a_network_of_ours_nothing_is_said_about_the_platform(stand: Stand) -> None:
    before = stand.log()
    name = stand.profile(
        "away",
        called="away",
        site=NOWHERE,
        proxy=NOWHERE,
        face=f"{NOWHERE}/face/{{name}}/",
        controls="http://192.0.2.2:81/",
    )
    said = stand.smoke(name)
    assert (said.code, said.data["outcome"], said.data["findings"]) == (4, "could_not_tell", [])
    assert "our network or machine: site, proxy and faces: " in said.data["detail"]
    assert "the control 192.0.2.2 did not answer either" in said.data["detail"]
    assert stand.fleet("status", "--json").data["outages"] == []
    assert stand.log() == before
