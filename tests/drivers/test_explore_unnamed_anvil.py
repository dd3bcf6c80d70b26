"""The chain's explorer on a contract whose words no dictionary has: types by its code, on a real node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import pytest

from fleet.chain.node import codec
from fleet.chain.node.abi import Function
from fleet.chain.node.abi_file import read_functions
from fleet.chain.node.digest import keccak256
from fleet.chain.node.facets import offered
from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import DEPLOYER
from fleet.oracles.chain import fourbyte
from fleet.oracles.model import Violation
from tests.devnet.conftest import ALICE, BOB
from tests.drivers.simulating import CONTRACTS, abi_of, asked, compiled, context, explored, through_policy

pytestmark = pytest.mark.anyio

MINIMAL = "3d602d80600a3d3981f3363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3"
"""What creates a minimal proxy (EIP-1167)."""


def sel(signature: str) -> str:
    return fourbyte.selector_of(signature)


FAULTS: Mapping[str, tuple[int, str, str]] = {
    # what it is: its bit, the oracle, words of the title
    "a pennant that anyone hoists": (
        1,
        "held-by-another",
        f"{sel('hoistPennant(uint256,bytes32)')} writes {sel('pennantAt(uint256)')}(",
    ),
    "a pole that anyone hands on": (
        2,
        "held-by-another",
        f"{sel('handPole(uint256,address)')} gives {sel('bearerAt(uint256)')}(1) from",
    ),
    "a tide that anyone turns": (
        4,
        "held-by-another",
        f"{sel('turnTide(uint256)')} writes {sel('tideNow()')}(), held by",
    ),
    "a limit that is one off": (
        8,
        "constant-exceeded",
        f"{sel('cry(string)')} accepts 81 bytes; {sel('loudestCry()')}() is 80",
    ),
    "a mark that leads to another pole": (
        16,
        "lookups-disagree",
        f"{sel('markAt(uint256)')}(4) is ",
    ),
    "two views of one variable": (32, "lookups-disagree", f"{sel('wardAt(uint256)')}("),
}


@dataclass(frozen=True)
class Field:
    """One chain, on which contracts are created."""

    rpc: Rpc
    url: str
    codes: Mapping[str, bytes]

    async def contract(self, faults: int = 0) -> str:
        """A contract with five poles."""
        code = self.codes["Pennants"] + codec.encode(["uint256"], [faults])
        return await self.planted(await node.create(self.rpc, DEPLOYER, code))

    async def proxy(self, kind: str, behind: str) -> str:
        """A proxy of this kind before a contract."""
        return await node.create(self.rpc, DEPLOYER, self.codes[kind] + codec.encode(["address"], [behind]))

    async def planted(self, contract: str) -> str:
        for number, who in enumerate((ALICE, BOB, ALICE, BOB, BOB)):
            words = codec.encode(["bytes32"], [bytes([number + 1]) * 32])
            await node.transact(self.rpc, who, contract, keccak256(b"plantPole(bytes32)")[:4] + words)
        return contract


@pytest.fixture(scope="module")
async def field(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    sources = [(CONTRACTS / name).read_text("utf-8") for name in ("Pennants.sol", "Proxies.sol")]
    codes = {name: code for source in sources for name, (code, _) in compiled(source).items()}
    async with Anvil(tmp_path_factory.mktemp("field") / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        yield Field(rpc, anvil.url, codes)


async def found_on(contract: str, **more: Any) -> list[Violation]:
    violations, _, _ = await anyio.to_thread.run_sync(lambda: explored(contract, **more))
    return violations


async def test_a_clean_contract_is_silent_and_not_asked_twice(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = await field.contract()
    through_policy(monkeypatch, field.url)
    found, calls, state = await anyio.to_thread.run_sync(lambda: explored(contract))
    assert found == []
    _, again, _ = await anyio.to_thread.run_sync(lambda: explored(contract, state))
    assert not [one for one in again if one.get("simulate")]
    assert len(calls) > len(again)


@pytest.mark.parametrize("bits", [61, 2])  # the guard of a pole is left where its pennant is open
async def test_one_fault_is_one_finding(bits: int, field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = {fault: one for fault, one in FAULTS.items() if one[0] & bits}
    contract = await field.contract(bits)
    through_policy(monkeypatch, field.url)
    found = await found_on(contract)
    assert len(found) == len(planted)
    for _, oracle, words in planted.values():
        assert [one.oracle for one in found if words in one.sighting.title] == [oracle]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Function]:
    """The functions of Pennants by the file that a compiler wrote."""
    path = tmp_path_factory.mktemp("abi") / "Pennants.json"
    path.write_text(abi_of((CONTRACTS / "Pennants.sol").read_text("utf-8"), "Pennants"))
    return read_functions(path)


@pytest.mark.parametrize("bits", [0, 61, 2])
async def test_by_its_abi_the_same_is_found_and_named(
    bits: int, field: Field, named: Mapping[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = [one for one in FAULTS.values() if one[0] & bits]
    contract = await field.contract(bits)
    through_policy(monkeypatch, field.url)
    found = await found_on(contract, functions=named)
    assert len(found) == len(planted)
    titles = sorted(one.sighting.title for one in found)
    for _, oracle, words in planted:
        for selector, function in named.items():
            words = words.replace(selector, function.name)
        words = words.replace(" accepts", "() accepts").replace(" writes", "() writes")
        words = words.replace(" gives", "() gives")
        assert [one.oracle for one in found if words in one.sighting.title] == [oracle], titles


UNKNOWN = "3d602e80600a3d3981f35b363d3d373d3d3d363d73{}5af43d82803e903d91602c57fd5bf3"
"""What creates a proxy that nothing knows for one: a minimal one behind one more instruction."""


async def test_behind_a_proxy_that_nothing_knows_only_the_abi_helps(
    field: Field, named: Mapping[str, Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = await field.contract(2)
    proxy = await node.create(field.rpc, DEPLOYER, bytes.fromhex(UNKNOWN.format(behind[2:])))
    contract = await field.planted(proxy)
    through_policy(monkeypatch, field.url)
    assert await found_on(contract) == []
    _, calls, _ = await anyio.to_thread.run_sync(lambda: explored(contract, functions=named))
    assert {one for one, function in named.items() if function.writes} <= {
        one.get("simulate") for one in calls
    }
    assert "handPole(uint256,address)" in {name for one in calls for name in one.get("named", ())}


async def test_what_a_contract_offers_is_known_without_a_loupe(
    field: Field, named: Mapping[str, Function]
) -> None:
    """By its own code, unless that hands calls on; else by its ABI alone. So nothing else is asked of it."""
    contract = await field.contract()
    proxy = await node.create(field.rpc, DEPLOYER, bytes.fromhex(UNKNOWN.format(contract[2:])))
    own = await offered(field.rpc, contract)
    assert own is not None
    assert named.keys() <= own
    assert sel("feedbackCount()") not in own
    assert await offered(field.rpc, proxy) is None
    assert await offered(field.rpc, proxy, named) == frozenset(named)


PROXIES = ("ERC1967Proxy", "TransparentUpgradeableProxy", "UniversalProxy", "OlderProxy", "BeaconProxy")


@pytest.mark.parametrize("kind", PROXIES)
async def test_behind_a_proxy(kind: str, field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = await field.planted(await field.proxy(kind, await field.contract(2)))
    through_policy(monkeypatch, field.url)
    (one,) = await found_on(contract)
    assert " gives " in one.sighting.title


async def test_what_each_contract_offers(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are those of what it stands for: by its code (EIP-1167), and by each known slot."""
    behind = await field.contract()
    minimal = bytes.fromhex(MINIMAL.format(behind[2:]))
    proxies = [await node.create(field.rpc, DEPLOYER, minimal)]
    proxies += [await field.proxy(kind, behind) for kind in PROXIES]
    through_policy(monkeypatch, field.url)
    (own,) = await surface_of(behind)
    assert own["facet"] == behind
    assert own["functions"][sel("handPole(uint256,address)")]["arguments"] == "uint256,address"
    assert own["functions"][sel("loudestCry()")]["mutability"] == "pure"
    for proxy in proxies:
        shell, found = await surface_of(proxy)
        assert (shell["facet"], shell["size"] > 0) == (proxy, True)
        assert found == own


@pytest.mark.parametrize("kind", PROXIES)
async def test_a_token_behind_a_proxy_is_asked_as_the_token(
    kind: str, field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await node.create(field.rpc, DEPLOYER, field.codes["Token"])
    proxy = await field.proxy(kind, token)
    through_policy(monkeypatch, field.url)
    (own,) = await surface_of(token)
    _, found = await surface_of(proxy)
    assert found["selectors"] == own["selectors"]
    names = ("mint(uint256)", "transfer(address,uint256)", "balanceOf(address)", "totalSupply()")
    assert {sel(name) for name in names} <= set(found["selectors"])
    _, calls, _ = await anyio.to_thread.run_sync(lambda: explored(proxy))
    asked_of = {str(one["simulate"]) for one in calls if one.get("simulate")}
    assert {sel("mint(uint256)"), sel("transfer(address,uint256)")} <= asked_of


async def test_a_contract_that_stands_for_nothing_is_itself(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = await field.proxy("ERC1967Proxy", "0x" + "00" * 20)
    through_policy(monkeypatch, field.url)
    assert [one["facet"] for one in await surface_of(nothing)] == [nothing]


async def surface_of(contract: str) -> list[dict[str, Any]]:
    found = await anyio.to_thread.run_sync(lambda: asked(context(contract), {"surface": True}))
    value: list[dict[str, Any]] = found["value"]
    return value
