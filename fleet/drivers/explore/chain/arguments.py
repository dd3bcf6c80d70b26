"""Arguments to try on a contract's functions, by their types: the values of things, and edges. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

LEVELS = 4
"""Rounds of arguments: another's things; the caller's own wishes; another's things for the caller; edges."""
ZERO = "0x" + "0" * 40
STRANGER = "stranger"
CUT = "diamondCut"
EMPTY_CUT = "".join(f"{word:064x}" for word in (0x60, 0, 0x80, 0, 0))
"""Calldata of a cut that changes nothing."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that exists and is another's: its id, its name (if that can be spelled), its owner."""

    key: int
    owner: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentPool:
    """What arguments are drawn from. `canary` is an amount that no platform holds by chance."""

    things: Sequence[Thing] = ()
    role: str = ""
    """A metadata key of the profile."""
    canary: int = 1 << 70
    fresh: str = "qx-unused"

    @classmethod
    def of(cls, things: Sequence[Thing], role: str, chance: Random) -> ArgumentPool:
        """A pool with a canary and a fresh name of its own."""
        fresh = "".join(chance.choice("bcdfghjkmnpqrstvwxz") for _ in range(9))
        return cls(things, role, chance.randrange(1 << 70, 1 << 80), f"qx-{fresh}")


def types_of(signature: str) -> tuple[str, ...]:
    """The argument types of a canonical signature."""
    inside = signature.partition("(")[2].removesuffix(")")
    return tuple(inside.split(",")) if inside and "(" not in inside else ()


def rounds(signature: str, pool: ArgumentPool) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Types and arguments of each round, without repeats; raw calldata for a function of unknown types."""
    if not signature:  # words that are valid as integers, and then as addresses too
        key = pool.things[0].key if pool.things else 1
        yield from ((("raw",), (word * 4,)) for word in (f"{key:064x}", f"{pool.canary:064x}"))
        return
    if signature.startswith(f"{CUT}("):
        yield ("raw",), (EMPTY_CUT,)
        return
    kinds = types_of(signature)
    several = kinds.count("address") > 1
    seen = []
    for level in range(LEVELS):
        arguments = tuple(
            _value(kind, level, pool, first=kind not in kinds[:at], several=several)
            for at, kind in enumerate(kinds)
        )
        if arguments not in seen:
            seen.append(arguments)
            yield kinds, arguments


def _value(kind: str, level: int, pool: ArgumentPool, *, first: bool, several: bool) -> object:
    """One argument. `first` of its type; `several`: the function takes more than one address."""
    if kind.endswith("[]"):
        return [] if level == 3 else [_value(kind[:-2], level, pool, first=first, several=several)]
    thing = pool.things[0] if pool.things else Thing(1, ZERO)
    if kind.startswith("uint"):
        most = (1 << int(kind[4:])) - 1
        wish = str(min(pool.canary, most))
        mine = str(thing.key) if first else ""
        return (mine or "1", wish, mine or wish, str(most))[level]
    if kind == "address":
        other = thing.owner if thing.owner != ZERO else STRANGER
        if several:
            return ZERO if level == 3 else other if first else STRANGER
        return (other, STRANGER, STRANGER, ZERO)[level]
    if kind == "string":
        return (thing.name or "note", pool.fresh, thing.name or "note", "")[level] if first else "note"
    if kind == "bool":
        return level != 1
    if kind == "bytes32" and pool.role:
        return pool.role
    if kind.startswith("bytes") and kind != "bytes":
        return "0x" + "00" * int(kind[5:])
    return "0x" if level == 3 else "0x71a5"
