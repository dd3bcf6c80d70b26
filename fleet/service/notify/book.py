"""What is known, what waits to be said and what is being said: one document in the journal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.config import NoticeEvent
from fleet.errors import ConfigError

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
        "persona-refused": "personas",
        "budget-spent": "budget",
        "degraded": "daemon",
        "proposal": "proposals",
    }
)
"""Events that share a message."""


class _NoticePart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Notice(_NoticePart):
    """One line to be said. A critical one passes quiet hours; `kept` is one that they held back."""

    event: NoticeEvent
    text: str
    at: str
    critical: bool = False
    kept: bool = False


class NoticeMessage(_NoticePart):
    """A message on its way: `left` are the receivers without it, `again` the time of the next try (ISO)."""

    id: str
    title: str
    body: str
    at: str
    events: tuple[NoticeEvent, ...]
    left: tuple[str, ...]
    tries: int = 0
    again: str = ""


class HostState(_NoticePart):
    """What one daemon reported of itself: refused personas with a digest of the reason, its trouble, and how
    the daemon before it was lost."""

    refused: dict[str, str] = {}
    trouble: str = ""
    lost: str = ""


class NoticeBook(_NoticePart):
    """The notifications of one platform.

    `items` is the last thing said of each item, and `proposals` of each proposal, None before the first look:
    what was there before is not news. `outage` is the open outage (fingerprint) and `ended` those known to be
    over; `spent` are the day and the budgets said to be spent. `sent` is when each group had its last
    message. `sender` holds the turn to send until `until`, where several daemons share the journal.
    """

    items: dict[str, str] | None = None
    proposals: dict[str, str] | None = None
    outage: str = ""
    ended: tuple[str, ...] = ()
    spent: tuple[str, ...] = ()
    hosts: dict[str, HostState] = {}
    waiting: tuple[Notice, ...] = ()
    messages: tuple[NoticeMessage, ...] = ()
    sent: dict[str, str] = {}
    sender: str = ""
    until: str = ""


def read_notices(text: str | None) -> NoticeBook:
    """A document as stored; ConfigError when it is damaged."""
    try:
        return NoticeBook.model_validate_json(text) if text else NoticeBook()
    except ValidationError:
        raise ConfigError("the stored notifications cannot be read", remedy="restore fleet.db") from None
