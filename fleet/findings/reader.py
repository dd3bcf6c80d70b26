"""Reading the log: three grammars of `qa/v1` and free text, all unverified claims.

Grammars (platform-facts 1.2), strictest first; anything else is `free` and keeps only a title:

    canonical  source, sev, surface and fp in the header line, title, text, `repro:` as the last line
    design     source, sev and surface in the header line, then text and perhaps a `repro:` line
    sop        source and sev, then text on the same or the next lines
    shipped    source=<s> v<version>: <body>

An invalid header value makes the whole entry `free`: entries are never partly trusted.
The log is permissionless, so a repro read here may be shown, but is run only for a trusted sender.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fleet.findings.instances import ALSO, Instance, read_line
from fleet.findings.repro import ReproCall, ReproError, parse_repro
from fleet.severity import ON_THE_LOG, UNKNOWN
from fleet.text import clean, cut_bytes, line

Grammar = Literal["canonical", "design", "shipped", "sop", "free"]
ReproState = Literal["calls", "evidence", "none", "invalid"]

MAX_CHARS = 16_384
"""Most characters read of an entry; the log takes 2,048 bytes, a lying node sends more. Also the most that
the repetitions of its repro make: triage holds every entry in memory, and anyone may write one."""

HEADER_CHARS = 1_024
"""Limit of the shipped grammar's header, whose own parser has none; values bound the other headers."""

TITLE_BYTES = 240

PREFIX = "qa/v1 "
SOURCE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
SURFACE = r"^[a-z0-9][a-z0-9-]{0,31}$"
RUN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
FP = r"^[0-9a-f]{12}$"
EV = r"^[0-9a-f]{64}$"
FORMERLY = "formerly: "
"""Begins the line below the title with the fingerprints that version 2 had for the same."""
FORMER = 4
"""Such fingerprints at most."""

_RULES = {
    "source": re.compile(SOURCE),
    "sev": re.compile(r"^[a-z0-9]{1,16}$"),
    "surface": re.compile(SURFACE),
    "run": re.compile(RUN),
    "fp": re.compile(FP),
    "was": re.compile(FP),
    "rate": re.compile(r"^\d{1,2}/[1-9]\d?$", re.ASCII),
    "ev": re.compile(r"^sha256:[0-9a-f]{64}$"),
    "v": re.compile(r"^\d{1,3}$", re.ASCII),
}
_SKIM = re.compile(
    rf"qa/v1 source=([A-Za-z0-9][A-Za-z0-9._-]{{0,63}}) sev=({'|'.join(ON_THE_LOG)})"
    r" surface=([a-z0-9][a-z0-9-]{0,31})(?: run=([A-Za-z0-9][A-Za-z0-9._-]{0,63}))? fp=([0-9a-f]{12})"
    r"(?: was=([0-9a-f]{12}))?(?: rate=([0-9]{1,2})/([1-9][0-9]?))?(?: ev=sha256:([0-9a-f]{64}))?\n(.*)",
    re.DOTALL,
)
_FORMERLY = re.compile(rf"\A{FORMERLY}([0-9a-f]{{12}}(?:, [0-9a-f]{{12}}){{0,{FORMER - 1}}})(?:\n|$)")
_FIELD = re.compile(r"([a-z]{1,16})=(\S+)(?: +|$)")


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """One parsed entry of the log; text fields are cleaned, `severity` is one of `ON_THE_LOG`."""

    grammar: Grammar
    title: str
    source: str = ""
    severity: str = UNKNOWN
    surface: str = "unknown"
    version: str = ""
    run: str = ""
    fp: str = ""
    was: str = ""
    rate: tuple[int, int] | None = None
    ev: str = ""
    former: tuple[str, ...] = ()
    also: tuple[Instance, ...] = ()
    """Where else the same was met; `more` such places are not listed."""
    more: int = 0
    body: str = ""
    repro: tuple[ReproCall, ...] = ()
    repro_state: ReproState = "none"


def read(text: str) -> ParsedEntry:
    """Any text at all as an Entry; never raises, and reads at most `MAX_CHARS` characters."""
    text = text[:MAX_CHARS]
    if not text.startswith(PREFIX):
        return _free(text)
    if (found := _SKIM.fullmatch(text)) and (entry := _usual(found.groups(""))):
        return entry
    head, _, rest = text.partition("\n")
    fields, tail = _fields(head[len(PREFIX) :].rstrip(" \r"))
    if fields and "source" in fields and "sev" in fields:
        return _keyed(fields, tail, rest) or _free(text)
    return _shipped(text) or _free(text)


def _free(text: str) -> ParsedEntry:
    title = _title(next((part for part in text.splitlines() if part.strip()), ""))
    return ParsedEntry("free", title or "(empty)", body=clean(text, newlines=True).strip())


def _title(text: str) -> str:
    return cut_bytes(line(text, TITLE_BYTES), TITLE_BYTES)


def _fields(head: str) -> tuple[dict[str, str] | None, str]:
    """The leading `key=value` tokens and what follows them; None for a duplicate key or an invalid value."""
    fields: dict[str, str] = {}
    at = 0
    while (match := _FIELD.match(head, at)) and match[1] in _RULES:
        name, value = match.groups()
        if name in fields or not _RULES[name].fullmatch(value):
            return None, ""
        fields[name] = value
        at = match.end()
    return fields, head[at:]


def _keyed(fields: dict[str, str], tail: str, rest: str) -> ParsedEntry | None:
    grammar: Grammar = "sop"
    if "surface" in fields and not tail:
        grammar = "canonical" if "fp" in fields else "design"
    severity = fields["sev"] if fields["sev"] in ON_THE_LOG else UNKNOWN
    if grammar != "sop" and fields["sev"] not in ON_THE_LOG:
        return None
    rate = tuple(map(int, fields["rate"].split("/"))) if "rate" in fields else None
    if rate and rate[0] > rate[1]:
        return None
    said = _said(f"{tail}\n{rest}" if tail else rest, last_only=grammar == "canonical")
    if said is None:
        return None
    title, body, calls, state = said
    return ParsedEntry(
        grammar,
        _title(title),
        source=fields["source"],
        severity=severity,
        surface=fields.get("surface", "unknown"),
        version=fields.get("v", ""),
        run=fields.get("run", ""),
        fp=fields.get("fp", ""),
        was=fields.get("was", ""),
        rate=rate,  # type: ignore[arg-type]  # two numbers by _RULES
        ev=fields.get("ev", "").removeprefix("sha256:"),
        repro=calls,
        repro_state=state,
        **_below(body)._asdict(),
    )


def _usual(fields: tuple[str, ...]) -> ParsedEntry | None:
    """An entry as the fleet writes it, in half of the time; None where the other way decides."""
    source, severity, surface, run, fp, was, hits, tries, ev, below = fields
    rate = (int(hits), int(tries)) if hits else None
    said = _said(below, last_only=True)
    if said is None or (rate and rate[0] > rate[1]):
        return None
    return ParsedEntry(
        "canonical",
        _title(said[0]),
        source=source,
        severity=severity,
        surface=surface,
        run=run,
        fp=fp,
        was=was,
        rate=rate,
        ev=ev,
        repro=said[2],
        repro_state=said[3],
        **_below(said[1])._asdict(),
    )


def _said(text: str, *, last_only: bool) -> tuple[str, str, tuple[ReproCall, ...], ReproState] | None:
    """What stands below the header: title and body as they are, and the repro; None without a title."""
    text, repro = _split_repro(text, last_only=last_only)
    title, _, body = text.strip().partition("\n")
    return (title, body, *_repro(repro)) if title.strip() else None


class _Below(NamedTuple):
    former: tuple[str, ...]
    also: tuple[Instance, ...]
    more: int
    body: str


def _below(text: str) -> _Below:
    """What stands between title and repro: former fingerprints, other places, and words."""
    former = former_of(text)
    words = clean(_FORMERLY.sub("", text), newlines=True).strip()
    head, _, last = words.rpartition("\n")
    if last.startswith(ALSO) and (found := read_line(last)):
        return _Below(former, *found, head.strip())
    return _Below(former, (), 0, words)


def former_of(text: str) -> tuple[str, ...]:
    """The former fingerprints that the first line below a title states."""
    found = _FORMERLY.match(text)
    return tuple(found[1].split(", ")) if found else ()


def skim(text: str) -> tuple[str, ...] | None:
    """Source, severity, surface, run, fp, was, hits, tries, ev and the unread rest of a canonical entry.

    Only for a header as the fleet itself writes it; None: `read` it. An omitted field is "". Where `tail_of`
    can read the rest, and no more were hit than tried, `read` would say the same (a tenth of its cost).
    """
    found = _SKIM.fullmatch(text)
    return found.groups("") if found and len(text) <= MAX_CHARS else None


def tail_of(tail: str) -> tuple[str, tuple[ReproCall, ...], ReproState] | None:
    """Title and repro of a skimmed entry; None where `read` is needed."""
    said = _said(tail, last_only=True)
    return (_title(said[0]), said[2], said[3]) if said else None


def _split_repro(text: str, *, last_only: bool) -> tuple[str, str]:
    """Text and repro line: the last line, or in the older grammars the last line that starts like one."""
    lines = text.rstrip().split("\n")
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].startswith("repro:"):
            return "\n".join(lines[:at] + lines[at + 1 :]), lines[at][len("repro:") :].strip()
        if last_only:
            break
    return text, "none"


def _repro(text: str) -> tuple[tuple[ReproCall, ...], ReproState]:
    if text in ("", "none"):
        return (), "none"
    if text == "ev":
        return (), "evidence"
    try:
        return parse_repro(text, MAX_CHARS), "calls"
    except ReproError:
        return (), "invalid"


def _shipped(text: str) -> ParsedEntry | None:
    """The parser that upstream shipped, step by step, but with a limit on the header."""
    head, separator, body = text[len(PREFIX) :].partition(": ")
    if not separator or len(head) > HEADER_CHARS or not body.strip():
        return None
    tokens = head.split()
    source = next((token[len("source=") :] for token in tokens if token.startswith("source=")), "")
    version = next((token for token in tokens if re.match(r"v[0-9]", token)), "")
    if not version or not _RULES["source"].fullmatch(source):
        return None
    title, _, rest = body.strip().partition("\n")
    return ParsedEntry(
        "shipped",
        _title(title),
        source=source,
        version=line(version[1:], 32),
        body=clean(rest, newlines=True).strip(),
    )
