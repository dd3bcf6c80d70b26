"""The functions of a contract: by its loupe, or by its code, that of its implementation for a proxy."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from sandbox.chain import evm_types, rpc
from sandbox.errors import Deadline, Failure
from sandbox.spec import Context

MAX_FUNCTIONS = 512
_PUSH1, _PUSH4, _PUSH32 = 0x60, 0x63, 0x7F
_COMPARES = frozenset((0x14, 0x18, 0x03))
"""EQ of solc; XOR and SUB of other compilers."""
_DUPS = range(0x80, 0x90)
_DELEGATECALL = 0xF4


def fingerprint(code: bytes) -> str:
    """The identity of a code, short."""
    return hashlib.sha256(code).hexdigest()[:16]


def dispatched(code: bytes) -> tuple[str, ...]:
    """Selectors that the code compares its calldata with, in its order.

    `PUSH4 selector` and a comparison, with at most one DUP between them: how solc and vyper write a
    dispatcher. A constant that is compared elsewhere may be among them.
    """
    found: dict[str, None] = {}
    operations = list(_operations(code))
    for at, (opcode, operand) in enumerate(operations):
        if opcode != _PUSH4:
            continue
        after = [one for one, _ in operations[at + 1 : at + 3]]
        if after[:1] and (after[0] in _COMPARES or (after[0] in _DUPS and set(after[1:]) & _COMPARES)):
            found["0x" + operand.hex()] = None
        if len(found) == MAX_FUNCTIONS:
            break
    return tuple(found)


def is_whole(code: bytes) -> bool:
    """Whether a contract has all of its functions in its own code: it hands no call on to another's."""
    return all(opcode != _DELEGATECALL for opcode, _ in _operations(code))


def _operations(code: bytes) -> list[tuple[int, bytes]]:
    """Opcodes with what they push."""
    operations, at = [], 0
    while at < len(code):
        opcode = code[at]
        size = opcode - _PUSH1 + 1 if _PUSH1 <= opcode <= _PUSH32 else 0
        operations.append((opcode, code[at + 1 : at + 1 + size]))
        at += 1 + size
    return operations


MAX_FACETS = 64
SLOTS = {
    "implementation": "360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",  # EIP-1967
    "proxiable": "c5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7",  # EIP-1822
    "zeppelinos": "7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3",  # before EIP-1967
    "beacon": "a3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",  # EIP-1967
}
"""Where proxies keep what they stand for: of several, the first that is set."""
_READS_SLOTS = (
    "0x"
    + "".join(f"7f{slot}5460{32 * place:02x}52" for place, slot in enumerate(SLOTS.values()))
    + f"60{32 * len(SLOTS):02x}6000f3"
)
"""Code that, put at a proxy's address for one call, gives these slots."""
IMPLEMENTATION = "0x5c60da1b"
"""`implementation()`, of a beacon."""
_MINIMAL = (("363d3d373d3d3d363d73", "5af43d82803e903d91602b57fd5bf3"), ("363d3d373d3d3d363d71", "5af4"))
"""EIP-1167 before and after the address; the second is of an address with two zero bytes less."""
_GAS = hex(1_000_000)


def surface(ctx: Context, block: str, deadline: Deadline) -> list[dict[str, Any]]:
    """Of each facet: its address, identity and size of its code, its selectors, those of them that are not in
    its code, and what the code says of each function (evm_types.py)."""
    try:
        (facets,) = rpc.view(ctx, "facets", deadline=deadline, block=block)
        listed: list[Any] = facets if isinstance(facets, list) else []
    except rpc.Reverted:
        listed = [(address, []) for address in _without_loupe(ctx, block, deadline)]
    except Failure as failure:
        if failure.error_class != "garbage":  # not a list of facets: an answer of something else
            raise
        listed = [(address, []) for address in _without_loupe(ctx, block, deadline)]
    found = [
        (address, selectors, rpc.code_at(address, block, deadline))
        for address, selectors in listed[:MAX_FACETS]
    ]
    by_code = evm_types.analysed([code for _, _, code in found])
    return [
        _facet(address, selectors, code, functions)
        for (address, selectors, code), functions in zip(found, by_code, strict=True)
    ]


def _facet(
    address: str, selectors: list[bytes], code: bytes, functions: dict[str, evm_types.CodeFunction]
) -> dict[str, Any]:
    known = dispatched(code)
    names = ["0x" + one.hex() for one in selectors[:MAX_FUNCTIONS]] or list(known)
    return {
        "facet": address,
        "code": fingerprint(code),
        "size": len(code),
        "selectors": names,
        "missing": [one for one in names if one not in known],
        "functions": {one: asdict(functions[one]) for one in names if one in functions},
    }


def _without_loupe(ctx: Context, block: str, deadline: Deadline) -> list[str]:
    """The contract itself, and what it stands for if it is a proxy."""
    behind = _minimal(rpc.code_at(ctx.diamond, block, deadline)) or _by_slots(ctx, block, deadline)
    return [ctx.diamond, *([behind] if behind and behind != ctx.diamond.lower() else [])]


def _minimal(code: bytes) -> str:
    """The implementation of a minimal proxy (EIP-1167); "" for any other code."""
    for before, after in _MINIMAL:
        start, end = bytes.fromhex(before), bytes.fromhex(after)
        size = start[-1] - 0x5F
        if code.startswith(start) and code[len(start) + size :].startswith(end):
            return "0x" + code[len(start) : len(start) + size].rjust(20, b"\0").hex()
    return ""


def _by_slots(ctx: Context, block: str, deadline: Deadline) -> str:
    """The implementation by a proxy's known slots; "" for none, or a node without overrides."""
    asked = {"from": rpc.ZERO, "to": ctx.diamond, "data": "0x", "gas": _GAS}
    try:
        found = rpc.answered("eth_call", [asked, block, {ctx.diamond: {"code": _READS_SLOTS}}], deadline)
    except Failure as failure:
        if failure.error_class not in ("http", "refused"):
            raise
        return ""
    if found is None or len(found) != 32 * len(SLOTS):
        return ""
    *direct, beacon = (_address(found[at : at + 32]) for at in range(0, len(found), 32))
    behind = next(filter(None, direct), "")
    if not behind and beacon:
        said = rpc.answered("eth_call", [{"to": beacon, "data": IMPLEMENTATION}, block], deadline)
        behind = _address(said or b"")
    return behind


def _address(word: bytes) -> str:
    """A word as an address; "" for anything else."""
    return "0x" + word[12:].hex() if len(word) == 32 and not any(word[:12]) and any(word[12:]) else ""
