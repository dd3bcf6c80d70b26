"""The scripts of findings, executed by bash on the devnet: each shows its defect by itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Fleet

pytestmark = [pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(400)]

SHOWN = {
    "sponsor-key-exposed": ("curl ", "HTTP/1.1 200 OK", "SPONSOR_PRIVATE_KEY"),
    "script-in-face": ("curl ", "HTTP/1.1 200 OK", "<script>qacanary</script>"),
    "origin-prefix": ("curl ", "access-control-allow-origin: http://localhost.evil.test"),
    "method-405": ("curl ", "HTTP/1.1 405"),
    "spoofed-from": ("call ", "status: 200", "caller: 0x00000000000000000000000000000000000051de"),
    "destructive-tool": ("call ", "status: 200", "tool_calls: delete_file"),
}
"""By probe: what its script is made of, and what it prints."""


@pytest.fixture(scope="module")
def found(devnet: Fleet) -> dict[str, str]:
    """Scripts by probe, as the command prints them."""
    assert devnet("dial", "exercise", "--reason", "a devnet").code == 0
    for words in (("qa-security",), ("qa-ux", "--probe", "method-405")):
        assert devnet("run", *words, "--no-post").code == 1, words
    rows = devnet("items", "findings", "--json").data
    scripts: dict[str, str] = {}
    for row in rows:
        said = devnet("items", "show", row["fingerprint"], "--script")
        assert said.code == 0, said.err
        scripts.setdefault(row["probe"], said.out)
    return scripts


@pytest.mark.parametrize("probe", SHOWN)
def test_a_script_shows_its_defect(found: dict[str, str], probe: str, tmp_path: Path) -> None:
    script = found[probe]
    made_of, *printed = SHOWN[probe]
    assert script.startswith("#!/usr/bin/env bash\n# ")
    assert any(made_of in line for line in script.splitlines())
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash"], input=script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert [text for text in printed if text not in done.stdout] == []


def test_a_call_by_hand_counts_nowhere(devnet: Fleet) -> None:
    before = devnet("items", "findings", "--json").data
    said = devnet("call", 'qa_call(message="hi", target="claude"); qa_fetch(url="{site}/")', "--json")
    assert said.code == 0, said.err
    first, second = said.data["calls"]
    assert (first["args"]["target"], first["result"]["status"], second["result"]["status"]) == (
        "claude",
        200,
        200,
    )
    assert second["args"]["url"].startswith("http://127.0.0.1:")
    assert devnet("items", "findings", "--json").data == before
    assert devnet("dial", "observe", "--reason", "enough").code == 0
    refused = devnet("call", 'qa_call(message="hi", target="claude")')
    assert refused.code == 5
    assert "needs the rung exercise" in refused.err
