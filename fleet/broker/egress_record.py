"""The record of egress, in `egress.jsonl` of its run: a line before a request leaves, and one of the same
number when it is over or was refused.

Written by the broker alone, on the trusted side. What a request is about stands in `egress.open` as well, so
that one whose process is killed has its second line too; one that cannot be recorded does not leave.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fleet.broker.rpc_policy import Denied
from fleet.clock import Clock, iso_ms
from fleet.config.escalation import Level
from fleet.errors import FleetError
from fleet.events.chain import Place
from fleet.events.record import RecordFile
from fleet.events.recorded import lines
from fleet.files import FULL, disk_refused

EGRESS, OPEN = "egress.jsonl", "egress.open"
REQUEST, RESPONSE = "request", "response"
"""What a line is of (`event_type`): what leaves, and how that ended."""
LARGEST = 50_000_000
"""Bytes of a run's record; nothing leaves beyond it."""
CUT = "cut"
"""The rule of a request that broke off, or whose process was killed."""
_SLOT = 4_096
SHOWN = 200
"""Characters of a host, a path or another text."""


class Calls(NamedTuple):
    """The first and the last call of one jail, by number."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRecord:
    """One request; bytes of bodies, milliseconds."""

    verb: str  # RPC, TX, AUTH, CONNECT or the HTTP method; "?" when none could be read
    host: str
    what: str  # JSON-RPC methods, a selector, a key's label, a path without its query
    status: int  # of the host's answer, else the broker's own
    rule: str = ""  # why it was refused or cut; "" when it was not
    address: str = ""  # that was dialled
    addresses: tuple[str, ...] = ()  # that the name led to; () for no name
    ttl_s: int | None = None  # for how long that holds, where the resolver said so
    moved: str = ""  # what of it is new and nobody has confirmed
    sent: int = 0
    received: int = 0
    ms: float = 0.0
    pause: float = 0.0  # seconds that the host asked to wait (Retry-After)
    strained_s: float = 0.0  # for which the host has been strained although it was asked less
    share: float = 1.0  # of its rate with which the host is asked from now on
    criticality: str = ""  # of the host, as the profile has it; "" for the broker's own services
    judged_ms: float = 0.0  # that the slowest judgement of its scope took
    waited_ms: float = 0.0  # for its turns: at the host, in its network, among all


class OpenRequest(NamedTuple):
    """A request under way: its number, its place in `egress.open`, and when it began."""

    number: int
    slot: int
    at: str


@dataclass(slots=True)
class EgressEntry:
    """A record in the making."""

    verb: str = "?"
    host: str = ""
    what: str = ""
    address: str = ""
    addresses: tuple[str, ...] = ()
    ttl_s: int | None = None
    moved: str = ""
    sent: int = 0
    received: int = 0
    status: int = 0
    pause: float = 0.0
    strained_s: float = 0.0
    share: float = 1.0
    criticality: str = ""
    judged_ms: float = 0.0
    waited_s: float = 0.0
    opened: OpenRequest | None = None
    started: float = field(default_factory=time.monotonic)

    def record(self, rule: str) -> EgressRecord:
        return EgressRecord(
            verb=self.verb,
            host=self.host,
            what=self.what,
            status=self.status,
            rule=rule,
            address=self.address,
            addresses=self.addresses,
            ttl_s=self.ttl_s,
            moved=self.moved,
            sent=self.sent,
            received=self.received,
            ms=round((time.monotonic() - self.started) * 1000, 3),
            pause=self.pause,
            strained_s=self.strained_s,
            share=round(self.share, 3),
            criticality=self.criticality,
            judged_ms=round(self.judged_ms, 3),
            waited_ms=round(self.waited_s * 1000, 3),
        )


class EgressLog:
    """The record of one run; no file before the first request.

    `mask` hides secrets. Once `fault` is set nothing leaves any more: the disk is full, the record is, or it
    cannot be written for another reason, which is given to `failed`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        mask: Callable[[str], str] = str,
        failed: Callable[[str], None] = lambda _: None,
        largest: int = LARGEST,
    ) -> None:
        self._folder, self._clock, self._failed, self._largest = folder, clock, failed, largest
        self._mask = functools.lru_cache(maxsize=1_024)(lambda text: mask(text)[:SHOWN])
        self._file: RecordFile | None = None
        self._slots = -1
        self._free: list[int] = []
        self._last = self._places = 0
        self.fault: FleetError | None = None
        if (folder / EGRESS).exists():  # of a process that was killed: what was under way becomes lines
            with self._writing():
                self._open()

    def begin(self, calls: Calls, entry: EgressEntry) -> None:
        """Note a request before it leaves, on behalf of these calls; Denied when that is not possible."""
        if self.fault is None:
            with self._writing():
                file = self._file or self._open()
                if not os.fstat(file.fileno()).st_nlink:
                    raise FileNotFoundError(errno.ENOENT, "it was removed")
                if file.size > self._largest:
                    self.fault = FleetError(f"{EGRESS} is full: {file.size} of {self._largest} bytes")
                else:
                    self._last += 1
                    slot = self._free.pop() if self._free else self._places
                    self._places = max(self._places, slot + 1)
                    entry.opened = OpenRequest(self._last, slot, iso_ms(self._clock.now()))
                    asked = self._begun(entry.opened, calls, entry.record(CUT), REQUEST)
                    file.append([json.dumps(asked, separators=(",", ":")).encode()])
                    text = self._line(entry.opened, calls, entry.record(CUT))[: _SLOT - 1]
                    os.pwrite(self._slots, text.ljust(_SLOT - 1) + b"\n", slot * _SLOT)
        if self.fault is not None:
            raise Denied("record", f"it cannot be recorded: {self.fault}", status=503)

    def end(self, calls: Calls, entry: EgressEntry, record: EgressRecord) -> None:
        """Write the line of a request that is over, or that was refused before it began."""
        with self._writing():
            file = self._file or self._open()
            if (one := entry.opened) is None:
                self._last += 1
                one = OpenRequest(self._last, -1, iso_ms(self._clock.now()))
            file.append([self._line(one, calls, record)])
            if one.slot >= 0:
                os.pwrite(self._slots, b" ", one.slot * _SLOT)
                self._free.append(one.slot)

    def _begun(self, one: OpenRequest, calls: Calls, record: EgressRecord, kind: str) -> dict[str, object]:
        """What both lines of a request say."""
        return {
            "n": one.number,
            "at": one.at,
            "event_type": kind,
            "source": "broker",
            "correlation_id": self._folder.name,  # the run
            "call": calls.first,
            **({"last_call": calls.last} if calls.last != calls.first else {}),
            "verb": record.verb,
            "host": self._mask(record.host),
            "path" if record.what.startswith("/") else "what": self._mask(record.what),
        }

    def _line(self, one: OpenRequest, calls: Calls, record: EgressRecord) -> bytes:
        line = {
            **self._begun(one, calls, record, RESPONSE),
            "address": record.address,
            **({"addresses": record.addresses} if len(record.addresses) > 1 else {}),
            **({"ttl_s": record.ttl_s} if record.ttl_s is not None else {}),
            **({"moved": self._mask(record.moved)} if record.moved else {}),
            **({"criticality": record.criticality} if record.criticality else {}),
            "rule": record.rule,
            "judged_ms": record.judged_ms,
            "waited_ms": record.waited_ms,
            "status": record.status,
            "sent": record.sent,
            "received": record.received,
            "ms": record.ms,
        }
        return json.dumps(line, separators=(",", ":")).encode()

    def sync(self) -> None:
        """Make what was recorded so far durable: a kill loses nothing without it, a power failure seconds."""
        if self._file is not None:
            with self._writing():
                self._file.sync()

    @property
    def end_place(self) -> Place:
        """The number of lines, and the head of their chain."""
        return self._file.end if self._file is not None else Place()

    def _open(self) -> RecordFile:
        self._file = file = RecordFile(self._folder / EGRESS, sync=False)
        file.end_line()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._slots = os.open(self._folder / OPEN, flags, 0o600)
        known = {0}
        for line in lines(self._folder / EGRESS):
            with suppress(ValueError, TypeError, KeyError):
                found = json.loads(line.text)
                self._last = max(self._last, int(found["n"]))
                if found.get("event_type") != REQUEST:
                    known.add(int(found["n"]))
        for place in range(0, os.fstat(self._slots).st_size, _SLOT):
            text = os.pread(self._slots, _SLOT, place).strip()
            with suppress(ValueError, TypeError, KeyError):
                if (number := int(json.loads(text)["n"])) not in known:
                    file.append([text])
                    known.add(number)
        os.ftruncate(self._slots, 0)
        self._last = max(self._last, *known)
        return file

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self.fault is not None:
                return
            path = self._folder / EGRESS
            if error.errno in FULL:  # the daemon waits for space by itself
                self.fault = disk_refused(path, error)
            else:
                self.fault = FleetError(f"{path}: {error.strerror}", remedy=f"make {path.parent} writable")
                self._failed(str(self.fault))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._slots >= 0:
            os.close(self._slots)
            self._slots = -1


class CallEgress(NamedTuple):
    """The record of a run, on behalf of the calls of one jail."""

    log: EgressLog
    calls: Calls
    impact: Level = "low"
