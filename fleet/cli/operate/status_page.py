"""The morning page of `fleet status`: one screen made of the data of `--json`. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size

from fleet.gate.budget import Unit
from fleet.store.tables.units import FLEET, amount, number, word
from fleet.text import clean, counted, line
from fleet.triage.outputs.digest import GROUPS, STRANGERS

WRONG_SHOWN = 6
NEXT_SHOWN = 3
"""Next starts in the first sentence; the others have a line of their own."""
COSTS: tuple[Unit, ...] = ("calls", "writes", "usd_micro")
_SHORT = 60
FEW = 4
"""Lines of what is on its way to the list, of what is not proven, and of what limits left, at most each."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """One line of the page; `bad` is shown in red."""

    text: str
    bad: bool = False


def page(data: Mapping[str, Any], *, width: int, height: int) -> list[PageLine]:
    """At most `height` lines of at most `width` characters, all cleaned; titles give way first."""
    top = [PageLine(text) for text in textwrap.wrap(line(_health(data), 600), width)]
    top += _state(data)
    wrong = [PageLine(f"WRONG     {why}", bad=True) for why in data["wrong"]]
    if len(wrong) > WRONG_SHOWN:
        left = len(wrong) - WRONG_SHOWN + 1
        wrong = [*wrong[: WRONG_SHOWN - 1], PageLine(f"WRONG     {left} more: fleet status --json", bad=True)]
    costs = [PageLine(text) for text in _costs(data)]
    groups = {
        name: [
            f"{one['severity']:8} {one['surface']:8} {line(one['title'])} (run {one['run']}: {one['why']})"
            for one in data[name]
        ]
        for name in ("proving", "unproven")
    }
    groups["left"] = [f"{one['persona']} {one['part']}: {one['reason']}" for one in data["left"]]
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


def minute(at: str) -> str:
    """An ISO time to the minute, as in `2026-11-21 22:51`."""
    return at[:16].replace("T", " ")


def _health(data: Mapping[str, Any]) -> str:
    dial, reach, crew = data["dial"], data["reachable"], data["personas"]
    until = f" until {minute(dial['until'])} UTC" if dial["until"] else ""
    by = f" by {dial['who']} at {minute(dial['when'])} UTC" if dial["who"] else ""
    why = f" ({line(dial['why'], _SHORT)})" if dial["why"] else ""
    looked = f" ({reach['by']}, {minute(reach['since'])})" if reach["by"] else ""
    answers = {
        True: f"answers{looked}",
        False: f"is DOWN since {minute(reach['since'])}",
        None: f"unknown: {line(reach['why'], _SHORT)}{looked}",
    }[reach["up"]]
    counts = [counted(crew["loaded"], "persona")]
    counts += [f"{len(crew[name])} {name}" for name in ("refused", "failing") if crew[name]]
    rest = f"{data['platform']} {answers}; {', '.join(counts)}"
    if data["stop"]:
        since = f" since {minute(data['stopped_since'])} UTC" if data["stopped_since"] else ""
        said = line(data["stop"].removeprefix("STOP is set").lstrip(": "), _SHORT)
        ended = data["ended_after_s"]
        rest = (f"all in flight ended after {ended:.1f} s; " if ended is not None else "") + rest
        head = f"STOPPED{since}{f' ({said})' if said else ''}: nothing starts until `fleet resume`"
        return f"{head}; dial {dial['rung']}; {rest}."
    if data["schedule"]["closed"]:
        return f"CLOSED: {data['schedule']['closed']}; nothing starts; dial {dial['rung']}{until}; {rest}."
    soon = [f"{one['persona']} {one['at'][11:16]}" for one in data["next"][:NEXT_SHOWN]]
    upcoming = f"next {', '.join(soon)}" if soon else "nothing starts by itself"
    closes = data["schedule"]["changes"]
    upcoming += f"; the testing window closes {minute(closes)} UTC" if closes else ""
    return f"{dial['rung']}{until}{by}{why}; {rest}; {upcoming}."


def _state(data: Mapping[str, Any]) -> Iterator[PageLine]:
    pid = data["daemon"]
    yield PageLine(f"daemon    {f'pid {pid}' if pid else 'not running'}")
    yield PageLine(f"journal   {data['journal']}")
    if len(data["next"]) > NEXT_SHOWN and not data["stop"]:
        rest = ", ".join(f"{one['persona']} {one['at'][11:16]}" for one in data["next"][NEXT_SHOWN:])
        yield PageLine(f"then      {rest}")


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
        yield PageLine(f"          {len(titles) - len(shown)} more: fleet worklist")


def _costs(data: Mapping[str, Any]) -> Iterator[str]:
    spent = [_cost(data["today"][FLEET], unit) for unit in COSTS]
    yield f"today     {', '.join(spent)}"
    ends = ", ".join(f"{count} {name}" for name, count in sorted(data["outcomes"].items()))
    waiting = sum(data["waiting"].values())
    runs = f"{ends or 'none'} in that time" + (f", {waiting} waiting" if waiting else "")
    of = data["worklist"]
    read = f"to entry {of['entries'] - 1}, {of['at'][:10]}" if of["entries"] else "none yet"
    yield f"runs      {runs}; worklist {read}"


def _cost(cost: Mapping[str, Any], unit: str) -> str:
    one: Mapping[str, int | None] = cost[unit]
    spent, limit = one["spent"] or 0, one["limit"]
    return amount(unit, spent) if limit is None else f"{number(unit, spent)} of {amount(unit, limit)}"


def wrong(data: Mapping[str, Any]) -> list[str]:
    """What is broken, in words, the gravest first."""
    crew = data["personas"]
    return [
        *([f"STOP: {data['stop']}"] if data["stop"] else ()),
        *([f"dial: {data['dial']['fault']}: it means observe"] if data["dial"]["fault"] else ()),
        *([f"fence: {data['fence']}"] if data["fence"] else ()),
        *([f"degraded: {data['degraded']}"] if data["degraded"] else ()),
        *(
            f"daemon lost: {one['why']}{'' if one['at'] or data['daemon'] else '; `fleet up` starts it'}"
            for one in data["lost"]
        ),
        *(f"outage: {one['severity']}  {one['platform']}: {one['title']}" for one in data["outages"]),
        *(
            f"log: {counted(one['count'], 'posted entry', 'posted entries')} "
            f"{'is' if one['count'] == 1 else 'are'} not on {one['platform']} since {minute(one['since'])}"
            + (one["fate"] and f", {one['fate']}")
            for one in data["missing"]
        ),
        *(f"persona refused: {one['reason']}" for one in crew["refused"]),
        *(f"undecided: {one['persona']} {one['probe']}: {one['reason']}" for one in data["undecided"]),
        *(f"unexplored: {one['persona']} {one['probe']}: {one['reason']}" for one in data["unexplored"]),
        *(
            f"model ended: {one['persona']} run {one['run']}: {one['reason']}; the playbook went on"
            for one in data["models"]
        ),
        *(
            f"run failed: {one['persona']} {one['outcome']} {minute(one['ended'])}, run {one['run']}: "
            f"{one['detail']}"
            for one in crew["failing"]
        ),
        *(
            f"budget spent: {owner or 'the fleet'} has no {' and no '.join(gone)} left today"
            for owner, units in data["left_today"].items()
            if (gone := [word(unit) for unit, count in units.items() if not count])
        ),
        *([_behind(data["log"])] if data["log"]["behind"] else ()),
    ]


def _behind(log: Mapping[str, Any]) -> str:
    if log["entries"] is None:
        return "chain: it does not answer the daemon"
    late = counted(log["entries"] - log["read"], "entry", "entries")
    return f"chain: triage is {late} behind the log"
