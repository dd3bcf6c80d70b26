"""Oracles of the chain's views, read at one block: what they say of the same thing agrees. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.findings.field_words import shown
from fleet.oracles.chain.simulated import ZERO, account, number, views, watched
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

INTERFACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "0x7f5828d0": ("ERC-173", ("0x8da5cb5b", "0xf2fde38b")),
    "0x48e2b093": ("the diamond's loupe", ("0x7a0ed627", "0xadfca15e", "0x52ef6b2c", "0xcdffacc6")),
    "0x1f931c1c": ("the diamond's cut", ("0x1f931c1c",)),
    "0x80ac58cd": ("ERC-721", ("0x6352211e", "0x70a08231", "0x23b872dd", "0x081812fc")),
}
"""ERC-165 identifiers: their name, and selectors that they stand for."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Views that contradict each other. `kind` names the relation."""

    kind: str
    words: str


class Snapshot:
    """What was read at one block, by view; a view that was not read is not there."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def has(self, *views: str) -> bool:
        return all(view in self.values for view in views)

    def of(self, name: str) -> Iterator[tuple[str, Any]]:
        """The argument and the value of each read of a view of one argument."""
        for view, value in self.values.items():
            if view.startswith(f"{name}(") and view.endswith(")"):
                yield view[len(name) + 1 : -1], value

    def clash(self, kind: str, *views: str) -> Clash:
        """These views, with what they gave."""
        shown = (f"{view} {_show(self.values[view])}" for view in dict.fromkeys(views))
        return Clash(kind, ", ".join(shown))


def _show(value: object) -> str:
    return "reverts" if value is None else f"is {shown(value)}"


def _owners(at: Snapshot) -> Iterator[Clash]:
    """An id's owner is one: by id, by the token, by its name."""
    for key, owner in at.of("ownerOfId"):
        token = f"ownerOf({key})"
        if at.has(token) and account(owner) not in ("", ZERO):
            if at.values[token] != owner:
                yield at.clash("ownerOfId ownerOf", f"ownerOfId({key})", token)
        elif at.has(token) and account(owner) == ZERO and account(at.values[token]) not in ("", ZERO):
            yield at.clash("ownerOfId ownerOf", f"ownerOfId({key})", token)
    for name, owner in at.of("ownerOfName"):
        found = at.values.get(f"idOfName({name})")
        held = f"ownerOfId({found})"
        if number(found) and at.has(held) and owner != at.values[held]:
            yield at.clash("ownerOfName ownerOfId", f"ownerOfName({name})", f"idOfName({name})", held)


def _names(at: Snapshot) -> Iterator[Clash]:
    """A name and its id lead to each other; a name is taken when it has an id."""
    for key, name in at.of("nameOfId"):
        back = f"idOfName({name})"
        if name and at.has(back) and number(at.values[back]) != number(key):
            yield at.clash("nameOfId idOfName", f"nameOfId({key})", back)
    for name, taken in at.of("isTaken"):
        key = f"idOfName({name})"
        known = number(at.values[key]) if at.has(key) else None
        if isinstance(taken, bool) and known is not None and taken != bool(known):
            yield at.clash("isTaken idOfName", f"isTaken({name})", key)


def _mains(at: Snapshot) -> Iterator[Clash]:
    """The name that an account goes by is one of its own, and says so."""
    for owner, found in at.of("mainOf"):
        key = number(found)
        held, flag, name = f"ownerOfId({key})", f"isMain({key})", f"mainNameOf({owner})"
        if key and at.has(held, flag) and at.values[held] == owner and at.values[flag] is False:
            yield at.clash("mainOf isMain", f"mainOf({owner})", held, flag)
        if key and at.has(name, f"nameOfId({key})") and at.values[name] != at.values[f"nameOfId({key})"]:
            yield at.clash("mainNameOf nameOfId", f"mainOf({owner})", name, f"nameOfId({key})")
    for text, flag in at.of("isMain"):
        main = f"mainOf({at.values.get(f'ownerOfId({text})')})"
        if flag is True and at.has(main) and number(at.values[main]) != number(text):
            yield at.clash("isMain mainOf", f"isMain({text})", f"ownerOfId({text})", main)


def _counts(at: Snapshot) -> Iterator[Clash]:
    """A count is where its range ends, and the sum of what is there."""
    entries, following = number(at.values.get("feedbackCount")), number(at.values.get("nextId"))
    if entries is not None:
        last, beyond = f"feedbackAt({entries - 1})", f"feedbackAt({entries})"
        if entries and at.has(last) and at.values[last] is None:
            yield at.clash("feedbackCount feedbackAt", "feedbackCount", last)
        if at.has(beyond) and at.values[beyond] is not None:
            yield at.clash("feedbackCount feedbackAt", "feedbackCount", beyond)
    if following is None:
        return
    fresh = f"ownerOfId({following})"
    if at.has(fresh) and account(at.values[fresh]) not in ("", ZERO):
        yield at.clash("nextId ownerOfId", "nextId", fresh)
    every = [f"ownerOfId({key})" for key in range(1, following)]
    if not at.has("ownerOf(1)", *every):  # a balance of tokens that are ids
        return
    for owner, balance in at.of("balanceOf"):
        held = sum(at.values[view] == owner for view in every)
        if number(balance) not in (None, held):
            words = f"balanceOf({owner}) is {balance}, and it owns {held} of the ids 1 to {following - 1}"
            yield Clash("balanceOf ownerOfId", words)


def _entries(at: Snapshot) -> Iterator[Clash]:
    """A range of the log is its entries, one after the other, up to its count."""
    total = number(at.values.get("feedbackCount"))
    for text, found in at.of("feedbackRange"):
        start, _, asked = text.partition(",")
        first, most = number(start), number(asked)
        columns = found if isinstance(found, list) and all(isinstance(one, list) for one in found) else None
        if total is None or first is None or most is None or first + most >= 1 << 64:
            continue
        wanted = max(0, min(most, total - first))
        if columns is None or any(len(one) != wanted for one in columns):
            words = f"feedbackCount is {total}, but feedbackRange({text}) does not give {wanted} entries"
            yield Clash("feedbackRange feedbackCount", words)
            continue
        for index, entry in enumerate(zip(*columns, strict=True)):
            single = f"feedbackAt({first + index})"
            if at.has(single) and at.values[single] != list(entry):
                words = f"entry {index} of feedbackRange({text}) is not that of {single}"
                yield Clash("feedbackRange feedbackAt", words)


def _facets(at: Snapshot) -> Iterator[Clash]:
    """The loupe's views agree, and a selector belongs to one facet."""
    found = at.values.get("facets")
    if not isinstance(found, list) or not all(isinstance(one, list) and len(one) == 2 for one in found):
        return
    routes: dict[str, str] = {}
    for facet, selectors in found:
        for selector in selectors:
            if selector in routes:
                words = f"facets lists {selector} twice: of {routes[selector]} and of {facet}"
                yield Clash("facets selector", words)
            routes[selector] = facet
    addresses = at.values.get("facetAddresses")
    if isinstance(addresses, list) and set(addresses) != {facet for facet, _ in found}:
        yield Clash("facets facetAddresses", "facetAddresses names other facets than facets")
    for facet, selectors in found:
        view = f"facetFunctionSelectors({facet})"
        if at.has(view) and set(at.values[view] or ()) != set(selectors):
            yield Clash("facets facetFunctionSelectors", f"{view} gives other selectors than facets")
    for selector, facet in at.of("facetAddress"):
        if facet is not None and facet != routes.get(selector, ZERO):
            words = f"facetAddress({selector}) is {facet}, by facets it is {routes.get(selector, ZERO)}"
            yield Clash("facets facetAddress", words)
    yield from _interfaces(at, routes)


def _interfaces(at: Snapshot, routes: Mapping[str, str]) -> Iterator[Clash]:
    """An interface that is claimed is there (ERC-165); 0xffffffff is never claimed."""
    for text, claimed in at.of("supportsInterface"):
        if claimed is not True:
            continue
        if text == "0xffffffff":
            yield Clash("supportsInterface 0xffffffff", "supportsInterface(0xffffffff) is true")
        name, selectors = INTERFACES.get(text, ("", ()))
        missing = [one for one in selectors if one not in routes]
        if missing:
            words = f"supportsInterface({text}) claims {name}, and {', '.join(missing)} belongs to no facet"
            yield Clash(f"supportsInterface {text}", words)


RELATIONS: tuple[tuple[Callable[[Snapshot], Iterator[Clash]], Severity], ...] = (
    (_owners, Severity.HIGH),
    (_names, Severity.HIGH),
    (_mains, Severity.MEDIUM),
    (_counts, Severity.MEDIUM),
    (_entries, Severity.MEDIUM),
    (_facets, Severity.LOW),
)


def _read(**values: object) -> tuple[Exchange, ...]:
    views = {f"{name}(1)": value for name, value in values.items()}
    answer = {"ok": True, "before": list(views.values())}
    return (Exchange("qa_chain", {"watch": list(views)}, answer),)


_ONE, _OTHER = "0x" + "11" * 20, "0x" + "22" * 20


@oracle(
    id="views-disagree",
    says="views of the same thing at the same block agree",
    severity=Severity.MEDIUM,
    surface="on-chain",
    judges=("chain",),
    example=_read(ownerOfId=_ONE, ownerOf=_OTHER),
    control=_read(ownerOfId=_ONE, ownerOf=_ONE),
)
def views_disagree(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    at = Snapshot({one.spelled: one.before for one in watched(seen[-1])})
    for relation, severity in RELATIONS:
        reported: set[str] = set()
        for clash in relation(at):
            if clash.kind in reported:
                continue
            reported.add(clash.kind)
            where = views(*clash.kind.split())
            yield observed(clash.words, f"views {clash.kind}", "before", severity=severity, where=where)
