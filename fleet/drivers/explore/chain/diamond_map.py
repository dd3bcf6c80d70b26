"""What an explorer knows of a diamond: its functions, settings and things; and views to read together. Pure.

Everything in it was answered by the platform: only what is well-formed is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from fleet.chain.node.abi import Function
from fleet.drivers.explore.chain.arguments import STRANGER, ZERO, Thing, types_of
from fleet.oracles.chain import fourbyte
from fleet.oracles.chain.code_functions import READS, TypedFunction, spelled, typed
from fleet.oracles.chain.interfaces import StatedFunction
from sandbox.chain.contract import VIEWS

MAX_WATCH = 24
MAX_READ = 48
THINGS = 4
CLAIMS = ("0xffffffff", "0x7f5828d0", "0x48e2b093", "0x1f931c1c", "0x80ac58cd")
"""Interface identifiers to ask for: the invalid one, ownership, loupe, cut, tokens."""
EMPTY = (None, "0x")
_PLAIN = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)
_RUN = re.compile(r"qa-[a-z0-9]{4,40}-\d{1,4}", re.ASCII)
_SELECTOR = re.compile(r"0x[0-9a-f]{8}", re.ASCII)
_CODE = re.compile(r"[0-9a-f]{16}", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-f]{40}", re.ASCII)


class DiamondMap:
    """Selectors with the code and the address of their facet, and the last value of each view."""

    def __init__(self, named: Mapping[str, Function] | None = None) -> None:
        self.named = named or {}
        """What the profile's ABI says of them."""
        self.codes: dict[str, str] = {}
        self.facets: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.functions: dict[str, TypedFunction] = {}
        """What their code says of them."""
        self.stated: Mapping[str, StatedFunction] = {}
        """What a document states of them."""

    def learn(self, surface: object) -> None:
        """Take in the answer to a question for the surface."""
        first: tuple[str, str] | None = None
        for facet in surface if isinstance(surface, list) else ():
            if not isinstance(facet, dict) or not isinstance(facet.get("selectors"), list):
                continue
            code, address = str(facet.get("code", "")), str(facet.get("facet", ""))
            if not _CODE.fullmatch(code) or not _ADDRESS.fullmatch(address):
                continue
            first = first or (code, address)
            for selector in facet["selectors"]:
                if isinstance(selector, str) and _SELECTOR.fullmatch(selector):
                    self.codes[selector], self.facets[selector] = code, address
            self.functions |= typed(facet.get("functions"))
        for selector in self.named if first else ():
            if first and selector not in self.codes:  # behind a proxy that does not say for what
                self.codes[selector], self.facets[selector] = first

    def offers(self, name: str) -> bool:
        """Whether it has this view of the table."""
        return name in VIEWS and VIEWS[name].selector in self.codes

    def offered(self, views: Sequence[str]) -> list[str]:
        """Those of these views that it has, once each."""
        return [one for one in dict.fromkeys(views) if self.offers(one.partition("(")[0])][:MAX_READ]

    def count(self, view: str) -> int:
        """The number that a view gave, or 0."""
        return as_number(self.values.get(view))

    def facet_of(self, view: str) -> str:
        """The facet of a view without arguments, by name or selector."""
        return self.facets.get(VIEWS[view].selector if view in VIEWS else view, "")

    def known(self, selector: str) -> str:
        """The signature of a function by the profile's ABI, or by the dictionary; "" without one."""
        return self.named[selector].signature if selector in self.named else fourbyte.signature_of(selector)

    def is_view(self, selector: str) -> bool:
        """Known as one; without a name, by its code, or read without arguments before: it answered."""
        if selector in self.named:
            return not self.named[selector].writes
        if fourbyte.is_view(selector):
            return True
        code = self.functions.get(selector)
        if code is not None and not fourbyte.signature_of(selector):
            return code.mutability in READS
        return self.values.get(selector) not in EMPTY

    def unnamed(self) -> list[tuple[str, TypedFunction]]:
        """Functions without a name in the dictionary of which the code says something, of types that a call
        can spell: by a document where one states them, else by the code."""
        return [
            (one, replace(self.functions[one], types=types))
            for one in self.codes
            if one in self.functions and not fourbyte.signature_of(one)
            if (types := self.types(one)) is not None
        ]

    def types(self, selector: str) -> tuple[str, ...] | None:
        """Types of a function's arguments: of the ABI, a document, the dictionary, or the code; None if they
        are unknown, or cannot be spelled in a call."""
        if selector in self.named:
            return spelled(self.named[selector].inputs)
        if selector in self.stated and (types := spelled(self.stated[selector].types)) is not None:
            return types
        if signature := fourbyte.signature_of(selector):
            return types_of(signature)
        return self.functions[selector].types if selector in self.functions else None

    def signature(self, selector: str) -> str:
        """A signature, that of an unnamed function with its types alone; "" if these are unknown."""
        known, types = fourbyte.signature_of(selector), self.types(selector)
        if selector in self.named:
            return "" if types is None else f"{self.named[selector].name}({','.join(types)})"
        return known or ("" if types is None else f"({','.join(types)})")

    def basics(self) -> list[str]:
        """Views without arguments: of the table by name, of the dictionary and unknown ones by selector."""
        named = [name for name, one in VIEWS.items() if self.offers(name) and not one.takes]
        tabled = {one.selector for one in VIEWS.values()}
        others = [one for one in self.codes if one not in tabled]
        known = [one for one in others if self.is_view(one) and self.known(one).endswith("()")]
        unknown = [
            one
            for one in others
            if not self.known(one)
            and ((types := self.types(one)) is None or (types == () and self.is_view(one)))
        ]
        return [*(one for one in named if not one.startswith("facet")), *known, *unknown][:MAX_READ]

    def ids(self, chance: Random) -> list[str]:
        """Names and owners of the first, the last and one other id; and the first entry of the log."""
        last = min(max(0, self.count("nextId") - 1), 1 << 40)
        keys = [*range(1, min(last, 12) + 1), last, last - 1, chance.randint(1, max(1, last))]
        if not self.offers("nextId"):
            keys = [1, 2, 3]
        views = [name for name in ("ownerOfId", "nameOfId") if self.offers(name)] or ["ownerOf"]
        found = [f"{view}({key})" for key in dict.fromkeys(keys) if key > 0 for view in views]
        return self.offered([*found, "feedbackAt(0)"])

    def things(self) -> list[Thing]:
        """What exists and can be spelled; names that a run minted come last, for they go soon."""
        found = []
        for view, owner in self.values.items():
            name, _, key = view.removesuffix(")").partition("(")
            if name not in ("ownerOfId", "ownerOf") or owner == ZERO or not key.isdigit():
                continue
            label = str(self.values.get(f"nameOfId({key})") or "")
            if isinstance(owner, str) and _ADDRESS.fullmatch(owner):
                found.append(Thing(int(key), owner, label if _PLAIN.fullmatch(label) else ""))
        unique = {one.key: one for one in found}.values()
        return sorted(unique, key=lambda one: (bool(_RUN.fullmatch(one.name)), not one.name, one.key))[
            :THINGS
        ]

    def agreements(self, chance: Random) -> list[list[str]]:
        """Views of the same things, to be read together."""
        things = self.things()
        named = [f"{view}({one.key})" for one in things for view in ("ownerOfId", "ownerOf", "nameOfId")]
        named += [f"isMain({one.key})" for one in things]
        named += [
            f"{view}({one.name})"
            for one in things
            if one.name
            for view in ("idOfName", "isTaken", "ownerOfName")
        ]
        for one in things:
            named += [f"mainOf({one.owner})", f"mainNameOf({one.owner})"]
            if main := self.count(f"mainOf({one.owner})"):
                named += [f"nameOfId({main})", f"ownerOfId({main})"]
        held = [*(f"balanceOf({one.owner})" for one in things), "ownerOf(1)", "nextId"]
        following = self.count("nextId")
        if 1 < following <= MAX_READ - len(held):
            held += [f"ownerOfId({key})" for key in range(1, following + 1)]
        total = self.count("feedbackCount")
        first = max(0, total - 3)
        log = ["feedbackCount", f"feedbackRange({first},5)"]
        log += [f"feedbackAt({index})" for index in range(first, total + 1)]
        listed = list(self.codes)
        shown = chance.sample(listed, min(6, len(listed)))
        loupe = ["facets", "facetAddresses", *(f"facetAddress({one})" for one in shown)]
        loupe += [f"facetFunctionSelectors({one})" for one in dict.fromkeys(self.facets.values())]
        loupe += [f"supportsInterface({one})" for one in CLAIMS]
        return list(filter(None, map(self.offered, (named, held, log, loupe))))

    def watch(self, selector: str, role: str) -> list[str]:
        """What a call may change: another's things, the caller's sums, settings, its own facet's first."""
        things = self.things()[:2]
        views = [f"{view}({one.key})" for one in things for view in ("ownerOfId", "nameOfId", "isMain")]
        views += [f"metadata({one.key},{role})" for one in things if role]
        views += [f"idOfName({one.name})" for one in things if one.name]
        views += [
            f"{view}({one.owner})" for one in things[:1] for view in ("creditOf", "balanceOf", "mainOf")
        ]
        views += [f"creditOf({STRANGER})", "feedbackAt(0)"]
        if not self.offers("ownerOfId"):
            views = [f"ownerOf({one.key})" for one in things] + views
        basics = [one for one in self.basics() if self.values.get(one) not in EMPTY]
        own = self.facets.get(selector)
        basics.sort(key=lambda one: self.facet_of(one) != own)
        return list(dict.fromkeys([*self.offered(views)[:15], *basics]))[:MAX_WATCH]

    def only_text(self, selector: str) -> bool:
        """Whether it is its facet's only function that takes a text: then the facet's limit is its own."""
        own = [one for one, facet in self.facets.items() if facet == self.facets.get(selector)]
        texts = [one for one in own if "string" in self.known(one) and not self.is_view(one)]
        return texts == [selector]


def as_number(value: object) -> int:
    """A count as it was answered, or 0."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]{1,64}", value):
        return int(value, 16)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0


def text_limits(values: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Views that state a length, with it."""
    found = []
    for view, value in values.items():
        name = fourbyte.signature_of(view).removesuffix("()") if _SELECTOR.fullmatch(view) else view
        if fourbyte.LENGTH.fullmatch(name) and 8 <= as_number(value) <= 24_000:
            found.append((view, as_number(value)))
    return found
