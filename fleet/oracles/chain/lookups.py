"""An oracle of views without a known name, read at one block: what agrees on most things agrees on all. Pure.

Two relations alone: a lookup and its inverse, and two views that read the same variable of the contract. That
views happen to give the same of some things says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fleet.oracles.chain.code_functions import READS, TypedFunction
from fleet.oracles.chain.simulated import views, watched
from fleet.oracles.chain.unnamed import described, key_of, unnamed
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

FEW = 3
"""Fewest things of which two views agree before one more is called a contradiction."""


def _word(value: int) -> str:
    return f"0x{value:064x}"


def _labelled(last: int) -> tuple[Exchange, ...]:
    views = {f"0x0000000f({key:064x})": _word(key * 100) for key in range(1, 5)}
    views |= {f"0x00000010({key * 100:064x})": _word(last if key == 4 else key) for key in range(1, 5)}
    return (Exchange("qa_chain", {"watch": [*views]}, {"ok": True, "before": [*views.values()]}),)


@oracle(
    id="lookups-disagree",
    says="a lookup and its inverse, or two views of one variable, agree on every thing",
    severity=Severity.MEDIUM,
    surface="on-chain",
    judges=("chain",),
    yields_to=("views-disagree", "stated-views"),
    example=_labelled(2),
    control=_labelled(4),
)
def lookups_disagree(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Views of the same things at one block: a lookup and its inverse; two that read the same variable."""
    tables: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for one in watched(seen[-1]):
        if unnamed(one.spelled) and key_of(one.spelled) and isinstance(one.before, str):
            tables.setdefault(one.spelled[:10], {})[key_of(one.spelled)] = one.before[2:]
            names[one.spelled[:10]] = one.function
    yield from _inverse(tables, names)
    for at, exchange in enumerate(seen[:-1]):
        if functions := described(exchange):
            yield from _aliases(tables, names, functions, at)


def _inverse(tables: Mapping[str, Mapping[str, str]], names: Mapping[str, str]) -> Iterator[Observation]:
    """A label leads to its thing, as the labels of the others do: not to one that has another label."""
    for view, labels in tables.items():
        filled = {key: label for key, label in labels.items() if len(key) == 64 and label.strip("0")}
        unique = {key: label for key, label in filled.items() if [*filled.values()].count(label) == 1}
        for back, keys in tables.items():
            if back == view:
                continue
            led = {key: keys[label] for key, label in unique.items() if label in keys}
            right = [key for key, found in led.items() if int(found or "0", 16) == int(key, 16)]
            wrong = [
                (key, found)
                for key, found in led.items()
                if len(found) == 64 and found != key and found.strip("0") and found in labels
            ]
            if len(right) >= FEW and wrong:
                key, found = wrong[0]
                label = _label(labels[key])
                one = f"{names[view]}({int(key, 16)}) is {label}"
                words = f"{one}, but {names[back]}({label}) is {int(found, 16)}"
                yield observed(words, f"views {view} {back}", "before", where=views(view, back))


def _aliases(
    tables: Mapping[str, Mapping[str, str]],
    names: Mapping[str, str],
    functions: Mapping[str, TypedFunction],
    at: int,
) -> Iterator[Observation]:
    """Two views that read one and the same variable give the same of a thing, as they do of the others."""
    known = [(view, functions[view]) for view in tables if view in functions]
    for index, (view, one) in enumerate(known):
        for other, two in known[index + 1 :]:
            same = one.reads == two.reads and one.types == two.types and one.mutability in READS
            if not same or not one.reads:
                continue
            both = tables[view].keys() & tables[other].keys()
            pairs = {key: (tables[view][key], tables[other][key]) for key in sorted(both)}
            agree = {a for a, b in pairs.values() if a == b and a.strip("0")}
            if len(agree) >= FEW and (apart := [key for key, (a, b) in pairs.items() if a != b]):
                a, b = (f"{names[name]}({int(apart[0], 16)})" for name in (view, other))
                first, second = map(_label, pairs[apart[0]])
                words, key = f"{a} is {first}, but {b} is {second}", f"views {view} {other}"
                yield observed(words, key, "before", led=(at,), where=views(view, other))


def _label(word: str) -> str:
    """The first word of a view's value: a small number, or hex."""
    value = int(word[:64] or "0", 16)
    return str(value) if value < 1 << 64 else f"0x{word[:64]}"
