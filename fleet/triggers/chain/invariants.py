"""Invariants of a profile: named views of contracts at one block, and what always holds of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.chain.node import codec
from fleet.chain.node.digest import keccak256
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.config.watch import WatchSection
from fleet.drivers.expect import ExpectationError, invariant, require
from fleet.errors import ConfigError, RpcError
from fleet.text import line

_VIEW = re.compile(
    r"(?:(0x[0-9a-fA-F]{40}) )?([A-Za-z_$][\w$]{0,63})\(([^()]*)\)\(([^()]+)\)((?: \S+)*)", re.ASCII
)
_COIN = re.compile(r"(0x[0-9a-fA-F]{40}) balance")
MOST_CHARS = 300


@dataclass(frozen=True, slots=True)
class InvariantView:
    """One view: what is asked of the node at a block, and the types of the answer; none for a native
    balance."""

    method: str
    params: tuple[Any, ...]
    gives: tuple[str, ...] = ()

    def at(self, block: str) -> tuple[str, list[Any]]:
        return self.method, [*self.params, block]

    def value(self, answer: object) -> Any:  # noqa: ANN401  by the view's types
        """ExpectationError for a view that reverts, or gives something else."""
        if isinstance(answer, RpcError):
            raise ExpectationError(f"a view does not answer: {line(str(answer), MOST_CHARS)}")
        if not self.gives:
            return as_int(answer)
        try:
            found = [_plain(one) for one in codec.decode(self.gives, as_bytes(answer))]
        except codec.Malformed as error:
            raise ExpectationError(
                f"a view gives something else than {','.join(self.gives)}: {error}"
            ) from None
        return found[0] if len(found) == 1 else found


@dataclass(frozen=True, slots=True)
class Invariant:
    """What holds of views that are read at one block."""

    name: str
    views: Mapping[str, InvariantView]
    holds: str

    def decide(self, answers: Sequence[object]) -> bool:
        """By the answers of its views in order; ExpectationError where they do not decide it."""
        named = {name: view.value(one) for (name, view), one in zip(self.views.items(), answers, strict=True)}
        try:
            return invariant(self.holds, named)
        except ExpectationError as error:
            raise ExpectationError(line(str(error), MOST_CHARS)) from None


def invariants_of(watch: WatchSection, diamond: str) -> tuple[Invariant, ...]:
    """Those of a profile; ConfigError names the view that cannot be asked, or the text that is not CEL."""
    for name, section in watch.invariants.items():
        try:
            require(section.holds)
        except ExpectationError as error:
            why = f"watch.invariants.{name}.holds: not CEL: {line(str(error), MOST_CHARS)}"
            raise ConfigError(
                why, remedy="write it like an expectation of a probe: docs/write-a-probe.md"
            ) from None
    return tuple(
        Invariant(
            name,
            {
                view: _view(text, diamond, f"watch.invariants.{name}.views.{view}")
                for view, text in section.views.items()
            },
            section.holds,
        )
        for name, section in watch.invariants.items()
    )


def _view(text: str, diamond: str, key: str) -> InvariantView:
    if coin := _COIN.fullmatch(text):
        return InvariantView("eth_getBalance", (coin[1].lower(),))
    found = _VIEW.fullmatch(text)
    remedy = "write it as `0xCONTRACT name(types)(type) ARGUMENTS`, or `0xCONTRACT balance`"
    if found is None:
        raise ConfigError(f"{key}: {text!r} is not a view", remedy=remedy)
    address, name, takes, gives = found[1] or diamond, found[2], _types(found[3]), _types(found[4])
    if not address:
        raise ConfigError(f"{key}: {text!r} names no contract, and there is no chain.diamond", remedy=remedy)
    try:
        values = [_argument(kind, word) for kind, word in zip(takes, found[5].split(), strict=True)]
        data = keccak256(f"{name}({','.join(takes)})".encode())[:4] + codec.encode(takes, values)
    except ValueError as error:
        raise ConfigError(f"{key}: {text!r}: {error}", remedy=remedy) from None
    call = {"to": address.lower(), "data": "0x" + data.hex()}
    return InvariantView("eth_call", (call,), tuple(gives))


def _types(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _argument(kind: str, word: str) -> object:
    """ValueError where the word is not of that type."""
    if kind == "bool":
        return {"true": True, "false": False}.get(word, word)
    if kind.startswith(("uint", "int")):
        return int(word, 0)
    return bytes.fromhex(word.removeprefix("0x")) if kind.startswith("bytes") else word


def _plain(value: object) -> object:
    """As JSON: bytes as 0x hex, tuples as lists."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
