"""`fleet check platform`: what is there, what is not and why, and that nothing was changed by looking."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.cli.check.platform import profile_names
from fleet.jail.locate import BROWSER
from fleet.runs.survey import KNOWN
from sandbox.browser.devtools import installed
from tests.cli_process import run_fleet
from tests.platforms.full import without
from tests.platforms.profile import Profile, written
from tests.platforms.served import free_port
from tests.platforms.stand import Stand

DIAMOND = "0x" + "11" * 20
RED = "\x1b[31mred\u202e"
BROWSE = "" if installed() else f"no browser is installed here: {BROWSER}"
MCP = "the profile names no MCP endpoint"
PAID = "the profile names nothing that is paid for"
LISTED = "the profile names no agent in an ERC-8004 registry"
"""What the survey says of qa_browse, on every platform: it depends on the machine alone."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the command said and ended with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def parts(self) -> dict[str, str]:
        return {row["part"]: row["state"] for row in self.data["parts"]}

    def reasons(self, what: str) -> dict[str, str]:
        """Of tools, or of all personas' probes: why each cannot run; "" for a tool that can."""
        if what == "tools":
            return {row["tool"]: row["reason"] for row in self.data["tools"]}
        rows = [row for one in self.data["personas"] for row in one["not_applicable"]]
        return {row["probe"]: row["reason"] for row in rows}


def checked(folder: Path, profile: Profile, *words: str) -> Checked:
    """The command as a process, with a new configuration and a state directory that is not there."""
    (folder / "platforms").mkdir(parents=True, exist_ok=True)
    (folder / "platforms" / "here.toml").write_text(written(profile), "utf-8")
    done = run_fleet(
        *("check", "platform", "here", *(words or ("--json",))),
        timeout=110,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CONFIGURATION_DIRECTORY": str(folder),
            "STATE_DIRECTORY": str(folder / "state"),
        },
    )
    assert not (folder / "state").exists()
    return Checked(done.returncode, done.stdout, done.stderr)


async def looked(folder: Path, profile: Profile) -> Checked:
    return await anyio.to_thread.run_sync(checked, folder, profile)


@contextmanager
def node(answers: Mapping[str, Any]) -> Iterator[str]:
    """A node whose answers are scripted, by method or by the selector called; a dict with a code fails."""

    def one(call: dict[str, Any]) -> dict[str, Any]:
        key = call["params"][0]["data"][:10] if call["method"] == "eth_call" else call["method"]
        found = answers.get(key, {"code": 3, "message": f"execution reverted {RED}"})
        kind = "error" if isinstance(found, dict) and "code" in found else "result"
        return {"jsonrpc": "2.0", "id": call["id"], kind: found}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = json.dumps(
                [one(call) for call in asked] if isinstance(asked, list) else one(asked)
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def selector(name: str) -> str:
    return "0x" + FUNCTIONS[name].selector.hex()


def profile(rpc: str, **chain: Any) -> Profile:
    return {"name": "here", "chain": {"rpc": rpc, "id": 7, "diamond": DIAMOND} | chain}


WELL = {"eth_chainId": "0x7", "eth_getCode": "0x60", selector("feedbackCount"): "0x" + "00" * 32}


# -- on running platforms -----------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
async def test_the_devnet_has_everything_and_looking_changes_nothing(
    full_stand: Stand, tmp_path: Path
) -> None:
    before = await full_stand.rpc.call("eth_blockNumber")
    seen = await looked(tmp_path, full_stand.data)
    assert seen.code == 0, seen.err
    assert seen.parts == dict.fromkeys(
        (
            "chain",
            "functions",
            "registrationCost",
            "mainCost",
            "throwaway keys",
            "site",
            "faces",
            "proxy",
            "compiler",
            "loader",
        ),
        "found",
    ) | {"mcp": "absent", "payments": "absent", "registry": "absent"}
    lost = ["sessionExpiryOf", "tokenBoundAccount", "tokenBoundAccountByName"]
    offered = [name for name in KNOWN if name not in lost]
    assert seen.data["functions"] == {"offered": offered, "missing": lost}
    assert {name: why for name, why in seen.reasons("tools").items() if why != ""} == (
        {"qa_mcp": MCP, "qa_pay": PAID, "qa_registry": LISTED} | ({"qa_browse": BROWSE} if BROWSE else {})
    )
    assert seen.reasons("probes") == {}
    assert all(int(wei) >= 0 for wei in seen.data["costs_wei"].values())
    assert await full_stand.rpc.call("eth_blockNumber") == before
    assert "  chain: found" in seen.err


@pytest.mark.anyio
@pytest.mark.devnet
async def test_the_bare_platform_is_told_apart_part_by_part(bare_stand: Stand, tmp_path: Path) -> None:
    seen = await looked(tmp_path, bare_stand.data)
    assert seen.code == 0, seen.err
    found = ("chain", "functions", "registrationCost", "throwaway keys", "site")
    assert seen.parts == dict.fromkeys(found, "found") | dict.fromkeys(
        ("faces", "proxy", "agents", "mcp", "payments", "registry", "compiler"), "absent"
    )
    assert {"owner", "creditOf", "mainOf", "claimDaily"} <= set(seen.data["functions"]["missing"])
    assert {"submitFeedback", "register"} <= set(seen.data["functions"]["offered"])
    assert seen.reasons("tools") == {
        "qa_create": "",
        "qa_compile": "the profile names no loader; the profile names no compiler",
        "qa_fuzz": "the profile names no loader; the profile names no compiler",
        "qa_publish": "the profile names no compiler; the profile names no metadata key 'app'; "
        "the profile names no metadata key 'face'",
        "qa_call": "the profile states neither [agents] nor web.proxy, web.model, web.auth_scope, web.route",
        "qa_mcp": MCP,
        "qa_pay": PAID,
        "qa_registry": LISTED,
        "qa_fetch": "",
        "qa_account": "",
        "qa_chain": "",
        "qa_browse": BROWSE,
        "qa_report": "",
    }
    owned = seen.reasons("probes")["diamond-owned"]
    assert "the diamond does not offer owner" in owned


@pytest.mark.sampled(2)
@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
@pytest.mark.parametrize(
    ("part", "tool", "why"),
    [
        ("calls", "qa_call", "the profile states neither [agents] nor web.model, web.auth_scope, web.route"),
        (
            "metadata",
            "qa_publish",
            "the profile names no metadata key 'app'; the profile names no metadata key 'face'",
        ),
        ("codes", "", ""),
        ("proxy", "qa_call", "the profile states neither [agents] nor web.proxy"),
    ],
)
async def test_what_is_left_out_makes_its_probes_not_applicable_and_is_no_failure(
    tmp_path: Path, part: str, tool: str, why: str
) -> None:
    async with without(part, tmp_path / "devnet") as stand:
        seen = await looked(tmp_path / "config", stand.data)
    assert seen.code == 0, seen.err
    expected = {tool: why, "qa_browse": BROWSE, "qa_mcp": MCP, "qa_pay": PAID, "qa_registry": LISTED}
    assert {name: reason for name, reason in seen.reasons("tools").items() if reason} == {
        name: reason for name, reason in expected.items() if reason
    }
    probes = seen.reasons("probes")
    assert all(reason for reason in probes.values())
    assert any(why in reason for reason in probes.values()) == bool(tool)


@pytest.mark.anyio
@pytest.mark.devnet
async def test_a_configured_part_that_is_down_is_an_exit_code(bare_stand: Stand, tmp_path: Path) -> None:
    data = bare_stand.data
    data["web"]["proxy"] = f"http://127.0.0.1:{free_port()}"
    seen = await looked(tmp_path, data)
    assert (seen.code, seen.parts["proxy"], seen.parts["site"]) == (4, "unreachable", "found")
    assert seen.data["ok"] is False


# -- nodes that are not there, or not what they should be ---------------------------------------------------


def test_a_dead_node(tmp_path: Path) -> None:
    seen = checked(tmp_path, profile(f"http://127.0.0.1:{free_port()}"))
    assert (seen.code, seen.parts["chain"], seen.data["functions"]) == (4, "unreachable", None)
    assert "the diamond's functions are unknown" in seen.err


def test_another_chain(tmp_path: Path) -> None:
    with node(WELL | {"eth_chainId": "0x8"}) as url:
        seen = checked(tmp_path, profile(url))
    assert (seen.code, seen.parts["chain"]) == (4, "differs")
    assert "is chain 8, but profile 'here' says chain.id = 7" in seen.data["parts"][0]["seen"]


@pytest.mark.parametrize(
    "loupe", ["0x" + "ff" * 64, "0x" + "00" * 31 + "20" + "ff" * 32, RED, 7, {"code": 1, "message": RED}]
)
def test_a_hostile_loupe_says_nothing(tmp_path: Path, loupe: object) -> None:
    with node(WELL | {selector("facets"): loupe}) as url:
        seen = checked(tmp_path, profile(url))
    assert "\x1b" not in seen.out + seen.err
    assert seen.data["functions"] is None
    assert seen.parts["chain"] in ("found", "unreachable")
    assert seen.code == (0 if seen.parts["chain"] == "found" else 4)


def test_a_strangers_words_are_cleaned(tmp_path: Path) -> None:
    with node({"eth_chainId": {"code": 1, "message": f"go away {RED}"}}) as url:
        seen = checked(tmp_path, profile(url))
        table = checked(tmp_path, profile(url), "--help")
    assert seen.code == 4
    assert "go away" in seen.data["parts"][0]["seen"]
    assert not {"\x1b", "\u202e"} & set(seen.data["parts"][0]["seen"] + seen.err)
    assert "It only reads (no key, no transaction, no paid call)" in " ".join(table.out.split())


def test_profiles_are_completed_by_name() -> None:
    assert profile_names("localharness") == ["localharness", "localharness-testnet"]
    assert profile_names("nothing-of-the-kind") == []
