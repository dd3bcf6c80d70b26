"""Each part of a profile is optional by itself, and what is missing is said in a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet.app.persona_sets import roster
from fleet.broker.egress_policy import EgressPolicy
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform, parse
from fleet.config.parts import PARTS, in_short, not_configured
from fleet.errors import ConfigError, WrongTarget
from fleet.files import ROOT
from fleet.runs.call.targets import Capabilities, targets_of
from fleet.runs.survey import why_idle
from sandbox.tools import TOOLS

NODE = '[chain]\nrpc = "http://127.0.0.1:8545"\nid = 7\n'
DIAMOND = f'{NODE}diamond = "0x{"a" * 40}"\n'
CONTRACT, AGENT = f"contract:0x{'B' * 40}", f"erc8004:0x{'c' * 40}"
ERC8004 = f"""[erc8004]
identity = "0x{"d" * 40}"
agent = 22
clients = ["0x{"e" * 40}"]
"""
SITE = '[web]\nsite = "http://127.0.0.1:8080"\n'
AGENTS = '[web]\nproxy = "http://127.0.0.1:8080"\nmodel = "m"\nauth_scope = "s"\nroute = ""\n'
WIRE = f'{SITE}[agents.keeper]\nwire = "chat"\nurl = "{{site}}/v1"\n'
MCP = f'{SITE}[mcp]\nendpoints = ["{{site}}/mcp"]\n'
PAID = f"""{SITE}[chain]
rpc = "http://127.0.0.1:8545"
id = 7
[payments]
resources = ["{{site}}/reports"]
asset = "0x{"c" * 40}"
name = "Dollar"
version = "1"
most = 10
per_run = 100
holds = 1000
"""
LISTED = f"""{NODE}[erc8004]
identity = "0x{"d" * 40}"
agent = 22
"""
COMPILER = '[compiler]\ncommand = ["/opt/tc/cc"]\n'
ALWAYS = {"qa_report"}
LOOKING = (
    *("qa-fuzz", "qa-mcp", "qa-pay", "qa-perf", "qa-registry", "qa-retest", "qa-security", "qa-smoke"),
    *("qa-ux", "qa-watch"),
)
PAGES = {"qa_fetch", "qa_account", "qa_browse"}
PAGE = (ROOT / "docs/platforms.md").read_text("utf-8")


def profile(text: str, **top: str) -> Platform:
    head = "".join(f'{key} = "{value}"\n' for key, value in {"name": "one", **top}.items())
    return parse(Platform, head + text, file="one.toml")


@pytest.mark.parametrize(
    ("text", "log", "named", "targets", "tools"),
    [
        ("", "file:one", set(), (), set()),
        (SITE, "file:one", {"site"}, ("site",), PAGES),
        (AGENTS, "file:one", {"proxy", "agents"}, ("proxy",), {*PAGES, "qa_call"}),
        (WIRE, "file:one", {"site", "agents"}, ("site",), {*PAGES, "qa_call"}),
        (MCP, "file:one", {"site", "mcp"}, ("site",), {*PAGES, "qa_mcp"}),
        (PAID, "file:one", {"site", "chain", "payments"}, ("site", "node"), {*PAGES, "qa_pay"}),
        (LISTED, "file:one", {"chain", "registry"}, ("node",), {"qa_registry"}),
        (COMPILER, "file:one", {"compiler"}, (), {"qa_compile", "qa_fuzz"}),
        (NODE, "file:one", {"chain"}, ("node",), set()),
        (DIAMOND, f"7:0x{'a' * 40}", {"chain", "diamond"}, ("node",), {"qa_chain", "qa_create"}),
    ],
    ids=["nothing", "site", "agents", "wire", "mcp", "payments", "registry", "compiler", "node", "diamond"],
)
def test_each_part_stands_alone(
    text: str, log: str, named: set[str], targets: tuple[str, ...], tools: set[str]
) -> None:
    one = profile(text)
    assert one.log_name == log
    assert not_configured(one).keys() == PARTS.keys() - named
    assert tuple(target.name for target in targets_of(one)) == targets
    able = Capabilities(one, browser="/bin/browser")
    assert {name for name, spec in TOOLS.items() if not able.unusable(spec)} == tools | ALWAYS
    assert EgressPolicy.of(one).rpc == one.chain.rpc


def test_what_is_missing_is_said_with_its_keys() -> None:
    said = not_configured(profile(SITE))
    assert said["faces"] == "not configured: set web.face to look at the public pages of names"
    assert in_short(profile(SITE)) == "site http://127.0.0.1:8080, log file:one"
    assert in_short(profile(DIAMOND)) == f"chain 7, diamond 0x{'a' * 40}"


def test_a_log_on_another_contract_needs_no_diamond_and_has_a_name_of_its_own() -> None:
    assert profile(NODE, log=CONTRACT).log_name == f"7:0x{'b' * 40}"
    assert profile(NODE + ERC8004, log=AGENT).log_name == f"7:0x{'c' * 40}:22"
    for one in (profile(NODE, log=CONTRACT), profile(NODE + ERC8004, log=AGENT)):
        assert (one.signs, one.logs_on_chain, one.logs_on_diamond) == (True, True, False)
    beside = profile(DIAMOND, log=CONTRACT)
    assert (beside.log_contract, beside.logs_on_diamond) == (f"0x{'b' * 40}", False)


@pytest.mark.parametrize(
    ("log", "text", "why"),
    [
        (CONTRACT, SITE, r"needs the table \[chain\] with rpc and id"),
        (AGENT, NODE, r"needs the table \[erc8004\] with identity, agent and clients"),
        (AGENT, NODE + ERC8004.replace('["0x' + "e" * 40 + '"]', "[]"), "clients"),
        ("contract:0x12", NODE, "log"),
    ],
)
def test_a_log_on_another_contract_names_what_it_needs(log: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        profile(text, log=log)


@pytest.mark.parametrize(
    ("log", "text", "file"),
    [("", SITE, "one"), ("file", DIAMOND, "one"), ("file:own", DIAMOND, "own"), ("", DIAMOND, None)],
)
def test_the_log_is_a_file_unless_there_is_a_diamond(
    tmp_path: Path, log: str, text: str, file: str | None
) -> None:
    found = profile(text, log=log).log_file(tmp_path)
    assert found == (tmp_path / "logs" / f"{file}.jsonl" if file else None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('name = "x"\nlog = "chain"\n', r'x\.toml: .*log = "chain" needs chain\.diamond'),
        ('name = "x"\nlog = "file:../x"\n', r"x\.toml: log: "),
        ('name = "../x"\n', r"x\.toml: name: "),
        (
            f'name = "x"\n{DIAMOND}log = "file:own"\n',
            r"chain\.log is now `log`, above the tables: log = \"file:own\"",
        ),
        ('name = "x"\n[chain]\nrpc = "http://127.0.0.1:1"\n', r"x\.toml: chain\.id: Field required"),
        ('name = "x"\n[chain]\nid = 7\n', r"x\.toml: chain\.rpc: Field required"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(Platform, text, file="x.toml")


@pytest.mark.parametrize(
    ("text", "idle"),
    [
        (SITE, {"qa-fuzz", "qa-mcp", "qa-pay", "qa-registry", "qa-watch"}),
        (AGENTS, {"qa-fuzz", "qa-mcp", "qa-pay", "qa-registry", "qa-watch"}),
        (COMPILER, {"qa-mcp", "qa-pay", "qa-perf", "qa-registry", "qa-security", "qa-ux", "qa-watch"}),
        (DIAMOND, {"qa-mcp", "qa-pay", "qa-registry", "qa-ux"}),
        ("", set(LOOKING)),
    ],
    ids=["site", "agents", "compiler", "diamond", "nothing"],
)
def test_a_persona_that_the_platform_has_nothing_for_is_idle(text: str, idle: set[str]) -> None:
    able = Capabilities(profile(text), browser="/bin/browser")
    shipped = roster(ROOT / "personas", bad_expectation=lambda *_: ())[0]
    assert {name for name, one in shipped.items() if why_idle(one.persona, able)} == idle


def test_why_it_is_idle_is_said_once_for_all_its_tools() -> None:
    (persona,) = roster(ROOT / "personas/qa-fuzz.md", bad_expectation=lambda *_: ())[0].values()
    assert why_idle(persona.persona, Capabilities(profile(SITE))).startswith(
        "none of its tools can be used here: the profile names no loader; the profile names no compiler;"
    )


@pytest.mark.anyio
async def test_a_platform_without_a_chain_has_no_node_to_ask() -> None:
    async with Rpc("") as rpc:
        await rpc.check_target(profile(SITE))
        with pytest.raises(WrongTarget, match="this platform has no chain"):
            await rpc.head()


@pytest.mark.parametrize("text", re.findall(r"```toml\n((?!\[accounts\]).*?)```", PAGE, re.DOTALL))
def test_the_page_shows_valid_profiles(text: str) -> None:
    """Those that are whole; tables of accounts are played in tests/accounts/test_each_way.py."""
    assert not_configured(parse(Platform, text, file="docs/platforms.md"))
