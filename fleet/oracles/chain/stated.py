"""Oracles of a contract's functions as documents state them: for whom, how much, of what. Pure.

Each is a question that begins with the document: what it states is part of the evidence, and without it
nothing is said of a function. A signature is believed only where the contract has its selector: it answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fleet.findings.field_words import shown
from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.chain.interfaces import StatedFunction, functions
from fleet.oracles.chain.simulated import STRANGER, ZERO, Simulated, account, number, of, views, watched
from fleet.oracles.echoes import OWN, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity

WORD = 64


def _documents(seen: Sequence[Exchange]) -> Iterator[tuple[int, Exchange, Mapping[str, StatedFunction]]]:
    """The documents of a question, the last one first; a page of a run's own name does not count."""
    for at in range(len(seen) - 1, -1, -1):
        one = seen[at]
        plain = set(one.args) == {"url"} and not OWN.search(str(one.args["url"]))
        if one.tool == "qa_fetch" and plain and one.result.get("status") == 200:
            yield at, one, functions(str(one.result.get("text", "")))


oracle = partial(Oracle, judges=("chain",), surface="on-chain")

_GUIDE = (
    "- `setRate(uint256)` sets the rate; for the owner only\n- `most()` is the largest load\n"
    "- `load(uint256)` loads a cart from 1 to most(); for anyone\n"
    "- `holder(uint256)` is the owner of a cart\n- `cart(uint256)` is the owner and the load of a cart\n"
)
_PAGE = Exchange("qa_fetch", {"url": "{site}/guide.md"}, {"status": 200, "text": _GUIDE})


def _called(signature: str, value: str, succeeded: bool, watch: Sequence[str] = ()) -> Exchange:
    args = {"simulate": selector_of(signature), "types": ["uint256"], "args": [value], "watch": list(watch)}
    read = ["0x" + f"{9:064x}" for _ in watch]
    answer = {"ok": True, "by": "0x" + "57" * 20, "succeeded": succeeded, "before": read, "after": read}
    return Exchange("qa_chain", args, answer)


def _loaded(beyond: bool) -> tuple[Exchange, ...]:
    watch = (selector_of("most()"),)
    return (_PAGE, _called("load(uint256)", "9", True, watch), _called("load(uint256)", "10", beyond, watch))


def _held(*owners: str) -> tuple[Exchange, ...]:
    views = [f"{selector_of(one)}({1:064x})" for one in ("holder(uint256)", "cart(uint256)")]
    words = ["0x" + owner * 20 for owner in owners]
    before = ["0x" + "0" * 24 + words[0][2:], "0x" + "0" * 24 + words[1][2:] + f"{5:064x}"]
    return (_PAGE, Exchange("qa_chain", {"watch": views}, {"ok": True, "before": before}))


@oracle(
    id="reserved-open",
    says="a function that the documents reserve for an owner or a role refuses a stranger",
    severity=Severity.HIGH,
    surface="security",
    yields_to=("open-to-strangers",),
    example=(_PAGE, _called("setRate(uint256)", "7", True)),
    control=(_PAGE, _called("setRate(uint256)", "7", False)),
)
def reserved_open(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a document, a stranger's call of what it reserves, which succeeds]."""
    call = of(seen[-1])
    if call is None or not call.plain or call.sender != STRANGER or not call.succeeded:
        return
    silent = not call.events and not any(call.changed)
    if silent and seen[-1].result.get("returned", "") not in ("", "0x"):
        return  # a refusal without a revert, or a view that a document does not call one
    for at, _page, known in _documents(seen[:-1]):
        one = known.get(call.selector)
        if one is None or not one.reserved or one.reads or (one.of and not _anothers(call, known)):
            continue
        whom = f"{one.reserved} of the {one.of}" if one.of else one.reserved
        title = f"{one.name}(), for the {whom}, works"
        yield observed(title, f"stranger {call.selector}", "succeeded", led=(at,))
        return


def _anothers(call: Simulated, known: Mapping[str, StatedFunction]) -> bool:
    """Whether the thing that the first argument names exists and is not the caller's, by what was watched."""
    key = number(call.args[0]) if call.args else None
    for one in call.readings:
        view = known.get(one.spelled[:10])
        if view is not None and view.owner and key is not None and _key(one.spelled) == key:
            return _account(one.before) not in ("", ZERO, call.by)
    return False


def _key(spelled: str) -> int | None:
    """The one word that a view is asked for."""
    inside = spelled[11:-1]
    return int(inside, 16) if len(inside) == WORD and spelled[10:11] == "(" else None


def _account(value: object) -> str:
    """The first word of a view's value as an address."""
    return account(value[: WORD + 2]) if isinstance(value, str) else ""


@oracle(
    id="stated-range",
    says="a function refuses what is beyond the range that the documents state",
    severity=Severity.MEDIUM,
    example=_loaded(True),
    control=_loaded(False),
)
def stated_range(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a document, a call with a value of the range that it states, the same call with one beyond it]."""
    call = of(seen[-1])
    if call is None or not call.succeeded or call.args == () or seen[-1].args.get("code"):
        return
    value = number(call.args[-1])
    for at, page, known in _documents(seen[:-1]):
        one = known.get(call.selector)
        if one is None or not one.range or value is None or not one.sized:
            continue
        read = {reading.spelled: reading.before for reading in call.readings}
        low, high = (
            int(text) if text.isdigit() else number(read.get(selector_of(text))) for text in one.range
        )
        within = [
            index
            for index, other in enumerate(seen[:-1])
            if low is not None and high is not None and _but_the_last(other) == _but_the_last(seen[-1])
            if low <= (number(other.args["args"][-1]) or 0) <= high and other.result.get("succeeded")
        ]
        if low is None or high is None or not low < high or low <= value <= high or not within:
            continue
        limits = f"{shown(low)} to {shown(high)}"
        kind = "below" if value < low else "above"
        title = f"{one.name}() accepts {shown(value)}; {route(page.args)} states {limits}"
        yield observed(
            title, f"range {call.selector} {kind}", "succeeded", "before", led=tuple(sorted({at, within[-1]}))
        )
        return


def _but_the_last(call: Exchange) -> tuple[str, Mapping[str, Any], Sequence[Any]] | None:
    """A call without its last argument; None where it has none."""
    given = call.args.get("args", ())
    return (call.tool, {**call.args, "args": ()}, list(given[:-1])) if given else None


@oracle(
    id="stated-views",
    says="views that are the same by the documents are the same at one block",
    severity=Severity.MEDIUM,
    example=_held("11", "22"),
    control=_held("11", "11"),
)
def stated_views(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a document, views that speak of the same things by it, read at one block]."""
    values = {one.spelled: one.before for one in watched(seen[-1])}
    for at, _page, known in _documents(seen[:-1]) if values else ():
        kinds = dict.fromkeys(one.owner for one in known.values() if one.owner)
        clash = next((words for kind in kinds for words in _clashes(kind, known, values)), None)
        if clash:
            where = views(*clash[0].split())
            yield observed(clash[1], f"stated-views {clash[0]}", "before", led=(at,), where=where)
            return


def _clashes(
    kind: str, known: Mapping[str, StatedFunction], values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """What contradicts what of the things of one kind: the views' selectors, and in words."""
    owners = [key for key, one in known.items() if one.owner == kind and one.types == ("uint256",)]
    read: dict[str, dict[int, str]] = {key: {} for key in owners}
    for spelled, value in values.items():
        key = _key(spelled)
        if spelled[:10] in read and key is not None and _account(value):
            read[spelled[:10]][key] = _account(value)
    first, *others = owners or [""]
    for other in others:
        for key in sorted(read[first].keys() & read[other].keys()):
            one, two = read[first][key], read[other][key]
            if one != two:
                names = (_spoken(known[first], key), _spoken(known[other], key))
                yield f"{first} {other}", f"{names[0]} is {one}, but {names[1]} is {two}"
    if first:
        yield from _counts(kind, known, values, read[first])


def _counts(
    kind: str, known: Mapping[str, StatedFunction], values: Mapping[str, Any], owners: Mapping[int, str]
) -> Iterator[tuple[str, str]]:
    """A total beside the things that exist, and what an address has beside what it owns."""
    selector = next((key for key, one in known.items() if one.total == kind and not one.types), "")
    total = number(values.get(selector))
    if total is None or set(range(1, total + 2)) - set(owners):
        return
    there = [key for key, owner in owners.items() if owner != ZERO]
    name = known[selector].signature
    if len(there) > total or (known[selector].ids and total and owners[total] == ZERO):
        yield selector, f"{name} is {total}, but {len(there)} of the ids up to {max(owners)} have an owner"
        return
    if len(there) != total:
        return  # some may be further away
    for key, one in known.items():
        for spelled, value in values.items() if one.held == kind and one.types == ("address",) else ():
            who = "0x" + spelled[11:-1][-40:] if spelled.startswith(f"{key}(") else ""
            held = sum(owner == who for owner in owners.values())
            if who and number(value) not in (None, held):
                yield key, f"{one.name}({who}) is {number(value)}, but it owns {held}"


def _spoken(one: StatedFunction, key: int) -> str:
    return f"{one.name}({key})"
