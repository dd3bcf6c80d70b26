"""A simulated call of the chain as its oracles read it: who called what, and which views it changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fleet.chain.node.abi import FUNCTIONS
from fleet.oracles.chain import fourbyte
from fleet.oracles.model import Exchange

ZERO = "0x" + "0" * 40
STRANGER = "stranger"
"""How a call spells an address without any part in the platform."""
NARROW = 3
"""Views at most that a call watches to be judged: what changed among more is asked again by itself."""
_SPELLED = re.compile(r"([A-Za-z_]\w{0,63}|0x[0-9a-f]{8})(?:\((.*)\))?", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class WatchReading:
    """One watched view, before and after the call; None where it reverts."""

    spelled: str
    before: Any
    after: Any = None
    signature: str = ""
    """As its question names it."""

    @property
    def name(self) -> str:
        """Its name; "" for a selector that nothing is known of."""
        found = _SPELLED.fullmatch(self.spelled)
        word = found[1] if found else ""
        if self.signature:
            return self.signature.partition("(")[0]
        return fourbyte.signature_of(word).partition("(")[0] if word.startswith("0x") else word

    @property
    def function(self) -> str:
        """The view itself as a title has it: by its question's name, or its selector."""
        return self.signature.partition("(")[0] or self.spelled[:10]

    @property
    def keys(self) -> tuple[str, ...]:
        """Its arguments as they are spelled."""
        found = _SPELLED.fullmatch(self.spelled)
        inside = found[2] if found and found[2] else ""
        return tuple(inside.split(",")) if inside else ()

    @property
    def shown(self) -> str:
        """The view in words."""
        return (
            f"{self.name}{self.spelled[10:]}" if self.spelled.startswith("0x") and self.name else self.spelled
        )


@dataclass(frozen=True, slots=True)
class Simulated:
    """One simulated call that was answered."""

    selector: str
    args: tuple[Any, ...]
    sender: str
    by: str
    plain: bool
    """Whether it is a call by itself: without value, earlier calls or code put in place."""
    succeeded: bool
    reverted: str
    events: tuple[str, ...]
    gas_used: int
    readings: tuple[WatchReading, ...]
    signature: str = ""
    """As its question names it."""

    @property
    def spoken(self) -> str:
        """The function in words."""
        return f"{self.name}()" if self.signature else fourbyte.spoken(self.selector)

    @property
    def name(self) -> str:
        """The function's name; "" for an unknown one."""
        return (self.signature or fourbyte.signature_of(self.selector)).partition("(")[0]

    @property
    def changed(self) -> Iterator[WatchReading]:
        """What it changed among what was watched."""
        return (one for one in self.readings if one.before is not None and one.before != one.after)


def of(exchange: Exchange) -> Simulated | None:
    """The simulation of an exchange; None for any other call, or one that could not look."""
    args, result = exchange.args, exchange.result
    selector = args.get("simulate")
    if exchange.tool != "qa_chain" or not isinstance(selector, str) or not selector or not result.get("ok"):
        return None
    watch, before, after = args.get("watch", ()), result.get("before", ()), result.get("after", ())
    if not len(watch) == len(before) == len(after):
        watch = before = after = ()
    names = _named(exchange)
    readings = [
        WatchReading(str(view), was, now, names.get(str(view)[:10], ""))
        for view, was, now in zip(watch, before, after, strict=True)
    ]
    return Simulated(
        selector,
        tuple(args.get("args", ())),
        str(args.get("sender", STRANGER)),
        str(result.get("by", "")),
        not args.get("setup") and not args.get("code") and str(args.get("wei", "0")) == "0",
        bool(result.get("succeeded")),
        str(result.get("reverted", "")),
        tuple(result.get("events", ())),
        int(result.get("gas_used", 0)),
        tuple(readings),
        names.get(selector, ""),
    )


def _named(exchange: Exchange) -> dict[str, str]:
    """Signatures by selector, as a question of ours states them: only their own selectors are believed."""
    return {fourbyte.selector_of(one): one for one in map(str, exchange.args.get("named", ()))}


def watched(exchange: Exchange) -> tuple[WatchReading, ...]:
    """The views of an exchange that reads several at one block."""
    args, result = exchange.args, exchange.result
    watch, found = args.get("watch", ()), result.get("before", ())
    if (
        exchange.tool != "qa_chain"
        or args.get("simulate")
        or not result.get("ok")
        or len(watch) != len(found)
    ):
        return ()
    names = _named(exchange)
    seen = zip(watch, found, strict=True)
    return tuple(
        WatchReading(str(view), value, signature=names.get(str(view)[:10], "")) for view, value in seen
    )


def views(*spelled: str) -> dict[str, str]:
    """The function of a kind's place, of views that disagree: their selectors, whatever named them."""
    known = (FUNCTIONS[one].selector.hex() if one in FUNCTIONS else one.removeprefix("0x") for one in spelled)
    return {"function": " ".join(sorted(known))}


def number(value: object) -> int | None:
    """A value of a view as a number: decimal, or one word."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.startswith("0x") and len(value) == 66:
        return int(value, 16)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def account(value: object) -> str:
    """A value of a view as an address; "" for anything else, a word that is a small number included."""
    if isinstance(value, str) and len(value) == 66 and value.startswith("0x" + "0" * 24):
        return "0x" + value[26:] if not 0 < int(value, 16) < 1 << 96 else ""
    return value if isinstance(value, str) and len(value) == 42 and value.startswith("0x") else ""
