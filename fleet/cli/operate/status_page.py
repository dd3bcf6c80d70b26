"""The morning page of `fleet status`: one screen made of the data of `--json`. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size

from fleet.app.status_words import COSTS, NEXT_SHOWN, cost, details, health, stuck
from fleet.clock import clock_time, minute
from fleet.store.tables.units import FLEET, amount
from fleet.text import clean, line, spoken
from fleet.triage.outputs.digest import GROUPS, STRANGERS

WRONG_SHOWN = 6
FEW = 4
"""Lines of what is on its way to the list, of what is not proven, and of what limits left, at most each."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """One line of the page; `bad` is shown in red."""

    text: str
    bad: bool = False


def page(data: Mapping[str, Any], *, width: int, height: int) -> list[PageLine]:
    """At most `height` lines of at most `width` characters, all cleaned; titles give way first."""
    top = [PageLine(text) for text in textwrap.wrap(line(health(data), 600), width)]
    top += _state(data, width)
    wrong = [PageLine(f"WRONG     {why}", bad=True) for why in details(data)]
    if len(wrong) > WRONG_SHOWN:
        left = len(wrong) - WRONG_SHOWN + 1
        wrong = [*wrong[: WRONG_SHOWN - 1], PageLine(f"WRONG     {left} more: fleet status --json", bad=True)]
    costs = [PageLine(text) for text in _costs(data)]
    late = stuck(data)  # which WRONG says
    groups = {
        name: [
            f"{one['severity']:8} {one['surface']:8} {line(one['title'])} (run {one['run']}: {one['why']})"
            for one in data[name]
            if one not in late
        ]
        for name in ("proving", "unproven")
    }
    groups["left"] = [f"{one['persona']} {one['part']}: {one['reason']}" for one in data["left"]]
    groups["posture"] = [
        f"block {one['block']}, {'taken back: ' * bool(one['undoes'])}{one['judged']} {one['by']}".rstrip()
        + f": {one['part']}: {one['before'] or 'none'} → {one['after'] or 'none'}"
        for one in data["posture"]
    ]
    between = [one for name, rows in groups.items() for one in _few(name, rows)]
    room = height - len(top) - len(wrong) - len(between) - len(costs)
    made = [*top, *wrong, *between, *_digest(data, max(room, 1)), *costs]
    lines = []
    for one in made[:height]:  # a wide character takes two columns
        text = clean(one.text, width)
        fits = cell_len(text) <= width
        lines.append(PageLine(text if fits else set_cell_size(text, width - 1).rstrip() + "…", one.bad))
    return lines


def _few(word: str, rows: Sequence[str]) -> list[PageLine]:
    """The first rows, and a line with the number of the others."""
    lines = [PageLine(f"{word:9} {one}") for one in rows[:FEW]]
    more = len(rows) - FEW
    return lines + ([PageLine(f"{word:9} {more} more: fleet status --json")] if more > 0 else [])


def _state(data: Mapping[str, Any], width: int) -> Iterator[PageLine]:
    pid = data["daemon"]
    since = f", up since {minute(data['daemon_since'])} UTC" if data["daemon_since"] else ""
    yield PageLine(f"daemon    {f'pid {pid}{since}' if pid else 'not running'}")
    words = {True: "draining", False: "running"}[bool(data["draining"])] if pid else "cut off"
    for one in data["running"]:
        word = "settling" if one["state"] == "settling" and pid else words
        yield PageLine(f"{word:9} {one['persona']} since {minute(one['since'])} UTC, run {one['run']}")
    if data["page"]:
        yield PageLine(f"page      {data['page']}")
    yield PageLine(f"journal   {data['journal']}")
    if len(data["next"]) > NEXT_SHOWN and not (data["stop"] or data["draining"]):
        rest = (f"{one['persona']} {clock_time(one['at'], data['at'])}" for one in data["next"][NEXT_SHOWN:])
        kept = ", ".join(one.replace(" ", "\xa0") for one in rest)  # name and time stay on one line
        for text in textwrap.wrap(f"then      {kept}", width, subsequent_indent=" " * 10):
            yield PageLine(text.replace("\xa0", " "))


def _digest(data: Mapping[str, Any], room: int) -> Iterator[PageLine]:
    """The counts, then titles of each group in as many lines as there are."""
    groups = data["digest"]
    counts = ", ".join(f"{len(groups[name])} {name}" for name in GROUPS)
    yield PageLine(f"since     {minute(data['since'])} UTC: {counts}")
    if theirs := len(groups[STRANGERS]):
        room -= 1
        yield PageLine(f"strangers {theirs} new that only they report")
    titles = [(name, one) for name in GROUPS for one in groups[name]]
    shown = titles if len(titles) < room else titles[: max(room - 2, 0)]
    for name, one in shown:
        yield PageLine(f"{name:9} {one['severity']:8} {one['surface']:8} {line(one['title'])}")
    if len(shown) < len(titles):
        yield PageLine(f"          {len(titles) - len(shown)} more: fleet items")


def _costs(data: Mapping[str, Any]) -> Iterator[str]:
    spent = [cost(data["today"][FLEET], unit) for unit in COSTS]
    before = ", ".join(amount(unit, count) for unit, count in data["yesterday"].items())
    yield f"today     {', '.join(spent)}{f'; yesterday {before}' if before else ''}"
    ends = ", ".join(f"{count} {spoken(name)}" for name, count in sorted(data["outcomes"].items()))
    waiting = sum(data["waiting"].values())
    runs = f"{ends or 'none'} in that time" + (f", {waiting} waiting" if waiting else "")
    of = data["worklist"]
    read = f"to entry {of['entries'] - 1}, {of['at'][:10]}" if of["entries"] else "none yet"
    yield f"runs      {runs}; worklist {read}"
