"""Constants of the chain that can be computed are computed here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pytest
from eth_utils.crypto import keccak

from fleet.drivers.explore.chain.diamond_map import CLAIMS
from fleet.oracles.chain import limits
from fleet.oracles.chain.views import INTERFACES
from fleet.triggers.chain.state import DIAMOND_CUT
from sandbox.chain import surface

STANDARDS: Mapping[str, tuple[str, ...]] = {
    "ERC-173": ("owner()", "transferOwnership(address)"),
    "the diamond's loupe": (
        *("facets()", "facetFunctionSelectors(address)"),
        *("facetAddresses()", "facetAddress(bytes4)"),
    ),
    "the diamond's cut": ("diamondCut((address,uint8,bytes4[])[],address,bytes)",),
    "ERC-721": (
        *("ownerOf(uint256)", "balanceOf(address)", "approve(address,uint256)", "getApproved(uint256)"),
        *("setApprovalForAll(address,bool)", "isApprovedForAll(address,address)"),
        *("transferFrom(address,address,uint256)", "safeTransferFrom(address,address,uint256)"),
        "safeTransferFrom(address,address,uint256,bytes)",
    ),
}


def selector(signature: str) -> str:
    return "0x" + keccak(text=signature)[:4].hex()


@pytest.mark.parametrize(
    ("name", "text", "less"),
    [
        ("implementation", "eip1967.proxy.implementation", 1),
        ("beacon", "eip1967.proxy.beacon", 1),
        ("proxiable", "PROXIABLE", 0),
        ("zeppelinos", "org.zeppelinos.proxy.implementation", 0),
    ],
)
def test_the_slots_of_proxies(name: str, text: str, less: int) -> None:
    assert surface.SLOTS[name] == f"{int.from_bytes(keccak(text=text), 'big') - less:064x}"


def test_every_slot_has_a_standard() -> None:
    assert set(surface.SLOTS) == {"implementation", "beacon", "proxiable", "zeppelinos"}


@pytest.mark.parametrize(
    ("constant", "signature"),
    [(surface.IMPLEMENTATION, "implementation()"), (limits.REGISTER, "register(string)")],
)
def test_selectors(constant: str, signature: str) -> None:
    assert constant == selector(signature)


def test_interfaces_are_their_functions_together() -> None:
    assert {name for name, _ in INTERFACES.values()} == set(STANDARDS)
    for identifier, (name, listed) in INTERFACES.items():
        selectors = [selector(one) for one in STANDARDS[name]]
        assert identifier == f"0x{reduce(int.__xor__, (int(one, 16) for one in selectors)):08x}"
        assert set(listed) <= set(selectors)
    assert set(CLAIMS) == {"0xffffffff", *INTERFACES}


def test_the_event_of_a_cut() -> None:
    signature = "DiamondCut((address,uint8,bytes4[])[],address,bytes)"
    assert "0x" + keccak(text=signature).hex() == DIAMOND_CUT
