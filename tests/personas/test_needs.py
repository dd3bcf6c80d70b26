"""What a probe presupposes: by its steps, by its words, and by what its author adds."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.config import ChainSection, Platform, WebSection
from fleet.config.compiler import CompilerSection
from fleet.config.platform import MetadataSection
from fleet.jail.locate import BROWSER
from fleet.personas.model import Probe, Step
from fleet.personas.needs import bad_need, needs_of
from fleet.runs.call.targets import Capabilities
from sandbox.chain.contract import VIEWS

CHAIN = ChainSection(rpc="http://127.0.0.1:9", id=7, diamond="0x" + "11" * 20)
BARE = Platform(name="bare", chain=CHAIN)
WHOLE = Platform(
    name="whole",
    chain=CHAIN,
    web=WebSection(
        site="http://s", face="http://{name}.f/", proxy="http://p", model="m", auth_scope="s", route=""
    ),
    compiler=CompilerSection(command=("cc",), loader=("ld",), language="rustlite", no_entry_code="E1"),
    metadata=MetadataSection(app="m.app", face="m.face", others=("m.html",)),
    targets={"agent": "claude", "guide": "{site}/llms.txt"},
    facts={"price": 3, "streams": False},
)


def probe(tool: str, args: dict[str, Any], expect: str = "result.ok", *needs: str) -> Probe:
    step = Step(tool=tool, args=args)
    return Probe(id="p", severity="low", steps=(step,), expect=expect, finding="something", needs=needs)


@pytest.mark.parametrize(
    ("one", "needs"),
    [
        (probe("qa_fetch", {"url": "{site}/x"}), ("site",)),
        (probe("qa_fetch", {"url": "{face:docs}"}), ("faces",)),
        (probe("qa_fetch", {"url": "{face:{target:page}}"}), ("faces", "target:page")),
        (probe("qa_fetch", {"url": "{target:guide}", "control": "{proxy}/"}), ("target:guide", "proxy")),
        (probe("qa_compile", {"source": "x"}), ("compiler",)),
        (
            probe("qa_chain", {"function": "metadata", "args": [1, "m.html"]}),
            ("view:metadata", "metadata:m.html", "diamond"),
        ),
        (
            probe("qa_chain", {"function": "metadata", "args": [1, "0x" + "11" * 32]}),
            ("view:metadata", "diamond"),
        ),
        (probe("qa_compile", {"module_hex": "00"}), ("compiler.loader",)),
        (probe("qa_call", {"target": "{target:agent}", "message": "m"}), ("target:agent", "calls")),
        (probe("qa_chain", {"function": "owner"}), ("view:owner", "diamond")),
        (
            probe("qa_chain", {"function": "owner"}, "result.value < facts.price"),
            ("view:owner", "diamond", "fact:price"),
        ),
        (
            probe("qa_fetch", {"url": "{site}"}, "result.ok", "language:rustlite"),
            ("site", "language:rustlite"),
        ),
    ],
)
def test_what_a_probe_needs(one: Probe, needs: tuple[str, ...]) -> None:
    assert needs_of(one) == needs


def test_a_name_that_could_not_be_given_back_is_never_minted() -> None:
    needs = needs_of(probe("qa_create", {"name": "{name}"}))
    assert "call:releaseName" in needs
    selectors = frozenset(one.selector for one in VIEWS.values()) | {"0xf2c298be"}  # all but the release
    assert Capabilities(WHOLE, selectors).missing(needs) == "the diamond does not offer releaseName"


@pytest.mark.parametrize(
    ("need", "why"),
    [
        ("site", "the profile names no site"),
        ("faces", "the profile names no faces"),
        ("proxy", "the profile names no proxy"),
        ("calls", "the profile states neither [agents] nor web.proxy, web.model, web.auth_scope, web.route"),
        ("metadata:app", "the profile names no metadata key 'app'"),
        ("metadata:face", "the profile names no metadata key 'face'"),
        ("code:no_entry", "the profile states no no_entry_code"),
        ("compiler", "the profile names no compiler"),
        ("compiler.loader", "the profile names no loader"),
        ("target:agent", "the profile has no target for 'agent'"),
        ("fact:price", "the profile does not state 'price'"),
        ("language:rustlite", "the compiler's language is not stated to be 'rustlite'"),
        ("view:creditOf", "the diamond does not offer creditOf"),
        ("call:claimDaily", "the diamond does not offer claimDaily"),
    ],
)
def test_what_is_missing_is_named(need: str, why: str) -> None:
    assert bad_need(need) == ""
    assert Capabilities(BARE, frozenset()).missing([need]) == why
    everything = frozenset(one.selector for one in VIEWS.values()) | {"0x89934d3a"}
    assert Capabilities(WHOLE, everything).missing([need]) == ""


def test_a_browser_is_of_this_machine_and_not_of_a_profile() -> None:
    assert bad_need("browser") == ""
    assert needs_of(probe("qa_browse", {"url": "{site}/"})) == ("site", "browser")
    assert Capabilities(BARE, browser="/usr/bin/x").missing(["browser"]) == ""
    assert BROWSER in Capabilities(WHOLE, browser="").missing(["browser"])


def test_a_promise_that_is_stated_to_be_false_is_not_met() -> None:
    assert Capabilities(WHOLE).missing(["fact:streams"]) == "the profile does not state 'streams'"


def test_a_diamond_that_cannot_say_what_it_offers_is_asked_each_time() -> None:
    assert (Capabilities(BARE).missing(["view:creditOf"]), Capabilities(BARE).lacks) == ("", ())
    assert "creditOf" in Capabilities(BARE, frozenset()).lacks


@pytest.mark.parametrize(
    "need",
    ["sites", "view:", "view:nothing", "call:owner", "view:register", "thing:x", "target:", "", "code:x"],
)
def test_what_is_no_need_is_refused(need: str) -> None:
    assert repr(need) in bad_need(need)
