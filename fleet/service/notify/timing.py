"""When a notice is said: groups, windows, quiet hours, silences, a cap, and tries again. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from fleet.clock import iso
from fleet.config import NoticeEvent, NotifySection
from fleet.retry import NOTICE
from fleet.service.notify.book import GROUPS, Notice, NoticeBook, NoticeMessage

LINES = 20
"""Notices that one message shows; the others are counted."""
MOST = 1_000
"""Notices that wait at most; further ones are counted in the last one's place."""
PENDING = 20
"""Messages on their way at most: while receivers are dead, notices wait and share the next one."""


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """The rules that hold now. `silenced`: events and the end of their silence (ISO)."""

    events: frozenset[NoticeEvent]
    silenced: Mapping[str, str]
    quiet: str
    zone: tzinfo
    window: timedelta


def rules_of(section: NotifySection, silenced: Mapping[str, str]) -> NoticeRules:
    """The rules of a configuration."""
    return NoticeRules(frozenset(section.events), silenced, section.quiet, section.zone, section.window)


def is_quiet(rules: NoticeRules, now: datetime) -> bool:
    """Whether it is within quiet hours, by the wall clock of their time zone; the end is outside."""
    if not rules.quiet:
        return False
    start, _, end = rules.quiet.partition("-")
    clock = now.astimezone(rules.zone).strftime("%H:%M")
    return start <= clock < end if start <= end else clock >= start or clock < end


def wanted(book: NoticeBook, before: NoticeBook, rules: NoticeRules, now: datetime) -> NoticeBook:
    """Without the notices that came since `before` and are not wanted, or silenced now."""
    old, new = book.waiting[: len(before.waiting)], book.waiting[len(before.waiting) :]
    kept = [one for one in new if one.event in rules.events and rules.silenced.get(one.event, "") <= iso(now)]
    return book.model_copy(update={"waiting": (*old, *kept)[-MOST:]})


def due(
    book: NoticeBook, rules: NoticeRules, receivers: Sequence[str], platform: str, now: datetime
) -> NoticeBook:
    """Turn what may be said now into messages: at most one of a group in each window.

    In quiet hours only groups with a critical notice speak, and only its critical ones; what was held back is
    summed up in one message at their end.
    """
    if not receivers or len(book.messages) >= PENDING:
        return book
    quiet = is_quiet(rules, now)
    if quiet:
        held = [one if one.critical else one.model_copy(update={"kept": True}) for one in book.waiting]
        book = book.model_copy(update={"waiting": tuple(held)})
    elif any(one.kept for one in book.waiting):
        every = dict.fromkeys((GROUPS[one.event] for one in book.waiting), iso(now))
        head = f"{platform}, while it was quiet"
        return _said(book, book.waiting, (), every, receivers, head, now)
    for group in dict.fromkeys(GROUPS.values()):
        mine = [
            one for one in book.waiting if GROUPS[one.event] == group and not (quiet and not one.critical)
        ]
        last = book.sent.get(group, "")
        if mine and (not last or last <= iso(now - rules.window) or last > iso(now)):
            rest = [one for one in book.waiting if one not in mine]
            book = _said(book, mine, rest, {group: iso(now)}, receivers, platform, now)
    return book


def _said(
    book: NoticeBook,
    notices: Sequence[Notice],
    rest: Sequence[Notice],
    groups: Mapping[str, str],
    receivers: Sequence[str],
    head: str,
    now: datetime,
) -> NoticeBook:
    title, body = f"QA fleet, {head}: {counts(notices)}", "\n".join(lines_of(notices))
    message = NoticeMessage(
        id=hashlib.sha256("\0".join((iso(now), title, body)).encode()).hexdigest()[:32],
        title=title,
        body=body,
        at=iso(now),
        events=tuple(dict.fromkeys(one.event for one in notices)),
        left=tuple(receivers),
    )
    more = {"messages": (*book.messages, message), "waiting": tuple(rest), "sent": {**book.sent, **groups}}
    return book.model_copy(update=more)


def counts(notices: Sequence[Notice]) -> str:
    """`2 finding, 1 fixed`."""
    return ", ".join(f"{count} {event}" for event, count in Counter(one.event for one in notices).items())


def lines_of(notices: Sequence[Notice]) -> list[str]:
    """The body of a message: critical notices first, then by time, at most LINES of them."""
    order = sorted(notices, key=lambda one: (not one.critical, one.at))
    more = [f"and {len(order) - LINES} more"] if len(order) > LINES else []
    return [*(f"{one.at} {one.text}" for one in order[:LINES]), *more]


def is_due(message: NoticeMessage, now: datetime) -> bool:
    """Whether it may be tried now."""
    return message.again <= iso(now)


def tried(
    book: NoticeBook,
    ident: str,
    delivered: Sequence[str],
    known: Sequence[str],
    now: datetime,
    *,
    is_last: bool,
) -> NoticeBook:
    """The document after receivers got a message, and after the whole try (`is_last`).

    A receiver that is not `known` any more is dropped; so is a message that each has, or that is too old.
    """
    kept = []
    for one in book.messages:
        if one.id == ident:
            left = tuple(name for name in one.left if name not in delivered and name in known)
            if not left or (is_last and iso(now - timedelta(seconds=NOTICE.total_s)) >= one.at):
                continue
            one = one.model_copy(update={"left": left})
            if is_last:
                again = iso(now + timedelta(seconds=NOTICE.pause(one.tries)))
                one = one.model_copy(update={"tries": one.tries + 1, "again": again})
        kept.append(one)
    return book.model_copy(update={"messages": tuple(kept)})
