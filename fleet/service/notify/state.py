"""What was reported, what waits and what is on its way: one document in the journal. Pure.

A notice waits for its group's window and the end of quiet hours, a message is tried until it arrives.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.clock import iso
from fleet.config import NoticeEvent, NotifySection
from fleet.config.notify import ROLES, Role
from fleet.errors import ConfigError
from fleet.retry import NOTICE
from fleet.severity import Severity, weight

FACTS = "notify."
"""Prefix of the journal's keys of notifications; a platform's name follows."""
SILENCE = "notify-silence."
"""Prefix of the keys of silences; the event follows, and the value is the end of the silence (ISO)."""

GROUPS: Mapping[NoticeEvent, str] = MappingProxyType(
    {
        "finding": "items",
        "fixed": "items",
        "regression": "items",
        "platform-down": "platform",
        "platform-up": "platform",
        "locked-out": "platform",
        "no-account": "platform",
        "persona-refused": "personas",
        "budget-spent": "budget",
        "degraded": "daemon",
        "proposal": "proposals",
        "instruction": "notices",
        "fence": "notices",
        "schedule": "notices",
        "credential": "notices",
        "sensitive-data": "notices",
        "break-in": "notices",
        "model-use": "notices",
        "strain": "platform",
        "drift": "notices",
        "challenge": "notices",
        "trap": "notices",
        "question": "questions",
        "posture": "posture",
    }
)
"""Events that share a message."""
_LOW: tuple[NoticeEvent, ...] = ("fixed", "platform-up", "proposal")
_HIGH: tuple[NoticeEvent, ...] = (
    *("finding", "regression", "platform-down", "degraded", "fence", "credential", "sensitive-data"),
    *("break-in", "posture", "question"),
)
SEVERITIES: Mapping[NoticeEvent, Severity] = MappingProxyType(
    {
        event: Severity.INFO if event in _LOW else Severity.HIGH if event in _HIGH else Severity.MEDIUM
        for event in GROUPS
    }
)
"""Of a notice that is not critical."""
TO_DO: Mapping[NoticeEvent, str] = MappingProxyType(
    {
        "question": "answer needed",
        "finding": "decide what becomes of it",
        "regression": "decide what becomes of it",
        "proposal": "read it",
        "platform-down": "look at it",
        "degraded": "look at it",
        "fence": "look at it",
        "break-in": "look at it",
        "credential": "look at it",
        "sensitive-data": "look at it",
        "posture": "look at it",
    }
)
"""What a person is to do about an event, in the subject of a message."""


LINES = 20
"""Notices that one message shows; the others are counted."""
MOST = 1_000
"""Notices that wait at most: beyond it the oldest are dropped."""
PENDING = 20
"""Messages on their way at most: while receivers are dead, notices wait and share the next one."""


class _NoticePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Notice(_NoticePart):
    """One line to be sent. A critical one passes quiet hours; `kept` is one that they held back; what is
    `to` a role goes to its receivers alone, at once. `link` is a page with all about it."""

    event: NoticeEvent
    to: Role | Literal[""] = ""
    text: str
    at: str
    critical: bool = False
    kept: bool = False
    link: str = "/notices"

    @property
    def severity(self) -> Severity:
        return Severity.CRITICAL if self.critical else SEVERITIES[self.event]


class ShownNotice(_NoticePart):
    """A notice on the pages: `dismissed` is when (ISO) and `dismissed_by` who took it off, "" while open."""

    id: str
    event: NoticeEvent
    text: str
    at: str
    severity: str
    link: str
    dismissed: str = ""
    dismissed_by: str = ""


class NoticeMessage(_NoticePart):
    """A message on its way: `left` are the receivers without it, `again` the time of the next try (ISO)."""

    id: str
    title: str
    body: str
    at: str
    events: tuple[NoticeEvent, ...]
    left: tuple[str, ...]
    severity: str = Severity.MEDIUM
    tries: int = 0
    again: str = ""


class HostState(_NoticePart):
    """What one daemon reported of itself: refused personas with a digest of the reason, its trouble with its
    begin and who else was notified, and how the daemon before it was lost."""

    refused: dict[str, str] = {}
    trouble: str = ""
    since: str = ""
    passed_on: tuple[str, ...] = ()
    lost: str = ""


class NoticeState(_NoticePart):
    """The notifications of one platform.

    `items` is what was last reported of each item, `proposals` of each proposal, None before the first look:
    what was there before is not news. `outage` is the open outage (fingerprint) and `ended` those known to
    be over; `lock_outs` are their reasons by persona, `unaccounted` the parts without accounts, `sighted`
    the places of what was seen, `held` the findings that wait for a person, `spent` the day and the budgets
    reported as spent, `ending` the last warning of the tests' end, `asked` the questions to a person that
    were told, and to whom, `posture` the last number of what the watch of contracts saw. `sent` is when each
    group had its last message, `shown` what the pages show until a person dismisses it. `sender` holds the
    turn to send until `until`, where several daemons share the journal.
    """

    items: dict[str, str] | None = None
    proposals: dict[str, str] | None = None
    outage: str = ""
    ended: tuple[str, ...] = ()
    lock_outs: dict[str, str] = {}
    unaccounted: tuple[str, ...] = ()
    sighted: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    spent: tuple[str, ...] = ()
    ending: str = ""
    asked: tuple[str, ...] = ()
    posture: int = 0
    hosts: dict[str, HostState] = {}
    waiting: tuple[Notice, ...] = ()
    messages: tuple[NoticeMessage, ...] = ()
    sent: dict[str, str] = {}
    shown: tuple[ShownNotice, ...] = ()
    sender: str = ""
    until: str = ""

    def noting(self, notices: Iterable[Notice], **known: object) -> NoticeState:
        """With these notices too, and with what is known now."""
        return self.model_copy(update={**known, "waiting": (*self.waiting, *notices)})

    def sending(self, message: NoticeMessage, rest: Sequence[Notice], now: datetime) -> NoticeState:
        """With a message on its way; the `rest` of the notices waits."""
        sent = self.sent | dict.fromkeys((GROUPS[event] for event in message.events), iso(now))
        return self.model_copy(
            update={"messages": (*self.messages, message), "waiting": tuple(rest), "sent": sent}
        )


def read_state(text: str | None) -> NoticeState:
    """A document as stored; ConfigError when it is damaged."""
    try:
        return NoticeState.model_validate_json(text) if text else NoticeState()
    except ValidationError:
        raise ConfigError("the stored notifications cannot be read", remedy="restore fleet.db") from None


def is_quiet(section: NotifySection, now: datetime) -> bool:
    """Whether it is within quiet hours, by the wall clock of their time zone; the end is outside."""
    if not section.quiet:
        return False
    start, _, end = section.quiet.partition("-")
    clock = now.astimezone(section.zone).strftime("%H:%M")
    return start <= clock < end if start <= end else clock >= start or clock < end


def wanted(
    state: NoticeState,
    before: NoticeState,
    events: Collection[NoticeEvent],
    silenced: Mapping[str, str],
    now: datetime,
) -> NoticeState:
    """Without the notices since `before` that are not of these events, or `silenced` (until, ISO)."""
    old, new = state.waiting[: len(before.waiting)], state.waiting[len(before.waiting) :]
    kept = [one for one in new if one.to or (one.event in events and silenced.get(one.event, "") <= iso(now))]
    shown = [_shown(one) for one in kept if not one.to]
    return state.model_copy(
        update={"waiting": (*old, *kept)[-MOST:], "shown": (*state.shown, *shown)[-MOST:]}
    )


def _shown(one: Notice) -> ShownNotice:
    ident = hashlib.sha256(f"{one.at} {one.event} {one.text}".encode()).hexdigest()[:16]
    return ShownNotice(
        id=ident, event=one.event, text=one.text, at=one.at, severity=one.severity, link=one.link
    )


def due(
    state: NoticeState, section: NotifySection, receivers: Sequence[str], platform: str, now: datetime
) -> NoticeState:
    """Turn what may be sent now into messages: at most one of a group in each window.

    In quiet hours only groups with a critical notice speak, and only its critical ones; what was held back is
    summed up in one message at their end.
    """
    if not receivers or len(state.messages) >= PENDING:
        return state
    for role in ROLES:
        his = [one for one in state.waiting if one.to == role]
        theirs = [name for name in receivers if name.startswith(f"{role} ")]
        made = (_message(his, theirs, platform, section.page, now),) if his and theirs else ()
        others = tuple(one for one in state.waiting if one.to != role)
        state = state.model_copy(update={"messages": (*state.messages, *made), "waiting": others})
    receivers = [name for name in receivers if name.partition(" ")[0] not in ROLES]
    if not receivers:
        return state
    quiet = is_quiet(section, now)
    if quiet:
        held = [one if one.critical else one.model_copy(update={"kept": True}) for one in state.waiting]
        state = state.model_copy(update={"waiting": tuple(held)})
    elif any(one.kept for one in state.waiting):
        message = _message(state.waiting, receivers, f"{platform}, while it was quiet", section.page, now)
        return state.sending(message, (), now)
    for group in dict.fromkeys(GROUPS.values()):
        mine = [
            one for one in state.waiting if GROUPS[one.event] == group and not (quiet and not one.critical)
        ]
        last = state.sent.get(group, "")
        if mine and (
            group == "questions" or not last or last <= iso(now - section.window) or last > iso(now)
        ):
            rest = [one for one in state.waiting if one not in mine]
            state = state.sending(_message(mine, receivers, platform, section.page, now), rest, now)
    return state


def _message(
    notices: Sequence[Notice], receivers: Sequence[str], head: str, page: str, now: datetime
) -> NoticeMessage:
    """One message: critical notices first, then by time, at most LINES of them, each with its place on the
    `page`s, where receivers reach them."""
    counts = Counter(one.event for one in notices)
    gravest = max((one.severity for one in notices), key=weight)
    to_do = list(dict.fromkeys(TO_DO[event] for event in counts if event in TO_DO))
    title = f"[{gravest.upper()}] QA fleet, {head}: " + ", ".join(
        f"{count} {event}" for event, count in counts.items()
    )
    title += f" ({', '.join(to_do)})" if to_do else ""
    order = sorted(notices, key=lambda one: (not one.critical, one.at))
    more = [f"and {len(order) - LINES} more"] if len(order) > LINES else []
    lines = [
        f"{one.at} {one.text}"
        + (f" {page.rstrip('/')}{one.link}" if page and one.event != "question" else "")
        for one in order[:LINES]
    ]
    body = "\n".join([*lines, *more])
    return NoticeMessage(
        id=hashlib.sha256("\0".join((iso(now), title, body)).encode()).hexdigest()[:32],
        title=title,
        body=body,
        at=iso(now),
        events=tuple(counts),
        left=tuple(receivers),
        severity=gravest,
    )


def tried(
    state: NoticeState,
    ident: str,
    delivered: Sequence[str],
    known: Sequence[str],
    now: datetime,
    *,
    is_last: bool,
) -> NoticeState:
    """The document after receivers got a message, and after the whole try (`is_last`).

    A receiver that is not `known` any more is dropped; so is a message that each has, or that is too old.
    """
    kept = []
    for one in state.messages:
        if one.id == ident:
            left = tuple(name for name in one.left if name not in delivered and name in known)
            if not left or (is_last and iso(now - timedelta(seconds=NOTICE.total_s)) >= one.at):
                continue
            one = one.model_copy(update={"left": left})
            if is_last:
                again = iso(now + timedelta(seconds=NOTICE.pause(one.tries)))
                one = one.model_copy(update={"tries": one.tries + 1, "again": again})
        kept.append(one)
    return state.model_copy(update={"messages": tuple(kept)})
