"""Records of egress, permitted or refused: evidence, written by the broker alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRecord:
    """One request; bytes of bodies, milliseconds."""

    verb: str  # RPC, TX, AUTH, CONNECT or the HTTP method; "?" when none could be read
    host: str
    what: str  # JSON-RPC methods, a selector, a key's label, a path without its query
    status: int  # of the broker's own answer; 200 for one that was passed on
    rule: str = ""  # why it was refused or cut; "" when it was not
    sent: int = 0
    received: int = 0
    ms: float = 0.0
    pause: float = 0.0  # seconds that the host asked to wait (Retry-After)
    strained_s: float = 0.0  # for which the host has been strained although it was asked less


@dataclass(slots=True)
class EgressEntry:
    """A record in the making."""

    verb: str = "?"
    host: str = ""
    what: str = ""
    sent: int = 0
    received: int = 0
    status: int = 0
    pause: float = 0.0
    strained_s: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def record(self, rule: str) -> EgressRecord:
        return EgressRecord(
            verb=self.verb,
            host=self.host,
            what=self.what,
            status=self.status,
            rule=rule,
            sent=self.sent,
            received=self.received,
            ms=round((time.monotonic() - self.started) * 1000, 3),
            pause=self.pause,
            strained_s=self.strained_s,
        )
