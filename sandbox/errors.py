"""How a tool fails: one exception, one vocabulary of classes, one deadline.

Mistake   (spec.py)     the caller's: goes back to the caller, ends nothing
Failure                 an answer about the platform: becomes `error_class` and `error` of a result
└── Overdue             the call's own deadline passed
Broken                  ours (no broker, no library): the guest ends with a status, never with an answer
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

CLASSES = (
    "",
    "bad_request",
    "refused",
    "unreachable",
    "timeout",
    "too_large",
    "garbage",
    "reverted",
    "oog",
    "http",
    "disk_full",
    "busy",
    "cannot_start",
    "unfunded",
    "internal",
)
"""Every word that `error_class` of a result can hold."""

HINTS = ("", "funding", "auth", "rate")
"""Every word of `hint`."""

OUR_FAILURES = frozenset(
    {
        "refused",
        "internal",
        "unreachable",
        "timeout",
        "busy",
        "too_large",
        "disk_full",
        "cannot_start",
        "bad_request",
        "unfunded",
    }
)
"""error_class words that say "could not look": never a statement about the platform.

`unreachable` and `timeout` may be an outage, which is a separate finding (runs/outage/decide.py), not one
about the probed subject; `busy`: this machine was too slow to tell; `cannot_start`: a program of the profile
does not run here; `unfunded`: the throwaway identity has no credit left.
"""

GATEWAY = frozenset({502, 503, 504})
"""Statuses of a gateway whose upstream does not answer."""

_HEX = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{16,}\b")
_WORDS = (
    ("funding", re.compile(r"\b402\b|payment|no session|insufficient|credit")),
    ("auth", re.compile(r"\b40[13]\b|unauthorized|forbidden|signature")),
    ("rate", re.compile(r"\b429\b|rate limit")),
)
_STATUSES = {402: "funding", 401: "auth", 403: "auth", 429: "rate"}


class Failure(Exception):
    """The platform, or the way to it, failed a call; `error_class` is one of CLASSES."""

    def __init__(self, error_class: str, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.error_class, self.status = error_class, status

    def __reduce__(self) -> tuple[type[Failure], tuple[str, str]]:
        """Between processes of one jail."""
        return Failure, (self.error_class, str(self))


class DeadlinePassed(Failure):
    def __init__(self, message: str = "the call's deadline passed") -> None:
        super().__init__("timeout", message)


class JailBroken(Exception):
    """The jail itself cannot work: this must never be read as an answer about the platform."""


class Deadline:
    """A total time limit that many steps share; every wait inside a tool uses the remaining time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that remain, never below a millisecond; raises DeadlinePassed when there are none."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise DeadlinePassed()
        return max(remaining, 0.001)

    def within(self, seconds: float) -> Deadline:
        """A shorter limit inside this one."""
        return Deadline(min(seconds, self.left()))


def cause_of(result: Mapping[str, Any]) -> str:
    """The error_class of a result, `unreachable` for an answer that only a gateway gave, "" when all is
    well."""
    return "unreachable" if result.get("status") in GATEWAY else str(result.get("error_class", ""))


def hint(status: int, text: str = "") -> str:
    """What would help: `funding`, `auth`, `rate` or nothing (platform-facts 1.8).

    A status that means something decides alone. The words are a fallback for failures without any
    status, read only after hex is taken out: a hash may hold `402`.
    """
    if status:
        return _STATUSES.get(status, "")
    lowered = _HEX.sub(" ", text).lower()
    return next((word for word, pattern in _WORDS if pattern.search(lowered)), "")
