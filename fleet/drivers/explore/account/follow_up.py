"""What to ask next of a thing that an account made by a form, from where everybody saw it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fleet.drivers.explore.account.api_rows import Row
from fleet.drivers.explore.account.site_rows import (
    ITEMS,
    SiteForm,
    SiteKnowledge,
    edits,
    shown,
    strings,
    visitable,
)

_CONFIRMS = re.compile(r"(?i)/confirm(?=/|\?|$)")
"""The last step of what was begun here ends nothing, whatever else it is called."""
STEPS = 3
"""Forms of one flow."""
DEEP = 2
"""Looks at a thing's own pages: the second where only the first one led to the form that changes it."""


@dataclass(frozen=True, slots=True)
class MadeThing:
    """A look at something made: its form and its steps; `items` are its own pages that were looked at,
    `lists` the other pages with its mark, `depth` the number of looks at its own pages."""

    form: SiteForm
    rows: tuple[Row, ...]
    items: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Flow:
    """Something begun by a form without a text, in several steps: their forms and their rows, and its own
    page, once that is known."""

    forms: tuple[SiteForm, ...]
    rows: tuple[Row, ...]
    item: str = ""


def flow_of(*forms: SiteForm) -> Flow:
    """Sent as their pages have them."""
    return Flow(forms, tuple(["one", "POST", form.action, {}, form.page] for form in forms))


def go_on(
    known: SiteKnowledge,
    flow: Flow,
    answers: Sequence[Mapping[str, Any]],
    may_post: Callable[[str], bool],
) -> Iterator[Flow | list[Row]]:
    """The next form that it leads to, a look at what was made in the end, and what is below its page."""
    last = answers[len(flow.forms) - 1] if len(answers) >= len(flow.forms) else {}
    made = flow.rows[: len(flow.forms)]
    if flow.item:
        seen = zip(flow.rows, answers, strict=False)
        got = next((got for row, got in seen if row[:3] == ["one", "GET", flow.item]), {})
        forms = [one for one in shown(flow.item, got) if "{id}" in one.action and may_post(one.action)]
        pages = [to for to in strings(got.get("links")) if to.startswith(f"{flow.item}/") and visitable(to)]
        if forms or pages:
            yield known.below(made, flow.item, pages[:ITEMS], forms[:ITEMS])
        return
    page = str(last.get("leads", ""))
    new = [one for one in shown(page, last) if "{id}" not in one.action and may_post(one.action)]
    new = [one for one in new if one.action not in known.forms and visitable(_CONFIRMS.sub("", one.action))]
    if new and len(flow.forms) < STEPS:
        yield flow_of(*flow.forms, new[0])
    elif items := [one for one in (page, *strings(last.get("links"))) if "{id}" in one and visitable(one)]:
        yield Flow(flow.forms, (*made, ["one", "GET", items[0], {}, ""]), items[0])


def follow(
    known: SiteKnowledge,
    thing: MadeThing,
    answers: Sequence[Mapping[str, Any]],
    may_post: Callable[[str], bool],
) -> Iterator[MadeThing | list[Row]]:
    """Further looks at it, and rows that end there."""
    seen = list(zip(thing.rows, answers, strict=False))
    answers_to_maker = [got for row, got in seen if row[0] == "one"]
    links = (to for got in answers_to_maker for to in (*strings(got.get("links")), str(got.get("leads", ""))))
    linked = list(dict.fromkeys(links))
    marked = [
        (row[0], row[2])
        for row, got in seen
        if row[1] == "GET" and got.get("one") and got.get("status") == 200
    ]
    lists = thing.lists or tuple(
        dict.fromkeys(path for who, path in marked if who == "one" and "{id}" not in path)
    )
    if thing.form.file:
        files = [path for path in linked if "{one-mark}" in path]
        if files := files or [path for path in linked if "{id}" in path]:
            yield known.uploaded(thing.form, files[0])
            yield known.climbed(thing.form, files[0])
        if named := [path for path in linked if "{id}" in path]:
            yield known.item(thing.form, lists, named)
        return
    made = [got.get("status") for row, got in seen if row[:3] == ["one", "POST", thing.form.action]]
    incomplete = bool(made) and set(made) <= {400, 422}
    if not thing.form.whole and len(thing.form.free) > 1 and incomplete:
        whole = replace(thing.form, whole=True)
        yield MadeThing(whole, tuple(known.written(whole)))
        return
    forms = [one for row, got in seen if row[:2] == ["one", "GET"] for one in known.read(row[2], got)]
    changing = {one.action: one for one in edits(forms) if may_post(one.action)}
    new = [path for path in linked if "{id}" in path and path not in thing.items]
    if new and thing.depth < DEEP and not (thing.items and changing):
        items = tuple(dict.fromkeys((*thing.items, *new)))[:ITEMS]
        yield MadeThing(
            thing.form, tuple(known.item(thing.form, lists, items)), items, lists, thing.depth + 1
        )
    elif thing.items:
        pages = list(dict.fromkeys(path for who, path in marked if who == "one" and "{id}" in path))
        yield from (known.changed(thing.form, pages, edit, lists) for edit in list(changing.values())[:2])
    if thing.form.personal and not thing.depth:
        yield known.personal(thing.form)
    views = sorted((one for one in marked if one[0] != "one"), key=lambda one: one[0] != "other")
    public = [one for one in views if "{id}" not in one[1]]
    own = [one for one in views if "{id}" in one[1]]
    if where := (public if not thing.depth else own if not public and thing.depth == 1 else []):
        yield known.scripts(thing.form, where[0][1], where[0][0])
