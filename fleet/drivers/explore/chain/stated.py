"""Questions about a contract's functions as documents state them: each beside its document. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.chain.interfaces import StatedFunction, functions
from fleet.oracles.chain.simulated import STRANGER, ZERO, account, number
from fleet.personas.model import Step

FETCH = "qa_fetch"
CHAIN = "qa_chain"
COMMON = ("/llms.txt", "/skill.md", "/docs", "/abi.json", "/contracts", "/")
"""Where platforms write their contract's functions down."""
MOST_PAGES = 16
MOST_THINGS = 12
"""Ids that are read together."""
CANARY = str((1 << 70) + 4_242)
_DOCUMENT = re.compile(r"\.(?:md|txt|json|sol)$|docs?\b|guide|manual|abi|contract|developer", re.I)


class StatedContract:
    """The documents' functions that the contract has, each with the page that states it."""

    def __init__(self, platform: Platform) -> None:
        self._urls = OwnUrls(platform)
        starts = [one for one in self._urls.named() if "{face:" not in one]
        starts += [place + path for place in self._urls.places for path in COMMON]
        self._waiting = list(dict.fromkeys(starts))[:MOST_PAGES]
        self._asked: set[str] = set()
        self._pages: dict[str, Mapping[str, StatedFunction]] = {}
        self.values: dict[str, Any] = {}
        """What views gave, as they are spelled in `watch`."""

    def pages(self) -> list[Question]:
        """The documents not read yet."""
        found = [one for one in self._waiting if one not in self._asked][: MOST_PAGES - len(self._asked)]
        self._asked.update(found)
        return [Question((Step(tool=FETCH, args={"url": url}),)) for url in found]

    def learn(self, url: str, result: Mapping[str, Any]) -> None:
        """Take in a page: what it states, and the documents that it links to."""
        if url not in self._asked or result.get("status") != 200:
            return
        self._pages[url] = functions(str(result.get("text", "")))
        for link in result.get("links", ()):
            spelled = self._urls.spelled(str(link), url, faces=False)
            if spelled and _DOCUMENT.search(spelled) and spelled not in self._waiting:
                self._waiting.append(spelled)

    def known(self, listed: Mapping[str, Any]) -> tuple[str, dict[str, StatedFunction]]:
        """The page that states most of the contract's functions, and these."""
        found = {
            url: {key: one for key, one in page.items() if key in listed} for url, page in self._pages.items()
        }
        url = max(found, key=lambda one: len(found[one]), default="")
        return url, found.get(url, {})

    def views(self, listed: Mapping[str, Any], *, all_: bool) -> list[Question]:
        """What the stated views give: those without arguments; or those of things and addresses, together."""
        url, known = self.known(listed)
        plain = [key for key, one in known.items() if one.reads and not one.types]
        if not all_:
            return [Question((_step({"watch": plain[:MOST_THINGS]}),))] if plain else []
        return [
            Question((_page(url), _step({"watch": watch})))
            for kind in dict.fromkeys(one.owner for one in known.values() if one.owner)
            if (watch := self._things_of_kind(kind, known))
        ]

    def _things_of_kind(self, kind: str, known: Mapping[str, StatedFunction]) -> list[str]:
        total = next((key for key, one in known.items() if one.total == kind and not one.types), "")
        last = number(self.values.get(total)) or 2
        owners = [key for key, one in known.items() if one.owner == kind and one.types == ("uint256",)]
        held = [key for key, one in known.items() if one.held == kind and one.types == ("address",)]
        holders = [self.owner(key, known)[1] for key in (1, 2, last)]
        watch = [f"{view}({key:064x})" for key in range(1, min(last, MOST_THINGS) + 2) for view in owners]
        watch += [f"{view}({one[2:]:0>64})" for view in held for one in dict.fromkeys(holders) if one]
        return list(dict.fromkeys([*([total] if total else []), *watch]))[:48]

    def owner(self, key: int, known: Mapping[str, StatedFunction], kind: str = "") -> tuple[str, str]:
        """The view of a thing's owner as it is spelled, and who it gave; "" where that is not known."""
        for view, one in known.items():
            if one.owner and kind in ("", one.owner) and one.types == ("uint256",):
                spelled = f"{view}({key:064x})"
                value = self.values.get(spelled)
                found = account(value[:66]) if isinstance(value, str) else ""
                return spelled, "" if found == ZERO else found
        return "", ""

    def owners(self, listed: Mapping[str, Any]) -> list[Question]:
        """Who owns the first things and the last one."""
        _, known = self.known(listed)
        totals = (number(self.values.get(key)) for key, one in known.items() if one.total)
        keys = dict.fromkeys((1, 2, 3, next(filter(None, totals), 3)))
        kinds = dict.fromkeys(one.owner for one in known.values() if one.owner)
        watch = [self.owner(key, known, kind)[0] for kind in kinds for key in keys]
        return [Question((_step({"watch": list(filter(None, watch))}),))] if any(watch) else []

    def calls(self, listed: Mapping[str, Any]) -> Iterator[tuple[str, Question]]:
        """A stranger's calls of what is reserved, and calls at the edges of ranges, by selector."""
        url, known = self.known(listed)
        for selector, one in known.items():
            if one.reads:
                continue
            if one.reserved:
                watch = [view for view in self._thing(one, known)[1:2] if view and one.of]
                for values in self._arguments(one, known):
                    args = _simulated(selector, one, values, watch)
                    yield selector, Question((_page(url), _step(args)))
            if one.range:
                yield from (
                    (selector, Question((_page(url), *steps))) for steps in self._edges(selector, one, known)
                )

    def _thing(self, one: StatedFunction, known: Mapping[str, StatedFunction]) -> tuple[int, str, str]:
        """A thing that the function may be asked for: its id, its owner's view, its owner."""
        kind = one.of if any(view.owner == one.of for view in known.values()) else ""
        found = ((key, *self.owner(key, known, kind)) for key in (1, 2, 3))
        return next((each for each in found if each[2]), (1, "", ""))

    def _arguments(self, one: StatedFunction, known: Mapping[str, StatedFunction]) -> Iterator[list[Any]]:
        """Arguments within what is stated: the least of a range, another's thing, the stranger itself."""
        key = str(self._thing(one, known)[0])
        sized = [one.range[0]] if one.range and one.range[0].isdigit() else ["1", CANARY]
        seen = []
        for size in sized:
            values = [
                key if kind.startswith("uint") and at == 0 and one.of else _value(kind, size)
                for at, kind in enumerate(one.types)
            ]
            if None not in values and values not in seen:
                seen.append(values)
                yield values

    def _edges(
        self, selector: str, one: StatedFunction, known: Mapping[str, StatedFunction]
    ) -> Iterator[tuple[Step, ...]]:
        """A value in the range, and one beyond each end of it; as the owner, where the thing has one."""
        low, high = (
            number(text if text.isdigit() else self.values.get(selector_of(text))) for text in one.range
        )
        key, _, owner = self._thing(one, known)
        if low is None or high is None or not low < high or not one.types or (one.of and not owner):
            return
        before = [str(key) if kind.startswith("uint") else _value(kind, "1") for kind in one.types[:-1]]
        watch = [selector_of(text) for text in one.range if not text.isdigit()]
        sender = {"sender": owner} if one.of else {}
        if None in before or (one.reserved and not one.of):
            return
        for beyond in (low - 1, high + 1):
            if beyond >= 0:
                pair = ([*before, str(value)] for value in (low if beyond < low else high, beyond))
                yield tuple(_step(_simulated(selector, one, values, watch) | sender) for values in pair)


def _simulated(
    selector: str, one: StatedFunction, values: Sequence[Any], watch: Sequence[str]
) -> dict[str, Any]:
    return {"simulate": selector, "types": list(one.types), "args": list(values), "watch": list(watch)}


def _value(kind: str, size: str) -> object:
    """A plain value of a type; None for one that needs more knowledge."""
    plain: dict[str, Any] = {"address": STRANGER, "bool": True, "string": "note", "bytes": "0x71a5"}
    if kind.startswith("uint"):
        return size if int(size) < 1 << int(kind[4:] or "256") else "1"
    if kind.startswith("bytes") and kind != "bytes":
        return "0x" + "00" * int(kind[5:])
    return plain.get(kind)


def _page(url: str) -> Step:
    return Step(tool=FETCH, args={"url": url})


def _step(args: Mapping[str, Any]) -> Step:
    return Step(tool=CHAIN, args=dict(args))
