"""What to ask next of a thing that an account made by a form, from where everybody saw it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fleet.drivers.explore.account.api_rows import Row
from fleet.drivers.explore.account.site_rows import ITEMS, SiteForm, SiteKnowledge, edits, strings

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


Seen = Sequence[tuple[Row, Mapping[str, Any]]]


def follow(
    known: SiteKnowledge,
    thing: MadeThing,
    answers: Sequence[Mapping[str, Any]],
    may: Callable[[SiteForm], bool],
) -> Iterator[MadeThing | list[Row]]:
    """Further looks at it, and rows that end there."""
    seen = list(zip(thing.rows, answers, strict=False))
    if thing.form.file:
        yield from _file(known, thing.form, _linked(seen))
        return
    if not thing.form.whole and len(thing.form.free) > 1 and _incomplete(thing.form, seen):
        whole = replace(thing.form, whole=True)
        yield MadeThing(whole, tuple(known.written(whole)))
        return
    shown = [
        (row[0], row[2])
        for row, got in seen
        if row[1] == "GET" and got.get("one") and got.get("status") == 200
    ]
    lists = thing.lists or tuple(
        dict.fromkeys(path for who, path in shown if who == "one" and "{id}" not in path)
    )
    forms = [one for row, got in seen if row[:2] == ["one", "GET"] for one in known.read(row[2], got)]
    changing = {one.action: one for one in edits(forms) if may(one)}
    new = [path for path in _linked(seen) if "{id}" in path and path not in thing.items]
    if new and thing.depth < DEEP and not (thing.items and changing):
        items = tuple(dict.fromkeys((*thing.items, *new)))[:ITEMS]
        yield MadeThing(
            thing.form, tuple(known.item(thing.form, lists, items)), items, lists, thing.depth + 1
        )
    elif thing.items:
        pages = list(dict.fromkeys(path for who, path in shown if who == "one" and "{id}" in path))
        yield from (known.changed(thing.form, pages, edit, lists) for edit in list(changing.values())[:2])
    if thing.form.personal and not thing.depth:
        yield known.personal(thing.form)
    views = sorted((one for one in shown if one[0] != "one"), key=lambda one: one[0] != "other")
    public = [one for one in views if "{id}" not in one[1]]
    own = [one for one in views if "{id}" in one[1]]
    if where := (public if not thing.depth else own if not public and thing.depth == 1 else []):
        yield known.scripts(thing.form, where[0][1], where[0][0])


def _incomplete(form: SiteForm, seen: Seen) -> bool:
    """Whether the form was refused with one text, as one that lacks something is."""
    made = [got.get("status") for row, got in seen if row[:3] == ["one", "POST", form.action]]
    return bool(made) and set(made) <= {400, 422}


def _linked(seen: Seen) -> list[str]:
    """Where the pages of the maker lead."""
    answers = [got for row, got in seen if row[0] == "one"]
    found = (to for got in answers for to in (*strings(got.get("links")), str(got.get("leads", ""))))
    return list(dict.fromkeys(found))


def _file(known: SiteKnowledge, form: SiteForm, linked: Sequence[str]) -> Iterator[list[Row]]:
    """An uploaded file where a page of its maker leads to it."""
    files = [path for path in linked if "{one-mark}" in path] or [path for path in linked if "{id}" in path]
    if files:
        yield known.uploaded(form, files[0])
        yield known.climbed(form, files[0])
