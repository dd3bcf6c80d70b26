"""A platform of one part alone: each command, and a run, say what is there and call nothing else missing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.chain.keys import create_key
from fleet.cli.check.machine import balances, clock, keys, target
from fleet.cli.check.machine import pages as pages_of
from fleet.clock import SystemClock
from fleet.config.parts import PARTS
from fleet.gate.dial import write_dial
from fleet.gate.model import Rung
from fleet.runs.survey import KNOWN
from tests.cli_process import run_fleet
from tests.platforms.test_survey import DIAMOND, WELL, node

pytestmark = pytest.mark.jail

PERSONA = """+++
name = "qa-parts"
summary = "One probe of each part."
surface = "ux"
tools = ["qa_fetch", "qa_chain", "qa_call", "qa_compile"]
budget = { calls = 40, writes = 4, wall = "60s" }

[[probe]]
id = "page"
severity = "low"
steps = [{ tool = "qa_fetch", args = { url = "{site}/" } }]
expect = "result.status == 200"
finding = "the first page does not answer 200; it was expected to"

[[probe]]
id = "agent"
severity = "low"
steps = [{ tool = "qa_call", args = { target = "{target:agent}", message = "hello" } }]
expect = "result.status == 200"
finding = "the agent does not answer 200; it was expected to"

[[probe]]
id = "contract"
severity = "low"
steps = [{ tool = "qa_chain", args = { function = "feedbackCount" } }]
expect = "result.ok"
finding = "the contract does not answer; it was expected to"

[[probe]]
id = "program"
severity = "low"
steps = [{ tool = "qa_compile", args = { source = "ok" } }]
expect = 'result.outcome == "accepted"'
finding = "a good program is not accepted; it was expected to be"
+++
You look at each part once.
"""
SITE = {"page": "the profile names no site"}
CONTRACT = {"contract": "the profile names no chain"}
PROGRAM = {"program": "the profile names no compiler"}
AGENT = {
    "agent": "the profile has no target for 'agent'; the profile states neither [agents] nor web.proxy,"
    " web.model, web.auth_scope, web.route"
}
COMPILER = """[compiler]
command = ["{python}", "-c", "import sys; sys.exit('ok' not in sys.stdin.read())"]
output = "none"
sample = "ok"
"""


class Handler(BaseHTTPRequestHandler):
    """A web API with a description, a static page, and an agent behind a proxy."""

    def do_GET(self) -> None:
        kind, body = "text/html", b"<!doctype html><html lang=en><title>here</title><p>here</html>"
        if self.path == "/openapi.json":
            said = {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {}}
            kind, body = "application/json", json.dumps(said).encode()
        self._say(kind, body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = {"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}
        self._say("application/json", json.dumps(said).encode())

    def _say(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def rpc() -> Iterator[str]:
    """A contract without a loupe."""
    block = {"number": "0x1", "hash": "0x" + "0a" * 32, "parentHash": "0x" + "0b" * 32, "timestamp": "0x1"}
    more = {"eth_blockNumber": "0x1", "eth_getBalance": "0x0", "eth_gasPrice": "0x1"}
    more[KNOWN["creditOf"]] = f"0x{9:064x}"
    with node(WELL | more | {"eth_getBlockByNumber": block | {"baseFeePerGas": "0x1"}}) as url:
        yield url


@dataclass(frozen=True)
class Fleet:
    """The command, on a configuration of one profile and one persona."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CONFIGURATION_DIRECTORY": str(self.folder),
            "STATE_DIRECTORY": str(self.folder / "state"),
            "QA_FLEET_PLATFORM": "here",
        }

    def __call__(self, *words: str) -> tuple[int, Any]:
        done = run_fleet(*words, "--json", timeout=110, env=self.environment)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("profile", "named", "looked", "missing"),
    [
        ('[web]\nsite = "PAGES"\n', {"site"}, {"page"}, AGENT | CONTRACT | PROGRAM),
        (
            'targets = { agent = "claude" }\ncall_targets = ["claude"]\n'
            '[web]\nproxy = "PAGES"\nmodel = "m"\nauth_scope = "s"\nroute = ""\n',
            {"proxy", "agents"},
            {"agent"},
            SITE | CONTRACT | PROGRAM,
        ),
        (
            f'log = "file"\n[chain]\nrpc = "NODE"\nid = 7\ndiamond = "{DIAMOND}"\n',
            {"chain", "diamond"},
            {"contract"},
            SITE | AGENT | PROGRAM,
        ),
        (COMPILER, {"compiler"}, {"program"}, SITE | AGENT | CONTRACT),
        (
            'log = "file"\ntargets = { agent = "claude" }\ncall_targets = ["claude"]\n'
            f'[chain]\nrpc = "NODE"\nid = 7\ndiamond = "{DIAMOND}"\n'
            '[web]\nsite = "PAGES"\nface = "PAGES/{name}"\nproxy = "PAGES"\n'
            f'model = "m"\nauth_scope = "s"\nroute = ""\n{COMPILER}[mcp]\nendpoints = ["PAGES/mcp"]\n',
            PARTS.keys() - {"payments", "registry"},
            {"page", "agent", "contract", "program"},
            {},
        ),
    ],
    ids=["site", "agents", "contract", "compiler", "all"],
)
def test_a_platform_of_these_parts_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pages: str,
    rpc: str,
    profile: str,
    named: set[str],
    looked: set[str],
    missing: Mapping[str, str],
) -> None:
    text = 'name = "here"\n' + profile.replace("PAGES", pages).replace("NODE", rpc)
    for folder, name, words in (("platforms", "here.toml", text), ("personas", "qa-parts.md", PERSONA)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(words, "utf-8")
    (tmp_path / "state").mkdir(mode=0o700)
    if "diamond" in named:
        (tmp_path / "state" / "keys").mkdir(mode=0o700)
        for role in ("identity", "sponsor"):
            create_key(tmp_path / "state" / "keys" / role)
    fleet = Fleet(tmp_path)
    for name, value in fleet.environment.items():
        monkeypatch.setenv(name, value)

    rows = [row for check in (target, pages_of, keys, balances, clock) for row in anyio.run(check, None)]
    assert [row for row in rows if not row[1]] == []
    without = {name for name, _, said in rows if said.startswith("not configured: ")}
    assert without == (PARTS.keys() - named) | (set() if "diamond" in named else {"keys"})
    assert fleet("check", "config")[0] == 0
    code, seen = fleet("check", "platform")
    parts = {row["part"]: row["state"] for row in seen["parts"] if row["part"] in PARTS}
    assert (code, parts) == (
        0,
        {one: "absent" for one in PARTS if one not in named}
        | {one: "found" for one in parts if one in named},
    )
    write_dial(tmp_path / "state", Rung.EXERCISE, "a test", "a test", SystemClock())
    code, run = fleet("run", "qa-parts")
    reached = {row["probe"] for row in run["coverage"]["looked"]}
    rest = {row["probe"]: row["reason"] for row in run["coverage"]["not_applicable"]}
    assert (code, run["outcome"], reached, rest) == (0, "done", looked, missing), run
    code, worklist = fleet("items")
    assert (code, worklist) == (0, [])
