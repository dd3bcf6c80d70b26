"""Records of an item's life on the log: written by triage, or published for a person. Pure.

A record is a canonical envelope under the item's own fingerprint, from `qa-triage`, `sev=info`:

    qa/v1 source=qa-triage sev=info surface=ux fp=<item>
    dismiss: <title of the item>
    {"at":"2026-11-23T07:00:00Z","reason":"as designed","until":"2026-12-23T00:00:00Z","who":"alice"}
    repro: none

The first word of the title is the kind; the body is one line of canonical JSON (RFC 8785) with the fields of
that kind, `at` in all of them. Only a record of a trusted sender counts (the reader of the log knows); one
that does not fit is an ordinary note. `seen`, `verified-fixed`, `proposed` and `needs-repro` are the
machine's, the other kinds a person's. Entries of the older form, `verified-fixed: N clean re-runs in run R,
T: title` without a body, are records too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

import rfc8785
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.dataclasses import dataclass

from fleet.findings.envelope import Envelope, write
from fleet.findings.proof import TRIES
from fleet.findings.reader import FP, ParsedEntry
from fleet.findings.recurrence import Recurrence
from fleet.findings.redact import Redactor
from fleet.severity import Severity
from fleet.text import cut_bytes, line
from sandbox import strict_json

RecordKind = Literal[
    "fixed",
    "dismiss",
    "snooze",
    "reopen",
    "severity",
    "merge",
    "split",
    "link",
    "unlink",
    "undo",
    "release",
    "verified-fixed",
    "seen",
    "proposed",
    "needs-repro",
]
SOURCE = "qa-triage"
REASON_BYTES = 1_000
"""Most bytes of a reason as JSON: beside the longest title and surface a record then fits into an entry."""
WHO_BYTES = 120
COUNT = 1_000_000_000
_TITLE_CHARS = 200
_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = MappingProxyType(
    {
        "fixed": (frozenset(), frozenset()),
        "dismiss": (frozenset(), frozenset({"until"})),
        "snooze": (frozenset({"until"}), frozenset()),
        "reopen": (frozenset(), frozenset()),
        "severity": (frozenset({"severity"}), frozenset()),
        "merge": (frozenset({"other"}), frozenset()),
        "split": (frozenset(), frozenset()),
        "link": (frozenset({"other", "link"}), frozenset()),
        "unlink": (frozenset({"other"}), frozenset()),
        "undo": (frozenset({"undoes"}), frozenset()),
        "release": (frozenset(), frozenset()),
    }
)
"""Fields of a decision beyond `at`, `reason` and `who`: required, optional."""
_MACHINES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = MappingProxyType(
    {
        "verified-fixed": (frozenset({"runs", "who"}), frozenset({"reason"})),
        "seen": (frozenset({"runs", "days", "last"}), frozenset({"who"})),
        "proposed": (frozenset({"reason", "who"}), frozenset()),
        "needs-repro": (frozenset({"reason", "who"}), frozenset()),
    }
)
"""Fields of the other records beyond `at`: required, optional."""
_KIND = re.compile(rf"({'|'.join((*_FIELDS, *_MACHINES))}): ")
_OLD = re.compile(
    r"verified-fixed: (\d{1,3}) clean re-runs in run ([A-Za-z0-9][A-Za-z0-9._-]{0,63}), (\S{20}): ", re.ASCII
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def _moment(text: str) -> str:
    if text:
        if not _TIME.fullmatch(text):
            raise ValueError("not a time such as 2026-11-23T07:00:00Z")
        datetime.fromisoformat(text)
    return text


def _cut(text: str, limit: int) -> str:
    """One line in at most `limit` bytes as JSON; cutting twice changes nothing."""
    room, shown = limit, line(text, limit)
    while len(rfc8785.dumps(shown)) > limit:
        shown = cut_bytes(shown.removesuffix("…"), room)
        room -= 8
    return shown


_Moment = Annotated[str, AfterValidator(_moment)]
_Reason = Annotated[str, AfterValidator(lambda text: _cut(text, REASON_BYTES))]
_Who = Annotated[str, AfterValidator(lambda text: _cut(text, WHO_BYTES))]
_Name = Annotated[str, StringConstraints(pattern=rf"{FP}|^$")]
_Count = Annotated[int, Field(ge=0, le=COUNT)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", strict=True))
class ItemRecord:
    """One record; text is cleaned and shortened on construction, ValidationError for a field that is wrong.

    `item` and `other` are fingerprints, `undoes` is the name of a decision. Times are ISO (UTC, seconds).
    Of `verified-fixed`, `runs` are the clean re-runs and `who` the run that made them; of `seen`, `runs`,
    `days` and `last` are the figures of the item. `epoch` and `index` are the place on the log, -1 unknown.
    """

    kind: RecordKind
    item: Annotated[str, StringConstraints(pattern=FP)]
    at: _Moment
    who: _Who = ""
    reason: _Reason = ""
    until: _Moment = ""
    severity: Annotated[Severity, Field(strict=False)] | Literal[""] = ""
    other: _Name = ""
    link: Literal["", "duplicate", "same-cause", "follows-from", "regression-of"] = ""
    undoes: _Name = ""
    runs: _Count = 0
    days: _Count = 0
    last: _Moment = ""
    epoch: int = -1
    index: int = -1

    @property
    def name(self) -> str:
        """12 hex digits from the content."""
        return name_of(
            kind=self.kind,
            item=self.item,
            at=self.at,
            who=self.who,
            until=self.until,
            severity=self.severity,
            other=self.other,
            link=self.link,
            undoes=self.undoes,
        )

    def placed(self, epoch: int, index: int) -> ItemRecord:
        """The same record with its place on the log."""
        return replace(self, epoch=epoch, index=index)


def name_of(  # noqa: PLR0913  what the name is made of
    *,
    kind: str,
    item: str,
    at: str,
    who: str,
    until: str = "",
    severity: str = "",
    other: str = "",
    link: str = "",
    undoes: str = "",
) -> str:
    """12 hex digits that name a decision on the log and in the journal.

    The reason is left out: it may be masked or cut on the log.
    """
    fields = (kind, item, at, _cut(who, WHO_BYTES), until, severity, other, link, undoes)
    return hashlib.sha256(rfc8785.dumps(list(fields))).hexdigest()[:12]


def write_record(record: ItemRecord, *, surface: str, title: str, redactor: Redactor | None = None) -> str:
    """The text for the log, at most 2,048 bytes; ValueError when the record lacks a field of its kind.

    Reason and title are masked; `redactor` knows the secrets of this process.
    """
    redactor = redactor or Redactor()
    masked = replace(record, reason=redactor.public(record.reason))
    named = {"at": masked.at} | {key: getattr(masked, key) for key in _allowed(record.kind)}
    body = {
        key: value for key, value in named.items() if value not in ("", 0) or key in _required(record.kind)
    }
    if _fitting(record.kind, record.item, body) != replace(masked, epoch=-1, index=-1):
        raise ValueError(f"this is not a complete record of kind {record.kind}")
    envelope = Envelope(
        source=SOURCE,
        sev=Severity.INFO,
        surface=surface,
        fp=record.item,
        title=f"{record.kind}: {line(redactor.public(title), _TITLE_CHARS) or 'untitled'}",
        body=rfc8785.dumps(body).decode(),
    )
    return write(envelope)


def read_record(entry: ParsedEntry) -> ItemRecord | None:
    """The record of an entry, None for an ordinary one. The caller has to know that its sender is trusted."""
    found = _KIND.match(entry.title)
    ours = (entry.grammar, entry.source, entry.severity) == ("canonical", SOURCE, Severity.INFO)
    if found is None or not ours:
        return None
    if not entry.body:
        return _older(entry)
    try:
        body = strict_json.loads(entry.body, pairs=_unique)
    except ValueError:
        return None
    return _fitting(found[1], entry.fp, body) if isinstance(body, dict) else None


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a repeated key")
    return made


def _required(kind: str) -> frozenset[str]:
    if kind in _MACHINES:
        return _MACHINES[kind][0] | {"at"}
    return _FIELDS[kind][0] | {"at", "reason", "who"}


def _allowed(kind: str) -> tuple[str, ...]:
    more = _MACHINES.get(kind) or _FIELDS[kind]
    return tuple(sorted(_required(kind) | more[1]))


def _fitting(kind: str, item: str, body: Mapping[str, Any]) -> ItemRecord | None:
    """The record of these fields; None unless they are exactly those of the kind and each is valid."""
    if not _required(kind) <= body.keys() <= set(_allowed(kind)):
        return None
    if any(body[key] == "" for key in body):
        return None
    try:
        return ItemRecord(kind=kind, item=item, **body)  # type: ignore[arg-type]  # pydantic checks the kind
    except (ValidationError, TypeError):
        return None


def _older(entry: ParsedEntry) -> ItemRecord | None:
    found = _OLD.match(entry.title)
    if found is None:
        return None
    body = {"runs": int(found[1]), "who": found[2], "at": found[3]}
    return _fitting("verified-fixed", entry.fp, body)


def fixed_record(item: str, clean: Recurrence) -> ItemRecord:
    """The resolve record of an item that a run found clean, by its figures under this name."""
    return ItemRecord(
        kind="verified-fixed",
        item=item,
        at=clean.clean_at,
        who=clean.clean_run,
        runs=0 if clean.clean_why else TRIES,
        reason=clean.clean_why,
    )
