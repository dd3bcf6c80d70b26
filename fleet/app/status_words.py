"""What the data of a status says in sentences: how it stands, what is wrong, what it cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from fleet.clock import clock_time, iso, minute, minutes
from fleet.gate.budget import Unit
from fleet.store.tables.units import amount, number, word
from fleet.text import counted, line, spoken
from fleet.triage.items.unproven import POSTED, WAITS

NEXT_SHOWN = 3
"""Next starts in the first sentence; the others have a line of their own."""
COSTS: tuple[Unit, ...] = ("calls", "writes", "usd_micro")
_SHORT = 60
STUCK = timedelta(hours=1)
"""A finding that is on its way to proof or log for longer is stuck."""
ASKS = {"unusual": "is to be looked at"}
"""What a question's run does meanwhile, where it does not wait."""


def health(data: Mapping[str, Any]) -> str:
    """How it stands, in one sentence."""
    return minutes(_sentence(data))


def _sentence(data: Mapping[str, Any]) -> str:
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
    if crew["refused"]:
        names = ", ".join(one["persona"] for one in crew["refused"])
        counts.append(f"{len(crew['refused'])} refused ({line(names, _SHORT)})")
    counts += [f"{len(crew['failing'])} failing"] if crew["failing"] else []
    rest = f"{data['platform']} {answers}; {', '.join(counts)}"
    if late := stuck(data):
        rest = f"{counted(len(late), 'proof')} stuck; {rest}"
    if data["stop"]:
        since = f" since {minute(data['stopped_since'])} UTC" if data["stopped_since"] else ""
        said = line(_stop_reason(data), _SHORT)
        ended = data["ended_after_s"]
        rest = (f"all in flight ended after {ended:.1f} s; " if ended is not None else "") + rest
        head = f"STOPPED{since}{f' ({said})' if said else ''}: nothing starts until `fleet resume`"
        return f"{head}; dial {dial['rung']}; {rest}."
    if data["draining"]:
        return f"DRAINING after {data['draining']}: no run starts; dial {dial['rung']}{until}; {rest}."
    if data["schedule"]["closed"]:
        return f"CLOSED: {data['schedule']['closed']}; nothing starts; dial {dial['rung']}{until}; {rest}."
    soon = [f"{one['persona']} {clock_time(one['at'], data['at'])}" for one in data["next"][:NEXT_SHOWN]]
    upcoming = f"next {', '.join(soon)}" if soon else "nothing starts by itself"
    closes = data["schedule"]["changes"]
    upcoming += f"; the testing window closes {minute(closes)} UTC" if closes else ""
    if dial["fault"]:
        fault = line(dial["fault"], 2 * _SHORT)
        return f"THE DIAL CANNOT BE READ ({fault}): it means {dial['rung']}; {rest}; {upcoming}."
    return f"{dial['rung']}{until}{by}{why}; {rest}; {upcoming}."


def details(data: Mapping[str, Any]) -> list[str]:
    """What is wrong, without what the first sentence says already."""
    head, reason, fault = _sentence(data), _stop_reason(data), data["dial"]["fault"]
    said = ["STOP: "] * bool(reason and reason in head) + ["dial: "] * bool(fault and fault in head)
    return [minutes(why) for why in data["wrong"] if not why.startswith(tuple(said))]


def stuck(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Findings on their way to proof or log for too long, but for those that wait for a person."""
    late = iso(datetime.fromisoformat(data["at"]) - STUCK)
    return [one for one in data["proving"] if one["at"] < late and one["why"] not in (WAITS, POSTED)]


def _stop_reason(data: Mapping[str, Any]) -> str:
    return str(data["stop"]).removeprefix("STOP is set").lstrip(": ")


def cost(cost: Mapping[str, Any], unit: str) -> str:
    """What of a unit was spent today, and of how much."""
    one: Mapping[str, int | None] = cost[unit]
    spent, limit = one["spent"] or 0, one["limit"]
    return amount(unit, spent) if limit is None else f"{number(unit, spent)} of {amount(unit, limit)}"


def wrong(data: Mapping[str, Any]) -> list[str]:
    """What is broken, in words, the gravest first."""
    crew = data["personas"]
    with_a_daemon = {run for one in data["lost"] for run in one["runs"]}  # said with the daemon that died
    return [
        *([f"STOP: {data['stop']}"] if data["stop"] else ()),
        *([f"dial: {data['dial']['fault']}: it means observe"] if data["dial"]["fault"] else ()),
        *([f"fence: {data['fence']}"] if data["fence"] else ()),
        *([f"degraded: {data['degraded']}"] if data["degraded"] else ()),
        *(
            f"question: run {one['run']} {ASKS.get(one['trigger'], 'waits for a person')}"
            f" until {minute(one['until'])}"
            f" ({one['trigger']}): {one['what']}; fleet runs answer {one['ident']} approve|deny --reason …"
            for one in data["questions"]
        ),
        *(
            f"daemon lost: {one['why']}{'' if one['at'] or data['daemon'] else '; `fleet up` starts it'}"
            for one in data["lost"]
        ),
        *(
            f"proof stuck: {one['title']} ({one['fingerprint']}, run {one['run']}): {one['why']},"
            f" since {minute(one['at'])}"
            for one in stuck(data)
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
            f"model ended: {one['persona']} run {one['run']}: {spoken(one['reason'])}; the playbook went on"
            for one in data["models"]
        ),
        *(
            f"run failed: {one['persona']} {spoken(one['outcome'])} {minute(one['ended'])},"
            f" run {one['run']}: {one['detail']}"
            for one in crew["failing"]
            if one["run"] not in with_a_daemon
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
