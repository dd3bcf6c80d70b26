"""Calls of the diamond that are simulated by the node: nothing is signed, nothing is sent, nothing stays.

A simulation reads views, makes a call, and reads the views again, in the same block and on the same state, so
what differs is the call's effect. Every view is read twice before it: what differs there is unsteady by
itself, and is left out. Three ways, the first that the node offers:

    simulate   eth_simulateV1
    override   eth_call of code put at the sender's address, which makes the calls one after the other
    call       eth_call of the call alone: it succeeds or reverts, nothing else is seen
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.chain import rpc
from sandbox.errors import Deadline, Failure

BLOCK_GAS = 440_000_000
"""Most gas of one simulation; a block with less is not exceeded."""
READ_GAS = 4_000_000
CALL_GAS = 30_000_000
RICH = 10**24
"""Wei that the sender of a call with a value is given, for the simulation only."""
ORIGIN = "0x" + "0f" * 20
"""From where the code of `override` is called."""
MAX_EVENTS = 16
NAMES = " names the caller"
"""What follows an event that does, in topics or data."""
TELLER = "0x" + "7e" * 20
"""Where code that gives another address's balance is put for a simulation."""


def teller(address: str) -> str:
    """Code that gives the native coin of an address."""
    return f"0x73{address.removeprefix('0x')}315f5260205ff3"


@dataclass(frozen=True, slots=True)
class Message:
    """One call; `data` with its 0x."""

    sender: str
    to: str
    data: str
    value: int = 0


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The result of one call; `data` is the reason of a revert."""

    ok: bool
    data: bytes
    gas_used: int = 0
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of it: the call's own outcome, and each read before and after; None for one that reverted."""

    how: str
    call: CallOutcome
    before: tuple[bytes | None, ...] = ()
    after: tuple[bytes | None, ...] = ()


def simulate(
    setup: Sequence[Message],
    call: Message,
    reads: Sequence[Message],
    code: dict[str, str],
    deadline: Deadline,
) -> Simulation:
    """Simulate `setup`, then reads, `call`, and the reads again, at the latest block.

    `code` is put at these addresses. Failure when a call of `setup` reverts, or the node offers nothing.
    """
    messages = [*setup, *reads, *reads, call, *reads]
    block, limit = _block(deadline)
    gas = _gas(len(messages), len(setup) + 1, limit)
    for way in (_by_method, _by_code):
        found = way(messages, gas, code, block, deadline)
        if found is not None:
            return _split(found[0], found[1], len(setup), len(reads))
    if setup or code:
        raise Failure("http", "the node offers no simulation of several calls")
    return Simulation("call", _alone(call, block, deadline))


def _block(deadline: Deadline) -> tuple[str, int]:
    found = rpc.call("eth_getBlockByNumber", ["latest", False], deadline)
    if not isinstance(found, dict):
        raise Failure("garbage", "the node sent an invalid block")
    limit = rpc.number(found.get("gasLimit"))
    return hex(rpc.number(found.get("number"))), min(BLOCK_GAS, limit * 19 // 20)


def _gas(count: int, heavy: int, limit: int) -> tuple[int, int]:
    """Gas of a read and of a call, which together stay below `limit`."""
    reads = max(1, count - heavy)
    return min(READ_GAS, limit // 2 // reads), min(CALL_GAS, limit // 2 // heavy)


def _by_method(
    messages: Sequence[Message], gas: tuple[int, int], code: dict[str, str], block: str, deadline: Deadline
) -> tuple[str, list[CallOutcome]] | None:
    overrides: dict[str, dict[str, str]] = {at: {"code": text} for at, text in code.items()}
    for one in messages:
        if one.value:
            overrides.setdefault(one.sender, {})["balance"] = hex(RICH)
    calls = [_params(one, gas) for one in messages]
    asked = [{"blockStateCalls": [{"calls": calls, "stateOverrides": overrides}]}, block]
    try:
        found = rpc.call("eth_simulateV1", asked, deadline)
    except Failure as failure:
        if failure.error_class in ("http", "reverted", "refused"):
            return None  # the node does not know it, or not in this form
        raise
    try:
        outcomes = [_outcome(one, by.sender) for one, by in zip(found[0]["calls"], messages, strict=True)]
    except (TypeError, KeyError, IndexError, ValueError, AttributeError):
        raise Failure("garbage", "the node sent an invalid simulation") from None
    return "simulate", outcomes


def _params(one: Message, gas: tuple[int, int]) -> dict[str, str]:
    heavy = one.sender != ORIGIN
    found = {"from": one.sender, "to": one.to, "data": one.data, "gas": hex(gas[heavy])}
    return found | ({"value": hex(one.value)} if one.value else {})


def _outcome(found: Any, sender: str) -> CallOutcome:  # noqa: ANN401  any JSON
    ok = found["status"] == "0x1"
    data = found.get("returnData", "0x")
    if not ok and data in ("", "0x"):
        data = (found.get("error") or {}).get("data") or "0x"
    events = tuple(_event(log, sender) for log in found.get("logs", ()))
    return CallOutcome(
        ok, bytes.fromhex(str(data).removeprefix("0x")), rpc.number(found["gasUsed"]), events[:MAX_EVENTS]
    )


def _event(log: Any, sender: str) -> str:  # noqa: ANN401  any JSON
    """Where an event comes from, its first topic, and NAMES where it names the caller."""
    topics = log["topics"] or [""]
    named = sender[2:].lower() in f"{''.join(topics)}{log.get('data', '')}".lower()
    return f"{log['address']}:{topics[0]}"[:110] + NAMES * named


def _by_code(
    messages: Sequence[Message], gas: tuple[int, int], code: dict[str, str], block: str, deadline: Deadline
) -> tuple[str, list[CallOutcome]] | None:
    """All calls from one address, that of the call's sender; the reads do not care who reads."""
    senders = {one.sender for one in messages} - {ORIGIN}
    if code or len(senders) != 1:
        return None
    (sender,) = senders
    data = b"".join(bytes.fromhex(one.data[2:]) for one in messages)
    overrides = {sender: {"code": "0x" + _program(messages).hex(), "balance": hex(RICH)}}
    total = sum(gas[one.sender != ORIGIN] for one in messages)
    asked = {"from": ORIGIN, "to": sender, "data": "0x" + data.hex(), "gas": hex(min(total, BLOCK_GAS))}
    try:
        found = rpc.call("eth_call", [asked, block, overrides], deadline)
        return "override", _unpacked(bytes.fromhex(str(found).removeprefix("0x")), len(messages))
    except Failure as failure:
        if failure.error_class in ("http", "reverted", "refused"):
            return None
        raise
    except ValueError:
        return None  # the node ignored the override


def _program(messages: Sequence[Message]) -> bytes:
    """EVM code that makes these calls with parts of its calldata, and returns what each gave.

    Memory: the place of the next result, the calldata, the results: success, length, bytes.
    """
    total = sum(len(one.data) // 2 - 1 for one in messages)
    start = 0x20 + total
    code = bytes.fromhex("365f602037") + _push(start) + bytes.fromhex("5f52")
    at = 0x20
    for one in messages:
        size = len(one.data) // 2 - 1
        code += bytes.fromhex("5f5f") + _push(size) + _push(at) + b"\x7f" + one.value.to_bytes(32, "big")
        code += b"\x73" + bytes.fromhex(one.to[2:]) + bytes.fromhex("5af1")  # GAS CALL
        code += bytes.fromhex("5f51818152")  # the place; the success goes there
        code += bytes.fromhex("3d81602001523d5f82604001" + "3e")  # the length, and the bytes
        code += bytes.fromhex("6040013d015f5250")  # the next place
        at += size
    return code + _push(start) + bytes.fromhex("5f518190039" + "0f3")


def _push(value: int) -> bytes:
    return b"\x63" + value.to_bytes(4, "big")


def _unpacked(data: bytes, count: int) -> list[CallOutcome]:
    """The results of `_program`; ValueError when they are not whole."""
    found, at = [], 0
    for _ in range(count):
        ok, size = (int.from_bytes(data[at + 32 * part : at + 32 * part + 32], "big") for part in (0, 1))
        if len(data) < at + 64 + size or ok > 1:
            raise ValueError("results that break off")
        found.append(CallOutcome(ok == 1, data[at + 64 : at + 64 + size]))
        at += 64 + size
    if at != len(data):
        raise ValueError("more than the results")
    return found


def _alone(call: Message, block: str, deadline: Deadline) -> CallOutcome:
    asked = {"from": call.sender, "to": call.to, "data": call.data, "value": hex(call.value)}
    try:
        found = rpc.call("eth_call", [asked, block], deadline)
    except rpc.Reverted as reverted:
        return CallOutcome(False, str(reverted).encode())
    return CallOutcome(True, bytes.fromhex(str(found).removeprefix("0x")))


def _split(how: str, found: list[CallOutcome], setup: int, reads: int) -> Simulation:
    if not all(one.ok for one in found[:setup]):
        raise Failure("reverted", "a call before the simulated one reverts")
    found = found[setup:]
    first, again, call, after = found[:reads], found[reads : 2 * reads], found[2 * reads], found[-reads:]
    values = [one.data if one.ok else None for one in first]
    steady = [one == (two.data if two.ok else None) for one, two in zip(values, again, strict=True)]
    later = [one.data if one.ok else None for one in after] if reads else []
    return Simulation(
        how,
        call,
        tuple(one if same else None for one, same in zip(values, steady, strict=True)),
        tuple(one if same else None for one, same in zip(later, steady, strict=True)),
    )
