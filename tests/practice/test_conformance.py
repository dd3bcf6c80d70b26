"""The practice MCP server by MCP's own conformance suite: a target of ours must itself be right.

`make conformance` installs the suite. Scenarios that presume a server with the suite's own tools, prompts
and resources are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fleet.devnet.surfaces.harbour import open_office
from fleet.files import ROOT

SUITE = ROOT / ".conformance" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
NODE = ROOT / ".conformance" / "venv" / "bin" / "node"
OLD = ("server-initialize", "server-session-lifecycle", "ping")
BOTH = ("tools-list", "resources-list", "prompts-list", "dns-rebinding-protection")
NEW = ("server-stateless", "sep-2164-resource-not-found", "caching", "http-header-validation")
SCENARIOS = [
    *(("2025-11-25", one) for one in (*OLD, *BOTH)),
    *(("2026-07-28", one) for one in (*BOTH, *NEW)),
]
OF_TOOLS = {
    *("sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"),
    *("sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel"),
}
"""Checks that call a tool of the suite's own, which no other server has."""


@pytest.mark.skipif("CONFORMANCE" not in os.environ, reason="MCP's conformance suite: make conformance")
@pytest.mark.parametrize(("version", "scenario"), SCENARIOS, ids=["/".join(one) for one in SCENARIOS])
def test_the_practice_server_conforms(version: str, scenario: str, tmp_path: Path) -> None:
    with open_office() as office:
        asked = ["server", "--url", f"{office.url}/mcp", "--scenario", scenario, "--spec-version", version]
        words = [str(NODE), str(SUITE), *asked, "-o", str(tmp_path)]
        subprocess.run(words, capture_output=True, timeout=120, check=False)
    (report,) = tmp_path.rglob("checks.json")
    seen = {one["id"]: one["status"] for one in json.loads(report.read_text())}
    assert "SUCCESS" in seen.values()
    assert {one for one, status in seen.items() if status in ("FAILURE", "WARNING")} - OF_TOOLS == set()
