"""What a document, a card or a list of tools says that something costs, in units of the token. Pure.

A price is read only where one statement (a sentence, or an object of JSON) names one thing and one amount,
without a condition: a range, an earlier price or a discount is not what one request is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from fleet.oracles.texts import leaves

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_UNITS = re.compile(
    r"(?i)(?<![\d.,$])(\d{1,3}(?:,\d{3})+|\d{1,18}) (atomic |base |smallest |token )?units?\b"
)
_SOLD = re.compile(r"(?i)\b(?:cost|price|pay|charge|fee|request|call|quer)")
"""What a sentence speaks of in which mere units are units of money."""
_MONEY = re.compile(
    r"(?i)(?:\$ ?|\bUSD ?)(\d{1,9}(?:\.\d{1,18})?)(?![\d.]*\d)"
    r"|(?<![\d.,$])(\d{1,9}(?:\.\d{1,18})?) ?(?:USDC?|dollars?)\b"
)
_CONDITION = re.compile(
    r"(?i)\b(?:from|up to|at least|at most|about|around|between|was|were|used to|formerly|before|until|unless"
    r"|if|except|discount\w*|month\w*|year\w*|day|deposit\w*|refund\w*|minimum|maximum|start\w*|free|plus|save|each"
    r"|limit\w*|budget\w*)\b"
)
_PATH = re.compile(r"(?<![\w/<])/[A-Za-z0-9][\w./-]*")
_HOST = re.compile(r"(?:https?://[^\s/\"'<>]+|\{(?:site|proxy)\})(?=/)")
_IN_UNITS = re.compile(r"(?:max)?amount(?:required)?|(?:price|cost|amount)(?:in)?units")
_IN_MONEY = re.compile(r"(?:payment|x402)?(?:price|cost)(?:in)?usdc?|usd(?:price|cost)")
_PRICED = re.compile(r"(?:price|cost|amount)")
NESTED = 4
"""Levels of an object in which its price is looked for."""


def stated(thing: str, said: object, decimals: int | None) -> int | None:
    """[units] What `said`, a text or JSON, states for `thing`, a path; None for nothing, or no one price.

    `decimals` are the token's: without them, a price in dollars is none that can be compared.
    """
    found = {one for each in _about(thing, said) if (one := price(each, decimals, thing=thing)) is not None}
    return found.pop() if len(found) == 1 else None


def price(said: object, decimals: int | None, *, thing: str = "") -> int | None:
    """[units] The one price that a statement has; None for none, several or one with a condition."""
    texts = [said] if isinstance(said, str) else [str(one) for _, one in leaves(said) if isinstance(one, str)]
    found = set(_fields(said, decimals))
    for sentence in (part for text in texts for part in _SENTENCE.split(text[:60_000])):
        amounts = set(_amounts(sentence, decimals))
        others = _paths(sentence) - {thing}
        if amounts and (_CONDITION.search(sentence) or len(amounts) > 1 or others):
            return None
        found |= amounts
    return found.pop() if len(found) == 1 else None


def _about(thing: str, said: object) -> Iterator[object]:
    """The statements that name a thing: the innermost objects, or the sentences of a text."""
    if isinstance(said, str):
        yield from (one for one in _SENTENCE.split(said) if _names(one, thing))
        return
    inner = (
        said if isinstance(said, list | tuple) else list(said.values()) if isinstance(said, Mapping) else []
    )
    if isinstance(said, Mapping):
        under = next((one for key, one in said.items() if _names(str(key), thing)), None)
        named = any(isinstance(one, str) and _names(one, thing) for one in inner)
        if under is not None:
            yield under
            return
        if named:
            yield said
            return
    for one in inner:
        if isinstance(one, Mapping | list | tuple):
            yield from _about(thing, one)


def _names(text: str, thing: str) -> bool:
    return thing in _paths(text)


def _paths(text: str) -> set[str]:
    return {one.rstrip("./") for one in _PATH.findall(_HOST.sub("", text))}


def _amounts(sentence: str, decimals: int | None) -> Iterator[int]:
    for digits, money in _UNITS.findall(sentence):
        if money or _SOLD.search(sentence):
            yield int(digits.replace(",", ""))
    for first, second in _MONEY.findall(sentence):
        units = _in_units(first or second, decimals)
        if units is not None:
            yield units


def _fields(said: object, decimals: int | None, depth: int = NESTED) -> Iterator[int]:
    """Prices by the name of a field: whole numbers of units, dollars, or an amount with its currency."""
    if not isinstance(said, Mapping) or depth == 0:
        return
    dollars = str(said.get("currency", said.get("unit", ""))).upper() in ("USD", "USDC", "USDC.E")
    for key, one in said.items():
        name = re.sub(r"[^a-z0-9]", "", str(key).rpartition("/")[2].lower())
        plain = str(one) if isinstance(one, str | int | float) and not isinstance(one, bool) else ""
        if plain and (_IN_MONEY.fullmatch(name) or (dollars and _PRICED.fullmatch(name))):
            units = _in_units(plain.lstrip("$"), decimals)
        else:
            units = int(plain) if plain.isascii() and plain.isdigit() and _IN_UNITS.fullmatch(name) else None
        if units is not None:
            yield units
        yield from _fields(one, decimals, depth - 1)


def _in_units(text: str, decimals: int | None) -> int | None:
    if decimals is None or not re.fullmatch(r"\d{1,9}(?:\.\d{1,18})?", text):
        return None
    units = Decimal(text).scaleb(decimals)
    return int(units) if units == units.to_integral_value() else None


def listed(definitions: Sequence[object], name: str, decimals: int | None) -> int | None:
    """[units] What a list of tools states for the one of this name."""
    tools = (one for one in definitions if isinstance(one, Mapping) and one.get("name") == name)
    return next((price(_told(one), decimals) for one in tools), None)


def _told(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a definition says of its tool, and not of its arguments."""
    return {
        key: value for key, value in one.items() if key in ("title", "description", "annotations", "_meta")
    }
