"""What is news: the state of the fleet against what was reported before. Pure.

Each function returns the document with what is known now, and with one waiting notice for each change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlencode

from fleet.config import NoticeEvent
from fleet.config.notify import Role
from fleet.findings.outage import OutageBook, is_titled, lasted
from fleet.gate.budget import Unit
from fleet.runs.call.persons_word import WARNED
from fleet.runs.call.questions import PersonQuestion, no_answer
from fleet.service.notify.state import HostState, Notice, NoticeState
from fleet.severity import Severity
from fleet.store.rows import FindingRow, ItemRow, ProposalRow
from fleet.store.tables.units import amount
from fleet.text import counted, line
from fleet.triggers.chain.telling import Telling

FIXED = frozenset({"fixed", "verified-fixed"})
PASSED_ON_MIN: Mapping[Role, int] = {"second": 15, "client": 60}
"""Minutes for which a daemon is degraded and nobody acknowledges it, before these are notified."""
LONGEST = 240
"""Characters of one notice."""
PARTS = 400
"""The same of one with addresses and ids, which are of no use when cut."""
_INERT = str.maketrans({"<": "‹", ">": "›", "@": "(at)"})


def inert(text: str, limit: int = LONGEST) -> str:
    """A cleaned line that a chat neither links nor takes for a mention."""
    return line(line(text, limit).translate(_INERT).replace("://", ":/ /"), limit)


def of_items(state: NoticeState, items: Iterable[ItemRow], now: str) -> NoticeState:
    """Proven for the first time, fixed, back again. A stranger's claim is never proven, so never news.

    An item is known by any of its names, so that merged items are not reported again.
    """
    known, found, first = dict(state.items or {}), list[Notice](), state.items is None
    for item in items:
        if is_titled(item.title):
            continue  # an outage has a notice of its own
        before = next((known[name] for name in (item.fingerprint, *item.names) if name in known), "")
        after = _reported(item.state, before)
        if after and after != known.get(item.fingerprint):
            known[item.fingerprint] = after
        if first or not after or after == before:
            continue
        event, head = _EVENTS[after]
        if event == "finding" and before:
            continue  # a person has reopened it
        text = inert(f"{head}: {item.severity}, {item.surface}: {item.title}") + f" ({item.fingerprint})"
        grave = item.severity == Severity.CRITICAL and event != "fixed"
        link = f"/items/{item.fingerprint}"
        found.append(Notice(event=event, text=text, at=now, critical=grave, link=link))
    return state.noting(found, items=known)


_EVENTS: Mapping[str, tuple[NoticeEvent, str]] = {
    "proven": ("finding", "new finding"),
    "fixed": ("fixed", "fixed"),
    "regression": ("regression", "back again"),
}


def _reported(state: str, before: str) -> str:
    """What the state of an item is for notices; what hides or delays an item changes nothing."""
    if state in FIXED:
        return "fixed" if before else ""
    if state == "regression":
        return "regression"
    return "proven" if state == "confirmed" else before


def of_proposals(state: NoticeState, rows: Iterable[ProposalRow], now: str) -> NoticeState:
    """A draft is open for a person to read, was merged, or was closed."""
    known, found = dict(state.proposals or {}), list[Notice]()
    for row in rows:
        before = known.get(row.proposal_id, "")
        if row.state not in _PROPOSALS or row.state == before:
            continue
        known[row.proposal_id] = row.state
        if state.proposals is None or (not before and row.state != "open"):
            continue
        why = f": {row.why}" if row.why else ""
        text = inert(f"{_PROPOSALS[row.state]}: {row.ref}{why}") + f" ({row.item})"
        found.append(Notice(event="proposal", text=text, at=now))
    return state.noting(found, proposals=known)


_PROPOSALS: Mapping[str, str] = {
    "open": "a fix is proposed",
    "merged": "a proposed fix was merged",
    "closed": "a proposed fix was closed",
    "withdrawn": "a proposed fix was withdrawn",
}


def of_outages(state: NoticeState, outages: OutageBook, platform: str, now: str) -> NoticeState:
    """Down and up; an outage that goes on as another one is reported as down again with its new extent."""
    found, ended = list[Notice](), state.ended
    if outages.open is None:
        for end in outages.ended:
            if end.fp not in state.ended:
                span = f"since {end.since}, {lasted(end.seconds)}"
                text = inert(f"{platform} is up: {', '.join(end.targets)}, {span}")
                found.append(Notice(event="platform-up", text=text, at=now, link="/platform"))
        ended = tuple(end.fp for end in outages.ended)
    elif outages.open.fp != state.outage:
        targets = ", ".join(outages.open.targets)
        text = inert(f"{platform} is down since {outages.open.since}: {targets} did not answer")
        found.append(Notice(event="platform-down", text=text, at=now, critical=True, link="/platform"))
    return state.noting(found, outage=outages.open.fp if outages.open else "", ended=ended)


def of_ending(state: NoticeState, ending: str, platform: str, now: str) -> NoticeState:
    """The time of the tests ends soon: once for each warning, also in quiet hours."""
    if not ending or ending == state.ending:
        return state
    notice = Notice(event="schedule", text=inert(f"{platform}: {ending}"), at=now, critical=True)
    return state.noting([notice], ending=ending)


def of_lock_outs(state: NoticeState, lock_outs: Mapping[str, str], platform: str, now: str) -> NoticeState:
    """Lock-outs of the last runs, by persona, each once: bans of ours, or crashes that nothing else shows."""
    found = [
        Notice(event="locked-out", text=inert(f"{platform}, {persona}: {why}"), at=now, link="/runs")
        for persona, why in sorted(lock_outs.items())
        if state.lock_outs.get(persona) != why
    ]
    return state.noting(found, lock_outs=dict(lock_outs))


def of_accounts(state: NoticeState, missing: Mapping[str, str], platform: str, now: str) -> NoticeState:
    """Parts that are looked at as a visitor alone, with the reason: each once, until accounts are made."""
    found = [
        Notice(event="no-account", text=inert(f"{platform}, {part}: {why}"), at=now)
        for part, why in sorted(missing.items())
        if part not in state.unaccounted
    ]
    return state.noting(found, unaccounted=tuple(sorted(missing)))


_SIGHTINGS: Mapping[str, NoticeEvent] = {
    "fence": "fence",
    "instruction": "instruction",
    "credential": "credential",
    "sensitive-data": "sensitive-data",
    "break-in": "break-in",
    "model-use": "model-use",
    "strain": "strain",
    "drift": "drift",
    "challenge": "challenge",
    "trap": "trap",
}
_ALSO: Mapping[NoticeEvent, tuple[Role, ...]] = dict.fromkeys(
    ("sensitive-data", "break-in"), ("client", "counsel")
)
"""Whose own receivers are notified too."""


def of_sightings(state: NoticeState, found: Mapping[str, str], platform: str, now: str) -> NoticeState:
    """Orders to machines and requests out of scope, by `KIND:PLACE`, each once."""
    told = [
        Notice(event=event, text=inert(f"{platform}, {what}"), at=now, to=to, link=_acts(key))
        for key, what in sorted(found.items())
        for event in (_SIGHTINGS[key.partition(":")[0]],)
        for to in ("", *_ALSO.get(event, ()))
        if key not in state.sighted
    ]
    return state.noting(told, sighted=tuple(sorted(found)))


def _acts(sighted: str) -> str:
    """The page with what was done at a place."""
    return f"/activity?{urlencode({'q': sighted.partition(':')[2][:100]})}"


def of_held(state: NoticeState, held: Iterable[FindingRow], platform: str, now: str) -> NoticeState:
    """Proven findings that wait for a person before they are posted, each once, also in quiet hours."""
    rows = {one.fingerprint: one for one in held}
    told = [
        Notice(
            event="finding",
            text=inert(f"{platform}, {one.severity}, waits for a person before it is posted: {one.title}")
            + f" (fleet items release {name})",
            at=now,
            critical=True,
            link="/#held",
        )
        for name, one in sorted(rows.items())
        if name not in state.held
    ]
    return state.noting(told, held=tuple(sorted(rows)))


def of_questions(
    state: NoticeState, waiting: Iterable[PersonQuestion], second: str, now: str, *, page: str = ""
) -> NoticeState:
    """What waits for a person: at once, also in quiet hours; again for the second one at half time, and for
    those who ordered the tests when it waits long. `page` is where it is decided."""
    told, known = list[Notice](), list[str]()
    for one in waiting:
        late, slow = now >= one.half, bool(one.slow) and now >= one.slow
        stages: list[tuple[str, Role | Literal[""]]] = [(" late" if late else "", "")]
        asked, until, at = (datetime.fromisoformat(text) for text in (one.asked, one.until, now))
        took = (at - asked) / (until - asked)
        stages += [(f" at {share:.0%}", "") for share in WARNED if took >= share]
        if late:
            stages.append((" second", "second"))
        if slow:
            stages.append((" slow", "client"))
        for stage, to in stages:
            known.append(key := f"{one.ident} {one.asked}{stage}")
            if key in state.asked:
                continue
            whom = f" ({second}: nobody has answered yet)" if late and second and to != "client" else ""
            waits = "is to be looked at by" if one.trigger == "unusual" else "waits until"
            text = inert(f"{one.platform}, run {one.run} {waits} {one.until}{whom}: {one.what}")
            if stage.startswith(" at "):
                took_of = f"{in_minutes(at - asked)} of {in_minutes(until - asked)}"
                text += f"; {took_of} are over, {in_minutes(until - at)} left, {no_answer(one.trigger)}"
            if to != "client":
                where = f", or {page.rstrip('/')}/#questions" if page else ""
                text += f" (fleet runs answer {one.ident} approve|deny --reason …{where})"
            grave = one.trigger != "unusual"
            link = "/#questions" if grave else f"/runs/{one.run}"
            told.append(Notice(event="question", text=text, at=now, critical=grave, to=to, link=link))
    return state.noting(told, asked=tuple(known))


def in_minutes(length: timedelta) -> str:
    return counted(max(0, round(length.total_seconds() / 60)), "minute")


def of_posture(
    state: NoticeState, seen: Iterable[tuple[str, Telling]], platform: str, now: str
) -> NoticeState:
    """What changed of the watched contracts, each once; what nobody announced also in quiet hours."""
    told, last = list[Notice](), state.posture
    for _, one in seen:
        if one.seq <= last:
            continue
        for change in one.changes:
            head = f"{platform}, block {one.block}"
            what = f"taken back by a reorganisation: {change}" if one.undoes else str(change)
            grave = change.judged in ("silent", "broken") and not one.undoes
            told.append(Notice(event="posture", text=inert(f"{head}: {what}", PARTS), at=now, critical=grave))
        last = one.seq
    return state.noting(told, posture=last)


def of_budgets(
    state: NoticeState,
    left: Mapping[str, Mapping[Unit, int]],
    limits: Mapping[str, Mapping[Unit, int]],
    now: str,
) -> NoticeState:
    """Daily budgets of which nothing is left, once a day each. A limit of 0 is a choice, not news."""
    day = now[:10]
    known = tuple(one for one in state.spent if one.startswith(day))
    found = list[Notice]()
    for owner, units in sorted(left.items()):
        for unit, count in sorted(units.items()):
            key, limit = f"{day} {owner} {unit}", limits.get(owner, {}).get(unit, 0)
            if count or not limit or key in known:
                continue
            known += (key,)
            of = owner or "the fleet"
            text = f"budget of {of} spent for today (UTC): {amount(unit, limit)}"
            found.append(Notice(event="budget-spent", text=text, at=now))
    return state.noting(found, spent=known)


def of_host(
    state: NoticeState,
    host: str,
    refused: Mapping[str, str],
    loaded: Collection[str],
    trouble: str,
    now: str,
) -> NoticeState:
    """Persona files refused on this host, and its daemon's trouble ("" for none) or the end of it.

    A refusal is forgotten once the persona is loaded: a daemon that starts has not read the bad files yet.
    """
    before, found = state.hosts.get(host, HostState()), list[Notice]()
    known = {name: why for name, why in before.refused.items() if name in refused or name not in loaded}
    for name, why in sorted(refused.items()):
        mark = hashlib.sha256(why.encode()).hexdigest()[:12]
        if known.get(name) != mark:
            known[name] = mark
            text = inert(f"persona {name} refused: {why}")
            found.append(Notice(event="persona-refused", text=text, at=now, link="/personas"))
    if trouble and not before.trouble:
        text = inert(f"daemon degraded on {host}: {trouble}")
        found.append(Notice(event="degraded", text=text, at=now, critical=True))
    elif before.trouble and not trouble:
        text = inert(f"daemon well again on {host}: it was degraded: {before.trouble}")
        found.append(Notice(event="degraded", text=text, at=now))
    since = (before.since or now) if trouble else ""
    passed_on = before.passed_on if trouble else ()
    after = before.model_copy(
        update={"refused": known, "trouble": trouble, "since": since, "passed_on": passed_on}
    )
    return state.noting(found, hosts=state.hosts | {host: after})


def of_unanswered(state: NoticeState, host: str, silenced: Mapping[str, str], now: str) -> NoticeState:
    """A daemon's trouble that goes on and that nobody has acknowledged, by silencing `degraded`: told to the
    second one, and to who ordered the tests."""
    known, found = state.hosts.get(host, HostState()), list[Notice]()
    if not known.trouble or silenced.get("degraded", "") > now:
        return state
    lasts = datetime.fromisoformat(now) - datetime.fromisoformat(known.since or now)
    due = [role for role, minutes in PASSED_ON_MIN.items() if lasts >= timedelta(minutes=minutes)]
    for role in due:
        if role not in known.passed_on:
            what = f"daemon degraded on {host} since {known.since}, and nobody has acknowledged it"
            text = inert(f"{what}: {known.trouble}")
            found.append(Notice(event="degraded", text=text, at=now, critical=True, to=role))
    after = known.model_copy(update={"passed_on": tuple(due)})
    return state.noting(found, hosts=state.hosts | {host: after})


def of_lost(state: NoticeState, host: str, lost: str, now: str) -> NoticeState:
    """The loss of the daemon before this one, once; "" when it was stopped."""
    before, found = state.hosts.get(host, HostState()), list[Notice]()
    if lost and lost != before.lost:
        text = inert(f"daemon lost on {host}: {lost}")
        found.append(Notice(event="degraded", text=text, at=now, critical=True))
    after = before.model_copy(update={"lost": lost})
    return state.noting(found, hosts=state.hosts | {host: after})
