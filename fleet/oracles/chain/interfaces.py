"""The functions of a contract as a platform's own documents write them, with what they promise. Pure.

A document is any text: a guide with `setRate(uint256)` and a sentence after it, Solidity, or an ABI in JSON.
A signature counts only where its selector is one that the contract lists: a wrong reading costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.texts import parsed

MOST = 200
"""Functions of one document."""
_TYPE = r"(?:u?int\d{0,3}|address|bool|string|bytes\d{0,2})(?:\[\d{0,3}\]){0,2}"
_PARAMETER = rf"{_TYPE}(?: +(?:payable|memory|calldata|indexed))?(?: +[A-Za-z_]\w{{0,40}})?"
_SIGNATURE = re.compile(
    rf"(?<![\w.])([A-Za-z_]\w{{0,60}})\( *((?:{_PARAMETER}(?: *, *{_PARAMETER}){{0,9}})?) *\)([^\n]{{0,300}})"
)
_ROLE = r"(?:owner|admin(?:istrator)?|operator|governor|governance|guardian|deployer|treasurer|manager)"
_WHOM = r"(?:the |its |an? )?(?P<who>[a-z]{3,20})(?: of (?:the|an?|its) (?P<of>[a-z]{2,20}))?"
_RESERVED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:for|by|to) {_WHOM} only\b",
        rf"\bonly (?:by |for |to )?{_WHOM} (?:may|can|is allowed|has the right)\b",
        rf"\b(?:restricted|reserved|limited|callable only) (?:to|for|by) {_WHOM}",
        rf"\b(?P<who>{_ROLE})[- ]only\b",
        rf"\bonly(?P<who>{_ROLE})\b",
    )
)
_ROLES = re.compile(f"{_ROLE}s?", re.IGNORECASE)
"""Roles by their plain meaning; another word is one if the contract has a view of that name."""
_ANYONE = frozenset(
    {
        "anyone",
        "everyone",
        "anybody",
        "caller",
        "callers",
        "sender",
        "senders",
        "everybody",
        "users",
        "reading",
    }
)
_BOUND = r"(\d{1,30}|[A-Za-z_]\w{0,60}\(\))"
_RANGE = re.compile(rf"\b(?:from|between) {_BOUND} (?:to|and|up to) {_BOUND}(?!\w)")
_READS = re.compile(r"^\W{0,6}(?:is|are|returns?|view|pure)\b|\b(?:external|public) (?:view|pure)\b", re.I)
_OWNER = re.compile(r"\bthe owner\b(?: and [^.;]{0,60})? of (?:an?|the) ([a-z]{2,20})", re.I)
_HELD = re.compile(
    r"\b(?:how many|the number of|number of|count of) ([a-z]{2,20})s?\b[^.;]{0,20}\b(?:an? )?"
    r"(?:address|account|owner) (?:has|owns|holds)\b",
    re.I,
)
_ALL = re.compile(r"\b(?:how many|the number of|number of) ([a-z]{2,20})s? (?:there are|exist)\b", re.I)
_IDS = re.compile(r"\bids? (?:go|run|count|are)?\s?(?:from )?1 (?:to|up to) (?:it|this|that)\b", re.I)


@dataclass(frozen=True, slots=True)
class StatedFunction:
    """A function as a document states it.

    `reserved`: for whom only, "" for anyone; with `of`, for the owner of a thing of this kind. `range`: the
    least and the greatest value of its last argument, each a number or a view without arguments. Of a view:
    `owner`, `held` and `total` are the kind of thing whose owner it is, or of which it is how many an address
    has, or how many there are; `ids`: their ids go from 1 to the total.
    """

    signature: str
    reserved: str = ""
    of: str = ""
    range: tuple[str, ...] = ()
    reads: bool = False
    owner: str = ""
    held: str = ""
    total: str = ""
    ids: bool = False

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.signature.partition("(")[0]

    @property
    def types(self) -> tuple[str, ...]:
        """Types of its arguments."""
        inside = self.signature.partition("(")[2].removesuffix(")")
        return tuple(inside.split(",")) if inside else ()

    @property
    def sized(self) -> bool:
        """Whether its last argument is its only number, but for the key of a thing before it."""
        numbers = [kind for kind in self.types if kind.startswith("uint")]
        return self.types[-1:] == tuple(numbers[-1:]) != () and (len(numbers) == 1 or len(self.types) == 2)


@lru_cache(maxsize=64)  # every answer of a question is judged beside the same document
def functions(text: str) -> Mapping[str, StatedFunction]:
    """By selector; a function that a text states twice, and not alike, is as its fullest statement."""
    found: dict[str, StatedFunction] = {}
    document = parsed(text)
    made = _of_abi(document) if isinstance(document, list | dict) else _of_text(text)
    for one in made:
        selector = selector_of(one.signature)
        if len(found) < MOST and _worth(one) >= _worth(found.get(selector)):
            found[selector] = one
    roles = {one.signature for one in found.values()}
    return {
        key: one
        if _ROLES.fullmatch(one.reserved) or f"{one.reserved}()" in roles
        else replace(one, reserved="")
        for key, one in found.items()
    }


def _worth(one: StatedFunction | None) -> int:
    parts = (one.reserved, one.range, one.owner, one.held, one.total) if one else ()
    return sum(map(bool, parts)) if one else -1


def _of_text(text: str) -> Iterator[StatedFunction]:
    for hit in _SIGNATURE.finditer(text):
        kinds = [part.split()[0] for part in hit[2].split(",") if part.strip()]
        kinds = [re.sub(r"^(u?int)(?=\[|$)", r"\g<1>256", kind) for kind in kinds]
        yield _stated(f"{hit[1]}({','.join(kinds)})", hit[3])


def _of_abi(document: object) -> Iterator[StatedFunction]:
    entries = document.get("abi") if isinstance(document, dict) else document
    for one in entries if isinstance(entries, list) else ():
        inputs = one.get("inputs") if isinstance(one, dict) and one.get("type") == "function" else None
        if isinstance(inputs, list) and all(isinstance(each, dict) for each in inputs):
            kinds = [str(each.get("type", "")) for each in inputs]
            said = f"{one.get('stateMutability', '')} {one.get('notice', '')}"
            yield _stated(f"{one.get('name', '')}({','.join(kinds)})", said)


def _stated(signature: str, said: str) -> StatedFunction:
    said = said.split("`", 1)[0] if said.count("`") > 2 else said
    whom = [
        hit for pattern in _RESERVED for hit in pattern.finditer(said) if hit["who"].lower() not in _ANYONE
    ]
    named = whom[0].groupdict() if whom else {}
    reads = _READS.search(said.replace("`", "")) is not None
    owner, held, total = (one.search(said) if reads else None for one in (_OWNER, _HELD, _ALL))
    bounds = _RANGE.search(said)
    return StatedFunction(
        signature,
        (named.get("who") or "").lower(),
        (named.get("of") or "").lower(),
        (bounds[1], bounds[2]) if bounds else (),
        reads=reads,
        owner=_kind(owner),
        held=_kind(held),
        total=_kind(total),
        ids=bool(total and _IDS.search(said)),
    )


def _kind(found: re.Match[str] | None) -> str:
    return found[1].lower().rstrip("s") if found else ""
