"""Questions about functions that no dictionary names, by the types in their code. Pure.

First what exists is read by every view of one word. Then each function is simulated for a thing by a stranger
and by its holder; what that shows becomes questions that carry their own evidence (oracles/chain/unnamed.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.chain.diamond_map import DiamondMap
from fleet.oracles.chain.simulated import STRANGER, ZERO, account, number
from fleet.oracles.chain.unnamed import LEAST, MOST_NUMBER, MOST_TEXT
from fleet.personas.model import Step
from sandbox.tools.qa_chain import SPEC

KEYS = 8
"""Things of each kind that are read."""
MOST_THINGS = 3
MOST_VIEWS = 12
MOST_FUNCTIONS = 32
MOST_LIMITS = 12
"""Pairs of a function and a constant."""
WATCHED = 8
SMALL_VALUE, LARGE_VALUE = 2, (1 << 256) - 4_242
"""Values below and above what a thing holds, in most cases; as far as the type goes."""
LOW_ADDRESS, HIGH_ADDRESS = "0x" + "03" * 20, "0x" + "fc" * 20
"""The same for addresses: neither the caller's nor the holder's."""
_TEXTS = ("string", "bytes")


@dataclass(frozen=True, slots=True)
class HeldThing:
    """A thing that someone holds: the view that says who, its key in that view, "" for none."""

    view: str
    key: str
    holder: str

    def spelled(self, view: str) -> str:
        """Another view of the same thing."""
        return f"{view}({self.key})" if self.key else view


class UnnamedFunctions:
    """What is known of the functions without a name, and the next stage's questions."""

    def __init__(self, known: DiamondMap) -> None:
        self._map = known
        self._maker: tuple[Step, ...] = ()
        self._answers: dict[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}

    def learn(self, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep what a simulated call showed, by function and caller."""
        self._answers[str(args.get("simulate")), str(args.get("sender", STRANGER))] = (args, result)

    def _keyed_views(self) -> list[str]:
        """Views of one word."""
        found = [
            one
            for one, function in self._map.unnamed()
            if self._map.is_view(one) and function.types is not None and len(function.types) == 1
        ]
        return [one for one in found if (self._map.types(one) or ("",))[0] not in _TEXTS][:MOST_VIEWS]

    def reads(self) -> list[Question]:
        """Every view of one word for the first keys, each view's keys together."""
        return [
            _question({"watch": [f"{view}({key:064x})" for key in range(1, KEYS + 1)]})
            for view in self._keyed_views()
        ]

    def things(self) -> list[HeldThing]:
        """One held thing of each view that gives addresses: the first; and the contract's own holders."""
        found = []
        for view in self._keyed_views():
            for key in range(1, KEYS + 1):
                if holder := self._holder(f"{view}({key:064x})"):
                    found.append(HeldThing(view, f"{key:064x}", holder))
                    break
        for one, function in self._map.unnamed():
            if function.types == () and self._map.is_view(one) and (holder := self._holder(one)):
                found.append(HeldThing(one, "", holder))
        return found[:MOST_THINGS]

    def _holder(self, spelled: str) -> str:
        holder = account(self._map.values.get(spelled))
        return "" if holder in (ZERO, *self._map.facets.values()) else holder

    def agreements(self) -> list[Question]:
        """A view beside each that may lead back; and, beside the code, views that read the same variable."""
        views, made = self._keyed_views(), []
        values = self._map.values
        keys = [f"{key:064x}" for key in range(1, KEYS + 1)]
        for view in views:
            labels = [str(values.get(f"{view}({key})") or "")[2:] for key in keys]
            unique = [one for one in dict.fromkeys(labels) if len(one) == 64 and one.strip("0")]
            if len(unique) < 3:
                continue
            back = [other for other in views if other != view]
            made += [
                _question(
                    {"watch": [*(f"{view}({key})" for key in keys), *(f"{other}({one})" for one in unique)]}
                )
                for other in back
            ]
        functions = dict(self._map.unnamed())
        for index, view in enumerate(views):
            for other in views[index + 1 :]:
                if functions[view].reads and functions[view].reads == functions[other].reads:
                    watch = [f"{one}({key})" for one in (view, other) for key in keys]
                    made.append(Question((_step({"surface": True}), _step({"watch": watch}))))
        return made

    def calls(self, thing: HeldThing) -> list[Question]:
        """Every function for a thing, by a stranger and by its holder; and those that may make a new one."""
        self._answers.clear()
        made = []
        for selector in self._functions():
            if (arguments := self._arguments(selector, thing, SMALL_VALUE)) is not None:
                watch = self._watched_views(thing)
                made += [_call(selector, arguments, watch, sender) for sender in (STRANGER, thing.holder)]
        return made

    def makers(self, thing: HeldThing) -> list[Question]:
        """What a stranger may do, beside the first thing that does not exist yet."""
        keys = [f"{key:064x}" for key in range(1, KEYS + 1)] if thing.key else []
        new = [key for key in keys if number(self._map.values.get(f"{thing.view}({key})")) in (0, None)]
        if not new:
            return []
        watch, any_key = self._watched_views(HeldThing(thing.view, new[0], "")), HeldThing(thing.view, "", "")
        return [
            _call(selector, arguments, watch, STRANGER)
            for selector in self._functions()
            if (arguments := self._arguments(selector, any_key, SMALL_VALUE)) is not None
        ]

    def _functions(self) -> list[str]:
        found = [one for one, function in self._map.unnamed() if function.types is not None]
        return [one for one in found if not self._map.is_view(one)][:MOST_FUNCTIONS]

    def _watched_views(self, thing: HeldThing) -> list[str]:
        if thing.key:
            views = [one for one in self._keyed_views() if one != thing.view]
        else:
            views = [
                one for one, function in self._map.unnamed() if function.types == () and one != thing.view
            ]
            views = [one for one in views if self._map.is_view(one)]
        return [thing.spelled(one) for one in (thing.view, *views)][:WATCHED]

    def _arguments(
        self, selector: str, thing: HeldThing, size: int
    ) -> tuple[tuple[str, ...], list[Any]] | None:
        """Types and arguments: the thing's key first, then values of a size; None where they do not fit."""
        kinds = self._map.types(selector)
        if kinds is not None and size == LARGE_VALUE and selector not in self._map.stated:
            # code that compares a word with zero alone reads as a bool's; a real one refuses the value
            kinds = tuple("uint256" if kind == "bool" else kind for kind in kinds)
        if kinds is None or (thing.key and not (kinds and kinds[0].startswith(("uint", "bytes32")))):
            return None
        rest = kinds[1:] if thing.key else kinds
        values = [_value(kind, size) for kind in rest]
        if None in values:
            return None
        if thing.key:
            values.insert(0, str(int(thing.key, 16)) if kinds[0].startswith("uint") else f"0x{thing.key}")
        return kinds, values

    def held(self, thing: HeldThing) -> list[Question]:
        """A guard (a function that refused a stranger and accepted the holder), what a new thing begins with,
        and each open function twice, with unlike values."""
        guards, made = [], []
        for selector in self._functions():
            refused, done = (self._answers.get((selector, who)) for who in (STRANGER, thing.holder))
            if refused and done and not refused[1].get("succeeded") and done[1].get("succeeded"):
                guards.append(selector)
        for selector in self._functions():
            args, result = self._answers.get((selector, STRANGER), ({}, {}))
            moved = _changed(args, result)
            if not guards or not result.get("succeeded") or not moved:
                continue
            guard = max(guards, key=lambda one: len(moved & _changed(*self._answers[one, thing.holder])))
            pair = [
                Step(tool=SPEC.name, args=dict(self._answers[guard, who][0]))
                for who in (STRANGER, thing.holder)
            ]
            sized = [
                one
                for size in (SMALL_VALUE, LARGE_VALUE)
                if (one := self._arguments(selector, thing, size)) is not None
            ]
            calls = [_call(selector, one, self._watched_views(thing), STRANGER).steps[0] for one in sized]
            made.append(Question((*pair, *self._maker, *calls)))
        return made

    def keep_maker(self, thing: HeldThing) -> None:
        """Of the answers to `makers`, the call that made its caller the holder of a new thing."""
        self._maker = ()
        for args, result in self._answers.values():
            watch, after = args.get("watch", ()), result.get("after") or ()
            if watch and after and watch[0].startswith(thing.view) and account(after[0]) == result.get("by"):
                self._maker = (Step(tool=SPEC.name, args=dict(args)),)
                return

    def limits(self) -> list[Question]:
        """A function of a text or a number beside each constant of its contract: small, above, just above."""
        constants = [
            (one, limit)
            for one, function in self._map.unnamed()
            if function.constant and (limit := number(self._map.values.get(one))) is not None
        ]
        made = []
        functions = [(one, function.types or ()) for one, function in self._map.unnamed()]
        texts = [(one, kinds) for one, kinds in functions if kinds[-1:] and kinds[-1] in _TEXTS]
        numbers = [(one, kinds) for one, kinds in functions if not self._map.is_view(one)]
        for selector, kinds in dict.fromkeys((*texts, *numbers)):
            for view, limit in constants:
                most = MOST_TEXT if kinds[-1:] and kinds[-1] in _TEXTS else MOST_NUMBER
                if LEAST <= limit <= most and (steps := _edge(selector, kinds, view, limit)):
                    made.append(Question((_step({"surface": True}), *steps)))
        return made[:MOST_LIMITS]


def _changed(args: Mapping[str, Any], result: Mapping[str, Any]) -> frozenset[str]:
    """The views that a call changed."""
    seen = zip(args.get("watch", ()), result.get("before", ()), result.get("after", ()), strict=False)
    return frozenset(view for view, was, now in seen if was != now)


def _edge(selector: str, kinds: Sequence[str], view: str, limit: int) -> tuple[Step, ...]:
    """Calls with a small value, one above the limit, and one just above; none where a type is not known."""
    if not kinds or not (kinds[-1] in _TEXTS or kinds[-1].startswith("uint")):
        return ()
    before = [_value(kind, 1) for kind in kinds[:-1]]
    if None in before:
        return ()
    text = kinds[-1] in _TEXTS
    last = "string" if text else kinds[-1]
    steps = []
    for size in (2, limit + 2, limit + 1):
        value: Any = {"repeat": "a", "times": size} if text else str(size)
        args = {"simulate": selector, "types": [*kinds[:-1], last], "args": [*before, value]}
        steps.append(_step(args | {"watch": [view]}))
    return tuple(steps)


def _value(kind: str, size: int) -> object:
    """A value of a type; None for one that is not spelled here."""
    if kind.startswith("uint") and "[" not in kind:
        return str(min(size, (1 << int(kind[4:] or "256")) - 1))
    if kind == "bytes32":
        return f"0x{size:064x}"
    address = LOW_ADDRESS if size < LARGE_VALUE else HIGH_ADDRESS
    fixed: dict[str, Any] = {"address": address, "bool": True, "string": "note", "bytes": "0x71a5"}
    return fixed.get(kind)


def _call(
    selector: str, arguments: tuple[Sequence[str], Sequence[Any]], watch: Sequence[str], sender: str
) -> Question:
    kinds, values = arguments
    args = {"simulate": selector, "types": list(kinds), "args": list(values), "watch": list(watch)}
    return _question(args | {"sender": sender})


def _question(args: Mapping[str, Any]) -> Question:
    return Question((_step(args),))


def _step(args: Mapping[str, Any]) -> Step:
    return Step(tool=SPEC.name, args=dict(args))
