"""Simulated calls on a real chain: the three ways agree, nothing is signed or sent, and nothing stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import pytest

from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.never import NEVER
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER, Deployment, deploy
from sandbox.chain import rpc, surface
from sandbox.chain.spelling import STRANGER
from tests.devnet.conftest import ALICE
from tests.drivers.simulating import asked, context, through_policy

pytestmark = pytest.mark.anyio

SUBMIT, RELEASE, SET_COST, CLAIM = "0xe341a623", "0x48e69e68", "0x637e9d5c", "0x89934d3a"
CUT = "".join(f"{word:064x}" for word in (0x60, 0, 0x80, 0, 0))
SIMULATE = frozenset({"eth_simulateV1"})
WAYS = {"simulate": frozenset[str](), "override": SIMULATE}


@dataclass(frozen=True)
class Place:
    rpc: Rpc
    url: str
    at: Deployment

    async def ask(self, **args: Any) -> dict[str, Any]:
        return await anyio.to_thread.run_sync(lambda: asked(context(self.at.diamond), args))


@pytest.fixture(scope="module")
async def place(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with Anvil(tmp_path_factory.mktemp("simulation") / "c.json") as anvil, Rpc(anvil.url) as chain:
        at = await deploy(chain)
        await node.invoke(chain, ALICE, at.diamond, "register", "alpha")
        yield Place(chain, anvil.url, at)


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_and_what_it_changes(way: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    through_policy(monkeypatch, place.url, lacks=WAYS[way])
    watch = ["feedbackCount", "ownerOfId(1)", "feedbackAt(0)", "0x8da5cb5b", "creditOf(stranger)"]
    found = await place.ask(simulate=SUBMIT, types=["string"], args=["hello"], watch=watch)
    assert (found["how"], found["by"], found["succeeded"]) == (way, STRANGER, True)
    assert found["before"] == [0, ALICE, None, "0x" + "0" * 24 + DEPLOYER[2:], 0]
    entry = found["after"][2]
    assert (entry[0], entry[2]) == (STRANGER, "hello")
    assert found["after"] == [1, ALICE, entry, found["before"][3], 0]
    assert await place.rpc.view(place.at.diamond, "feedbackCount") == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_caller_by_a_view_and_calls_before(
    way: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    through_policy(monkeypatch, place.url, lacks=WAYS[way])
    args: dict[str, Any] = {
        "simulate": SET_COST,
        "types": ["uint256"],
        "args": ["7"],
        "watch": ["registrationCost"],
    }
    refused = await place.ask(**args)
    assert (refused["succeeded"], refused["reverted"], refused["after"]) == (
        False,
        "LibDiamond: not owner",
        [0],
    )
    owned = await place.ask(**args, sender="owner")
    assert (owned["by"], owned["succeeded"], owned["before"], owned["after"]) == (DEPLOYER, True, [0], [7])
    again = await place.ask(simulate=CLAIM, setup=[[CLAIM, [], []]], watch=["creditOf(stranger)"])
    assert (again["succeeded"], again["before"], again["after"]) == (False, [str(10**19)], [str(10**19)])
    mine = await place.ask(
        simulate=RELEASE, types=["uint256"], args=[1], sender="ownerOfId(1)", watch=["nameOfId(1)"]
    )
    assert (mine["before"], mine["after"]) == (["alpha"], [""])


async def test_a_node_that_can_do_neither_says_whether_it_reverts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = through_policy(monkeypatch, place.url, lacks=SIMULATE)
    post = rpc._post

    def without_overrides(path: str, payload: dict[str, Any], deadline: Any) -> Any:
        if len(payload["params"]) > 2:
            return {"jsonrpc": "2.0", "id": payload["id"], "error": {"code": -32602, "message": "too many"}}
        return post(path, payload, deadline)

    monkeypatch.setattr(rpc, "_post", without_overrides)
    found = await place.ask(simulate=SET_COST, types=["uint256"], args=[7], watch=["registrationCost"])
    assert (found["how"], found["reverted"], found["before"]) == ("call", "LibDiamond: not owner", [])
    found = await place.ask(simulate=SUBMIT, types=["string"], args=["x"])
    assert (found["how"], found["succeeded"]) == ("call", True)
    found = await place.ask(simulate=CLAIM, setup=[[CLAIM, [], []]])
    assert (found["ok"], found["error_class"]) == (False, "http")
    assert set(real) <= {"eth_getBlockByNumber", "eth_call", "eth_simulateV1"}


async def test_no_simulation_leads_to_a_signature(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is never called, as a stranger and as the owner: reads alone, and nothing stays."""

    def refuse(*_: object) -> None:
        raise AssertionError("a simulation asked for a signature")

    passed = through_policy(monkeypatch, place.url)
    monkeypatch.setattr(rpc, "submit", refuse)
    monkeypatch.setattr(rpc, "token", refuse)
    state = [
        await place.rpc.call(method, [who, "latest"])
        for who in (DEPLOYER, ALICE, STRANGER)
        for method in ("eth_getTransactionCount", "eth_getBalance")
    ]
    block = await place.rpc.call("eth_blockNumber")
    for selector in NEVER.values():
        for sender in ("stranger", "owner", "ownerOfId(1)"):
            found = await place.ask(simulate=selector, types=["raw"], args=[CUT], sender=sender)
            assert (found["ok"], found["how"]) == (True, "simulate")
    assert set(passed) <= {"eth_getBlockByNumber", "eth_call", "eth_simulateV1"}
    assert await place.rpc.call("eth_blockNumber") == block
    assert state == [
        await place.rpc.call(method, [who, "latest"])
        for who in (DEPLOYER, ALICE, STRANGER)
        for method in ("eth_getTransactionCount", "eth_getBalance")
    ]


async def test_code_in_place_of_the_sender(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    through_policy(monkeypatch, place.url)
    stop = await place.ask(simulate=SUBMIT, types=["string"], args=["x"], code={place.at.diamond: "0x00"})
    assert (stop["succeeded"], stop["events"]) == (True, [])
    loud = await place.ask(simulate=SUBMIT, types=["string"], args=["x"], code={"sender": "0x00"})
    assert (loud["succeeded"], len(loud["events"])) == (True, 1)
    assert loud["events"][0].startswith(f"{place.at.diamond}:0x")


async def test_views_of_one_block_and_the_surface(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    through_policy(monkeypatch, place.url)
    views = ["ownerOfId(1)", "ownerOf(9)", "idOfName(alpha)", "isTaken()", "facetAddress(0x8da5cb5b)"]
    views.append("metadata(1,app)")
    found = await place.ask(watch=views)
    assert found["before"][:4] == [ALICE, None, 1, False]
    assert found["before"][5] == "0x"
    surface = (await place.ask(surface=True))["value"]
    assert [one["missing"] for one in surface] == [[]] * len(surface)
    (owner,) = [one for one in surface if "0x8da5cb5b" in one["selectors"]]
    assert owner["facet"] == found["before"][4]
    assert sorted(owner["selectors"]) == ["0x8da5cb5b", "0xf2fde38b"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({}, "/args/function: required"),
        ({"simulate": "register"}, "/args/simulate: expected a selector"),
        ({"simulate": "0x0102030405"}, "/args/simulate: expected a selector"),
        ({"simulate": SUBMIT, "types": ["string"]}, "/args/args: 0xe341a623 takes 1"),
        (
            {"simulate": SUBMIT, "types": ["string[2]"], "args": ["x"]},
            "/args/types: 'string[2]' is not a type",
        ),
        ({"simulate": SUBMIT, "types": ["uint7"], "args": [1]}, "/args/types: 'uint7' is not a type"),
        ({"simulate": SUBMIT, "types": ["raw"], "args": ["xyz"]}, "/args/args/0: expected 0x hex"),
        (
            {"simulate": SUBMIT, "types": ["string"], "args": [{"times": 2}]},
            "/args/args/0: expected a string",
        ),
        (
            {"simulate": SUBMIT, "types": ["string"], "args": [{"repeat": "é", "times": 40_000}]},
            "/args/args/0: a text of at most 65536 bytes",
        ),
        ({"simulate": SUBMIT, "sender": "nobody"}, "/args/sender: expected an address"),
        ({"simulate": SUBMIT, "wei": "-1"}, "/args/wei: expected a decimal"),
        ({"simulate": SUBMIT, "wei": "9" * 22}, "/args/wei: more than"),
        ({"simulate": SUBMIT, "setup": [[]]}, "/args/setup/0: expected selector"),
        ({"simulate": SUBMIT, "setup": [[SUBMIT, [], []]] * 5}, "/args/setup: more than 4"),
        ({"simulate": SUBMIT, "watch": ["owner"] * 25}, "/args/watch: more than 24"),
        ({"watch": ["owner"] * 49}, "/args/watch: more than 48"),
        ({"watch": ["nonsense"]}, "/args/watch/0: not one of"),
        ({"watch": ["clearFeedback()"]}, "/args/watch/0: not one of"),
        ({"watch": ["owner; x"]}, "/args/watch/0: expected a view"),
        ({"simulate": SUBMIT, "code": {"x": "0x00"}}, "/args/code/x: expected an address"),
        ({"simulate": SUBMIT, "code": {"sender": "00x"}}, "/args/code/sender: expected 0x hex"),
    ],
)
def test_mistakes_are_answers_before_any_traffic(
    args: dict[str, Any], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("traffic")

    monkeypatch.setattr(rpc, "_post", refuse)
    answer = asked(context("0x" + "d1" * 20), args)
    assert (answer["ok"], answer["error_class"]) == (False, "bad_request")
    assert answer["error"].startswith(error)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("8063010203041461001057", ("0x01020304",)),  # solc: DUP1 PUSH4 EQ
        ("63010203048114", ("0x01020304",)),  # PUSH4 DUP2 EQ
        ("630102030418", ("0x01020304",)),  # vyper: PUSH4 XOR
        ("806301020304116100105763050607081461001057", ("0x05060708",)),  # GT splits, EQ decides
        ("6763010203041400000014", ()),  # inside what a PUSH8 pushes
        ("6301", ()),
        ("", ()),
    ],
)
def test_a_dispatcher(code: str, found: tuple[str, ...]) -> None:
    assert surface.dispatched(bytes.fromhex(code)) == found


def test_a_hostile_code_is_read_in_bounds() -> None:
    code = b"".join(b"\x80\x63" + at.to_bytes(4, "big") + b"\x14" for at in range(5_000))
    assert len(surface.dispatched(code)) == surface.MAX_FUNCTIONS
