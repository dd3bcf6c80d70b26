"""The one ABI: `abi.json` beside this file, the source of every selector, topic, encoder and decoder.

It holds every function, event and error of the platform that the fleet knows (platform-facts 1.3), in
web3's JSON form. The tools define the metadata keys (`sandbox/chain/contract.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.chain.node import codec
from fleet.chain.node.digest import keccak256

ABI: list[dict[str, Any]] = json.loads((Path(__file__).parent / "abi.json").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Function:
    """One contract function; `writes` is false for views."""

    name: str
    selector: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    writes: bool = False

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(self.inputs)})"

    def encode(self, *args: object) -> bytes:
        """Calldata: selector and arguments; ValueError when an argument does not fit."""
        return self.selector + codec.encode(self.inputs, args)

    def arguments(self, calldata: bytes) -> tuple[Any, ...]:
        """The arguments of such a call; codec.Malformed unless they are in canonical encoding."""
        return codec.decode_exact(self.inputs, calldata[4:])

    def decode(self, data: bytes) -> tuple[Any, ...]:
        """The values of an answer; codec.Malformed when it is invalid."""
        return codec.decode(self.outputs, data)


def canonical(parameter: dict[str, Any]) -> str:
    """The type of one parameter as in a signature: tuples by their members."""
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(map(canonical, parameter['components']))}){kind.removeprefix('tuple')}"


def signature(entry: dict[str, Any]) -> str:
    """`name(type,...)` of a function, an event or an error."""
    return f"{entry['name']}({','.join(map(canonical, entry['inputs']))})"


def function_of(entry: dict[str, Any]) -> Function:
    """One entry of an ABI; KeyError where it lacks what every function has."""
    return Function(
        entry["name"],
        keccak256(signature(entry).encode())[:4],
        tuple(map(canonical, entry["inputs"])),
        tuple(map(canonical, entry.get("outputs", ()))),
        writes=entry["stateMutability"] not in ("view", "pure"),
    )


TABLE: tuple[Function, ...] = tuple(function_of(entry) for entry in ABI if entry["type"] == "function")
FUNCTIONS: dict[str, Function] = {function.name: function for function in TABLE}
BY_SELECTOR: dict[bytes, Function] = {function.selector: function for function in TABLE}
CUT = FUNCTIONS["diamondCut"].inputs[0]

ERRORS: dict[bytes, tuple[str, tuple[str, ...]]] = {
    keccak256(signature(entry).encode())[:4]: (entry["name"], tuple(map(canonical, entry["inputs"])))
    for entry in ABI
    if entry["type"] == "error"
}
"""Name and types by selector; `NotOwner` has two forms."""

TOPICS: dict[str, str] = {
    entry["name"]: "0x" + keccak256(signature(entry).encode()).hex()
    for entry in ABI
    if entry["type"] == "event"
}
"""topic0 by event name."""
REGISTERED = TOPICS["Registered"]
FEEDBACK_SUBMITTED = TOPICS["FeedbackSubmitted"]
FEEDBACK_CLEARED = TOPICS["FeedbackCleared"]


def describe_revert(data: bytes) -> str:
    """`InvalidName("x")`, the bare text of `Error(string)`, `Panic(0x11)`, or "" without a reason."""
    if len(data) < 4:
        return ""
    name, inputs = ERRORS.get(data[:4], (f"unknown error 0x{data[:4].hex()}", ()))
    try:
        values = codec.decode(inputs, data[4:])
    except codec.Malformed:
        return name
    if name == "Error":
        return str(values[0])[:200]
    if name == "Panic":
        return f"Panic({values[0]:#x})"
    return f"{name}({', '.join(str(value)[:80] for value in values)})"
