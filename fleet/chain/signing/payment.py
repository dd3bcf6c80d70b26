"""Payments by EIP-3009: what may be authorised, and the digest that is signed. Pure.

An authorisation is made here from its parts, never taken from a caller: for the profile's token on the
profile's chain, to whom a quote names or back to the purse, and valid for a short time. A quote is the word
of the platform that is tested.
"""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from fleet.chain.node import codec
from fleet.chain.node.digest import ZERO_ADDRESS, is_address, keccak256
from fleet.chain.ports import Authorisation, PaymentQuote, PaymentRequest
from fleet.chain.signing.policy import RUNGS, paused
from fleet.config.payments import PaymentsSection
from fleet.errors import Refused

VALID_S = 120
"""Longest that an authorisation holds, in seconds."""
PAST_S = 3_600
"""Longest ago that one may have ended which is signed to be refused."""
MOVES = keccak256(
    b"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
)[:4]
"""What an authorisation is good for: on a never-list, none is signed."""
_DOMAIN = keccak256(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
_TRANSFER = keccak256(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    b"bytes32 nonce)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFacts:
    """`rung` is the dial's current word; `left` the units that the run may still sign for; `held` what the
    purse holds by the node, None before it was asked; `node_chain_id` likewise."""

    rung: str
    never: Container[bytes]
    limits: PaymentsSection
    chain_id: int
    purse: str
    left: int
    held: int | None = None
    node_chain_id: int | None = None


def check(asked: PaymentRequest, facts: PaymentFacts) -> None:
    """Return if this may be authorised; raise Refused with the name of the rule if not."""
    limits, quote = facts.limits, asked.quote
    if facts.rung == "stop":
        raise paused()
    if MOVES in facts.never:
        raise Refused(
            "transferWithAuthorization is on the configured never-list: nothing is paid", rule="never"
        )
    if facts.rung not in RUNGS[1:]:
        raise Refused("the dial is at observe: a payment is not signed", rule="dial")
    if facts.node_chain_id not in (None, facts.chain_id):
        raise Refused(f"the node is on chain {facts.node_chain_id}, not {facts.chain_id}", rule="chain")
    _ours(quote, facts)
    if not 0 < quote.amount <= limits.most:
        raise Refused(f"{quote.amount} units are quoted; payments.most is {limits.most}", rule="amount")
    if not 0 < asked.value <= quote.amount:
        raise Refused(f"{asked.value} units are not within the quote of {quote.amount}", rule="amount")
    if not -PAST_S <= asked.seconds <= VALID_S:
        raise Refused(f"an authorisation is valid for at most {VALID_S} s", rule="validity")
    if asked.value > facts.left:
        raise Refused(f"this run may sign for {facts.left} units more; see payments.per_run", rule="budget")
    if facts.held is not None and facts.held > limits.holds:
        raise Refused(
            f"the purse holds {facts.held} units; payments.holds is {limits.holds}",
            rule="purse",
            remedy="take out what is too much: the purse is all that a platform could take",
        )


def _ours(quote: PaymentQuote, facts: PaymentFacts) -> None:
    """Refused for terms of another token, network or payee than the profile's."""
    limits = facts.limits
    networks = {f"eip155:{facts.chain_id}", limits.network} - {""}
    if quote.scheme != "exact" or quote.network not in networks:
        raise Refused(
            f"{quote.scheme} on {quote.network} is not `exact` on eip155:{facts.chain_id}", rule="network"
        )
    if limits.asset is None or quote.asset.lower() != limits.asset.lower():
        raise Refused(f"{quote.asset} is not the token of payments.asset", rule="asset")
    payee = limits.payee or quote.payee
    if not is_address(quote.payee) or quote.payee == ZERO_ADDRESS or quote.payee.lower() != payee.lower():
        raise Refused(f"{quote.payee} is not who is paid here", rule="payee")


def nonce_of(quote: PaymentQuote) -> bytes:
    """By chance, but where a challenge binds its payment. So two that are signed for one have one nonce: the
    token takes the first, and both count as paid."""
    return keccak256(quote.bound.encode()) if quote.bound else os.urandom(32)


def authorisation(asked: PaymentRequest, purse: str, now: int, nonce: bytes) -> Authorisation:
    """What is signed, at a time in Unix seconds."""
    payee = purse if asked.own else asked.quote.payee.lower()
    start = now - PAST_S - VALID_S if asked.seconds < 0 else 0
    return Authorisation(purse, payee, asked.value, start, now + asked.seconds, nonce)


def domain(limits: PaymentsSection, chain_id: int) -> bytes:
    """The EIP-712 domain of the token, as the profile describes it."""
    name, version = keccak256(limits.name.encode()), keccak256(limits.version.encode())
    kinds = ["bytes32", "bytes32", "bytes32", "uint256", "address"]
    return keccak256(codec.encode(kinds, [_DOMAIN, name, version, chain_id, str(limits.asset)]))


def balance(limits: PaymentsSection, purse: str) -> tuple[str, list[object]]:
    """The read of what the purse holds."""
    data = "0x70a08231" + purse[2:].rjust(64, "0")  # balanceOf(address)
    return "eth_call", [{"to": limits.asset, "data": data}, "latest"]


def separator(limits: PaymentsSection) -> tuple[str, list[object]]:
    """The read of the domain that the token itself states."""
    return "eth_call", [{"to": limits.asset, "data": "0x3644e515"}, "latest"]  # DOMAIN_SEPARATOR()


def digest(one: Authorisation, limits: PaymentsSection, chain_id: int) -> bytes:
    """The EIP-712 digest of an authorisation, for this token on this chain."""
    struct = codec.encode(
        ["bytes32", "address", "address", "uint256", "uint256", "uint256", "bytes32"],
        [_TRANSFER, one.payer, one.payee, one.value, one.valid_after, one.valid_before, one.nonce],
    )
    return keccak256(b"\x19\x01" + domain(limits, chain_id) + keccak256(struct))


def carried(one: Authorisation, signature: str) -> dict[str, Any]:
    """An authorisation and its signature as x402 writes them: web3, which sellers use, takes addresses in the
    spelling of EIP-55 alone."""
    authorisation = {
        "from": to_checksum_address(one.payer),
        "to": to_checksum_address(one.payee),
        "value": str(one.value),
        "validAfter": str(one.valid_after),
        "validBefore": str(one.valid_before),
        "nonce": f"0x{one.nonce.hex()}",
    }
    return {"authorization": authorisation, "signature": signature}
