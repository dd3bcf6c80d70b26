"""Oracles of what an account makes by a site's forms: who reads it, who changes it, and in whose name. Pure.

That something is one account's own is never guessed from its path: see each definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from fleet.oracles.account.rows import on, oracle
from fleet.oracles.account.site_rows import (
    MARKED,
    NOBODYS,
    SENT,
    SERVED,
    SiteStep,
    reads,
    site_row,
    site_steps,
)
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line

NO_RANK = ("role", "qa")
"""Beside RANKS: a word that names none."""
RANKS = (
    *(("role", name) for name in ("admin", "administrator", "manager", "moderator", "staff", "owner")),
    *((name, "1") for name in ("is_admin", "admin", "is_staff")),
)
"""Fields of a form, which it does not show, that may raise who sends it."""
_ITEM, _LIST = "/things/{id}", "/things"
_BOTH: dict[str, Any] = SERVED | {"one": True, "other": True}


def _reading(got: dict[str, Any]) -> tuple[Exchange, ...]:
    return site_row(
        ("one", "GET", _LIST, {}, MARKED | {"own": True}),
        ("other", "GET", _LIST, {}, SERVED),
        ("one", "GET", _ITEM, {}, MARKED),
        ("anonymous", "GET", _ITEM, {}, {"status": 302, "leads": "/login"}),
        ("other", "GET", _ITEM, {}, got),
    )


def _changing(got: dict[str, Any]) -> tuple[Exchange, ...]:
    return site_row(
        ("one", "GET", _ITEM, {}, MARKED),
        ("other", "GET", _ITEM, {}, {"status": 404}),
        ("other", "POST", _ITEM, {"text": "{mark}"}, SENT),
        ("one", "GET", _ITEM, {}, got),
    )


def _ranking(link: str) -> tuple[Exchange, ...]:
    posts: tuple[dict[str, str], ...] = ({}, dict([NO_RANK]), dict([RANKS[0]]))
    pages = [SERVED | {"links": ["/profile"]}] * 2 + [SERVED | {"links": ["/profile", link]}]
    pairs = (
        (("one", "POST", "/profile", given, SENT), ("one", "GET", "/profile", dict[str, Any](), page))
        for given, page in zip(posts, pages, strict=True)
    )
    return site_row(*(step for pair in pairs for step in pair))


def _forging(got: dict[str, Any]) -> tuple[Exchange, ...]:
    form = {"method": "POST", "action": "/things", "fields": {"csrf": "token", "text": "textarea"}}
    return site_row(
        ("one", "GET", "/profile", {}, MARKED | {"forms": [form]}),
        ("foreign", "POST", "/profile", {"text": "{mark}"}, SENT),
        ("one", "GET", "/profile", {}, got),
    )


@oracle(
    id="form-read",
    says="what an account made by a form, and a page of its own lists to it alone, no other account reads",
    severity=Severity.HIGH,
    example=_reading(MARKED),
    control=_reading({"status": 404}),
)
def form_read(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A thing that no page shows to the other account and no visitor reads, is given to it by its id.

    It is private if a page that speaks of one's own lists it to its maker alone, or if the thing itself is
    refused to the other and only a page below it is not.
    """
    steps = site_steps(seen[-1])
    for step in (one for one in reads(steps, "other") if one.about and one.good):
        if _private(steps, step.path) if step.shows("one") else _left_open(steps, step.path):
            title = f"GET {line(step.path, 90)} answers another account"
            yield observed(title, f"form-read {step.path}", "answers", where=on(seen[-1], step.path))
            return


def _left_open(steps: Sequence[SiteStep], path: str) -> bool:
    """Whether a page without a mark is below one that the other is refused and its maker reads, and neither a
    visitor reads it nor is there one for an id that nothing has."""
    visitors, nobodys = (
        list(reads(steps, *one)) for one in (("anonymous", path), ("other", path.replace("{id}", NOBODYS)))
    )
    if NOBODYS in path or not visitors or not nobodys or any(one.good for one in (*visitors, *nobodys)):
        return False
    refused = [one.path for one in reads(steps, "other") if one.about and one.status in (401, 403, 404)]
    above = [one for one in refused if path.startswith(f"{one}/")]
    return all(any(one.good for one in reads(steps, "one", each)) for each in (path, *above)) and bool(above)


def _private(steps: Sequence[SiteStep], path: str) -> bool:
    """Whether a thing is its maker's alone by what pages beside it say."""
    mine = any(one.shows("one") for one in reads(steps, "one", path))
    visitors = list(reads(steps, "anonymous", path))
    closed = bool(visitors) and not any(one.shows("one") for one in visitors)
    listed = any(one.shows("one") for one in reads(steps, "other") if not one.about)
    if not mine or not closed or listed:
        return False
    # a page of one's own lists the thing to its maker, and is without it for the other
    own = [one for one in reads(steps, "one") if not one.about and one.shows("one") and one.got.get("own")]
    if any(other.good for one in own for other in reads(steps, "other", one.path)):
        return True
    # the other is refused a thing, which its maker reads, and served a page below it
    refused = [one for one in reads(steps, "other") if one.about and not one.good]
    above = [one for one in refused if path.startswith((f"{one.path}/", f"{one.path}?", f"{one.path}."))]
    return any(one.shows("one") for refusal in above for one in reads(steps, "one", refusal.path))


@oracle(
    id="form-change",
    says="what an account made by a form, no account changes that may not read it or is not offered the form",
    severity=Severity.CRITICAL,
    example=_changing(_BOTH),
    control=_changing(MARKED),
)
def form_change(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The maker reads the other's words in place of its own, after a form that the other may not use.

    It may not if it does not read the thing, if the thing is private (as above), or if a page that both read
    offers the form to the maker alone.
    """
    steps = site_steps(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "other" or step.method != "POST" or not step.of_one or not step.taken:
            continue
        before = [
            one.path for one in reads(steps[:at], "one") if one.shows("one") and not one.got.get("other")
        ]
        after = [one for one in reads(steps[at:], "one") if one.shows("other") and one.path in before]
        if _withdrawn(steps, at):
            yield _changes(seen, step)
            return
        for page in (one for one in after if one.about or not one.got.get("one")):
            theirs = list(reads(steps[:at], "other", page.path))
            unread = bool(theirs) and not any(one.shows("one") for one in theirs)
            kept = page.about and _private(steps[:at], page.path)
            if unread or kept or _offered_to_one(steps[:at], step.path, step.page):
                yield _changes(seen, step)
                return


def _changes(seen: Sequence[Exchange], step: SiteStep) -> Observation:
    title = f"POST {line(step.path, 90)} succeeds for another account"
    where = on(seen[-1], step.path, "POST")
    return observed(title, f"form-change {step.path}", "answers", where=where)


def _withdrawn(steps: Sequence[SiteStep], at: int) -> bool:
    """Whether the form that the other sent is offered to the maker no more: it was, twice, on a page that the
    other is refused."""
    sent = steps[at]
    before, after = (list(reads(part, "one", sent.page)) for part in (steps[:at], steps[at:]))
    refused = [one for one in reads(steps[:at], "other", sent.page) if one.status in (401, 403, 404)]
    offered = [one.good and one.offers(sent.path) for one in before[-2:]]
    return (
        bool(refused and after)
        and offered == [True, True]
        and after[0].good
        and not after[0].offers(sent.path)
    )


def _offered_to_one(steps: Sequence[SiteStep], *paths: str) -> bool:
    """Whether pages that both read offer one of these paths to `one`, and none of them to the other."""
    pairs = [
        (mine, theirs)
        for mine in reads(steps, "one")
        for theirs in reads(steps, "other", mine.path)
        if mine.good and theirs.good
    ]
    wanted = tuple(filter(None, paths))
    return any(mine.offers(*wanted) for mine, _ in pairs) and not any(one.offers(*wanted) for _, one in pairs)


@oracle(
    id="form-ranked",
    says="a role that a form does not ask for is not taken from who sends it",
    severity=Severity.HIGH,
    example=_ranking("/staff"),
    control=_ranking("/profile"),
)
def form_ranked(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The form of one's own record, plain and with a word that names no rank, and its page after each; then
    with the name of a role, and its page links to what it never did before. Pages that linked to other things
    each time, before any role was sent, show nothing."""
    before = list[frozenset[str]]()
    for step, page in pairwise(site_steps(seen[-1])):
        asked = (step.who, step.method, page.who, page.method)
        if asked != ("one", "POST", "one", "GET") or not page.good:
            continue
        links = frozenset(map(str, page.got.get("links", ())))
        raised = [pair for pair in RANKS if pair in step.given.items()]
        if not raised:
            before.append(links)
        elif len(before) > 1 and len(set(before)) == 1 and (new := sorted(links - before[0])):
            name, value = raised[0]
            title = f"POST {line(step.path, 60)} takes {name}={value}: its sender is shown {line(new[0], 60)}"
            where = on(seen[-1], step.path, "POST") | {"field": name}
            yield observed(title, f"form-ranked {step.path}", "answers", where=where)
            return


@oracle(
    id="form-forged",
    says="a form that a foreign site makes a browser send, without its token, changes nothing",
    severity=Severity.MEDIUM,
    example=_forging(_BOTH),
    control=_forging(MARKED),
)
def form_forged(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """What a page of another site makes a browser send takes effect, where the site's forms carry tokens.

    A form that a visitor without a session may send as well was sent by one before: then its words are there.
    """
    steps = site_steps(seen[-1])
    tokens = any("token" in one.get("fields", {}).values() for step in steps for one in step.forms)
    for at, step in enumerate(steps):
        if step.who != "foreign" or not step.taken or not tokens:
            continue
        before = {one.path: one for one in reads(steps[:at], "one")}  # the last time that each was read
        calm = {path for path, one in before.items() if one.good and not one.got.get("other")}
        if any(one.shows("other") and one.path in calm for one in reads(steps[at:], "one")):
            title = f"POST {line(step.path, 90)} takes effect without its token"
            where = on(seen[-1], step.path, "POST")
            yield observed(title, f"form-forged {step.path}", "answers", where=where)
            return
