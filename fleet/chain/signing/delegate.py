"""The code that acts for a sponsored throwaway key (EIP-7702): which it is, where, how it is called. Pure.

`fleet/devnet/contracts/SponsoredKey.sol`, with one sponsor's address in it, the only caller that it obeys.
It is deployed by the deterministic deployer that most chains have, so its address follows from its code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fleet.chain.node.abi import Function, function_of
from fleet.chain.node.digest import ZERO_ADDRESS, keccak256
from fleet.chain.signing.tx import UnsignedTx

DELEGATE = Path(__file__).with_name("SponsoredKey.json")
DEPLOYER = "0x4e59b44847b379578588920ca78fbf26c0b4956c"
"""Deploys what it is sent by CREATE2: https://github.com/Arachnid/deterministic-deployment-proxy."""
DEPLOY_GAS = 600_000
POINTER = "0xef0100"
"""Before the address of its delegate: the code of a key that has one."""
OVERHEAD_GAS = 80_000
"""Of a sponsored call, above its own and the 1/64 that each call keeps back: an authorisation 25,000, the
number of the first call 22,100, its arguments."""
_SPONSOR = bytes.fromhex("9fa452a3f3fb3e8ac81732ce6feea731fcdc13b5")
_SALT = bytes(32)


@dataclass(frozen=True, slots=True)
class _Artifact:
    creation: bytes
    runtime: bytes
    run: Function


@cache
def _artifact() -> _Artifact:
    found = json.loads(DELEGATE.read_text("utf-8"))
    (run,) = [function_of(one) for one in found["abi"] if one.get("name") == "run"]
    return _Artifact(bytes.fromhex(found["bytecode"][2:]), bytes.fromhex(found["runtime"][2:]), run)


def code_of(sponsor: str) -> bytes:
    """The delegate's code, as the chain must have it."""
    return _artifact().runtime.replace(_SPONSOR, bytes.fromhex(sponsor[2:]))


def deployment(sponsor: str) -> bytes:
    """What the deployer is sent."""
    return _SALT + _artifact().creation.replace(_SPONSOR, bytes.fromhex(sponsor[2:]))


def delegate_of(sponsor: str) -> str:
    """Where the deployer puts it (EIP-1014)."""
    init = keccak256(deployment(sponsor)[len(_SALT) :])
    return "0x" + keccak256(b"\xff" + bytes.fromhex(DEPLOYER[2:]) + _SALT + init)[12:].hex()


def call_data(number: int, to: str, data: bytes) -> bytes:
    """A key's call of this number, for its delegate."""
    return _artifact().run.encode(number, to, data)


def gas_of(gas: int) -> int:
    """The gas limit with which a call of this limit of its own is sponsored."""
    return gas + gas // 32 + OVERHEAD_GAS


@dataclass(frozen=True, slots=True)
class SponsoredCall:
    """What a sponsor's transaction makes a key do."""

    number: int
    to: str
    data: bytes


def call_in(data: bytes) -> SponsoredCall | None:
    """The call in this calldata; None when it is not one for the delegate, in canonical encoding."""
    run = _artifact().run
    if data[:4] != run.selector:
        return None
    try:
        number, to, inner = run.arguments(data)
    except ValueError:
        return None
    return SponsoredCall(number, to, inner)


def acted(unsigned: UnsignedTx, sender: str) -> tuple[UnsignedTx, str]:
    """The transaction that the contract saw, and from whom: the key's own, where a sponsor sent it."""
    if (call := call_in(unsigned.data)) is None:
        return unsigned, sender
    return replace(unsigned, to=call.to, data=call.data, authorizations=()), unsigned.to


def is_clearing(unsigned: UnsignedTx) -> bool:
    """Whether it only takes a key's delegate away."""
    return not unsigned.data and any(one.address == ZERO_ADDRESS for one in unsigned.authorizations)
