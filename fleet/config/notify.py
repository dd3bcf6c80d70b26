"""What an operator configures about notifications: `[notify]` in `fleet.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta, tzinfo
from typing import Annotated, Literal, get_args

from pydantic import StringConstraints, field_validator

from fleet.config.section import CertificateFile, HttpUrl, Section, TimeZone, in_the_clear, time_zone

SightingKind = Literal[
    "instruction",
    "fence",
    "credential",
    "sensitive-data",
    "break-in",
    "model-use",
    "strain",
    "drift",
    "challenge",
    "trap",
]
"""What a run sees besides its findings, of which an operator is notified."""
NoticeEvent = Literal[
    "finding",
    "fixed",
    "regression",
    "platform-down",
    "platform-up",
    "locked-out",
    "no-account",
    "persona-refused",
    "budget-spent",
    "degraded",
    "proposal",
    SightingKind,
    "schedule",
    "question",
    "posture",
]
Role = Literal["second", "client", "counsel"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Who may have receivers of their own: who answers in a first one's place, who ordered tests, a lawyer."""
EVENTS: tuple[NoticeEvent, ...] = get_args(NoticeEvent)
SECRETS: Mapping[str, str] = {"urls_file": "notify", "secret_file": "notify-webhook"}
"""Keys that name a file of secrets: while empty, systemd's credential of this name, else it in `keys/`."""
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}


class NotifySection(Section):
    """Who is notified of what, and when: besides the pages of `fleet up --port`, where a notice stands until
    a person dismisses it."""

    events: tuple[NoticeEvent, ...] = EVENTS
    """The events to report."""
    webhook: HttpUrl | Literal[""] = ""
    """A URL that gets each message as JSON, signed like a webhook's delivery. Plain http is for loopback."""
    secret_file: str = ""
    """Secret that signs them: at least 16 random bytes or their hex, mode 0600.

    While empty: systemd's credential `notify-webhook` if it exists, else `keys/notify-webhook`."""
    certificate_file: CertificateFile = ""
    """A file (mode 0600, an absolute path) with a certificate of the fleet's and its key, for a receiver that
    asks for one (mutual TLS)."""
    urls_file: str = ""
    """A file (mode 0600) of Apprise URLs, one a line; `ping <url>` is the dead-man's switch. After a role,
    `second`, `client` or `counsel`, a URL gets what concerns that role alone (`docs/operate.md`).

    While empty: systemd's credential `notify` if it exists, else `keys/notify`."""
    page: HttpUrl | Literal[""] = ""
    """Where receivers reach the pages of `fleet up --port`, such as `https://qa.example.org`: a message
    says where all about a notice stands, and where a question is decided."""
    quiet: Annotated[str, StringConstraints(pattern=rf"^({_TIME}-{_TIME})?$")] = ""
    """Hours in which only critical notices are sent, such as `22:00-07:00`; the others follow as one."""
    timezone: TimeZone = "UTC"
    """Time zone of the quiet hours, such as `Europe/Berlin`."""
    every: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[smh]$")] = "15m"
    """At most one message of a group of events in this time; what comes meanwhile shares the next one."""

    _clear = field_validator("webhook")(in_the_clear)

    @property
    def zone(self) -> tzinfo:
        """`timezone` as an object."""
        return time_zone(self.timezone)

    @property
    def window(self) -> timedelta:
        """`every` as a length of time."""
        return timedelta(**{_UNITS[self.every[-1]]: int(self.every[:-1])})
