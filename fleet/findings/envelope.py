"""The `qa/v1` envelope: one finding on the log, in at most 2,048 bytes.

    qa/v1 source=qa-fuzz sev=high surface=compiler run=<id> fp=<12 hex> was=<12 hex> rate=3/3 ev=sha256:<hex>
    compile panics on an enum with no variants; a clean error was expected
    formerly: <12 hex>
    repro: qa_compile(source="enum E{}")

The last line is always the repro: calls, long runs in them as repetitions, `ev` when they did not fit (the
evidence bundle has them in full), or `none`. Earlier lines may therefore contain `repro:`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from fleet.findings.reader import (
    EV,
    FORMER,
    FORMERLY,
    FP,
    MAX_CHARS,
    PREFIX,
    RUN,
    SOURCE,
    SURFACE,
    TITLE_BYTES,
)
from fleet.findings.reader import ParsedEntry as ParsedEntry
from fleet.findings.reader import read as read
from fleet.findings.redact import Redactor
from fleet.findings.repro import ReproCall, ReproError, write_repro
from fleet.severity import ON_THE_LOG
from fleet.text import clean, cut_bytes, line

MAX_BYTES = 2_048
"""Limit of the log: bytes, not characters (platform-facts 1.3)."""

BODY_CHARS = 4_096


class Envelope(BaseModel):
    """One finding as the fleet claims it; text is cleaned and shortened on construction.

    `rate` is (times confirmed, times tried); empty strings and None are omitted from the header.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    source: Annotated[str, StringConstraints(pattern=SOURCE)]
    sev: Annotated[str, StringConstraints(pattern=rf"^(?:{'|'.join(ON_THE_LOG)})$")]
    surface: Annotated[str, StringConstraints(pattern=SURFACE)]
    run: Annotated[str, StringConstraints(pattern=rf"{RUN}|^$")] = ""
    fp: Annotated[str, StringConstraints(pattern=FP)]
    was: Annotated[str, StringConstraints(pattern=rf"{FP}|^$")] = ""
    """The version 1 fingerprint of these calls; its presence says that `fp` is not one."""
    former: tuple[Annotated[str, StringConstraints(pattern=FP)], ...] = ()
    """Its fingerprints of version 2, of what has one of version 3: the line below the title."""
    rate: tuple[Annotated[int, Field(ge=0, le=99)], Annotated[int, Field(ge=1, le=99)]] | None = None
    ev: Annotated[str, StringConstraints(pattern=rf"{EV}|^$")] = ""
    title: Annotated[str, Field(min_length=1)]
    body: str = ""
    repro: tuple[ReproCall, ...] = ()
    withheld: bool = False
    """Whether the repro names what the operator withholds: the evidence alone has it."""

    @field_validator("title")
    @classmethod
    def _one_line(cls, title: str) -> str:
        shown = cut_bytes(line(title, TITLE_BYTES), TITLE_BYTES)
        if not shown:
            raise ValueError("the title has no visible characters")
        return shown

    @field_validator("body")
    @classmethod
    def _visible(cls, body: str) -> str:
        return clean(body, BODY_CHARS, newlines=True).strip()

    @model_validator(mode="after")
    def _rate_fits(self) -> Envelope:
        if self.rate is not None and self.rate[0] > self.rate[1]:
            raise ValueError("confirmed more often than tried")
        return self


def compose(  # noqa: PLR0913  one for each field of the format
    redactor: Redactor,
    *,
    source: str,
    sev: str,
    surface: str,
    run: str,
    fp: str,
    rate: tuple[int, int] | None,
    ev: str,
    title: str,
    body: str = "",
    repro: Sequence[ReproCall] = (),
    was: str = "",
    former: Sequence[str] = (),
) -> Envelope:
    """An envelope, with text and repro masked before cutting; everything signed comes from here."""
    calls = tuple(ReproCall(call.tool, redactor.value(dict(call.args))) for call in repro)
    said = json.dumps([dict(call.args) for call in calls], ensure_ascii=False)
    withheld = redactor.public(said) != said
    return Envelope(
        source=source,
        sev=sev,
        surface=surface,
        run=run,
        fp=fp,
        was=was,
        former=tuple(former)[:FORMER],
        rate=rate,
        ev=ev,
        title=redactor.public(clean(title)),
        body=redactor.public(clean(body, 4 * BODY_CHARS, newlines=True)),
        repro=() if withheld else calls,
        withheld=withheld,
    )


def write(envelope: Envelope) -> str:
    """The canonical text, never above `MAX_BYTES` bytes.

    A longer one first loses its body; a repro that does not fit beside the title becomes
    `ev` (or `none` without evidence). Header, title and former fingerprints always fit.
    """
    head = f"{_header(envelope)}\n{envelope.title}\n"
    if envelope.former:
        head += f"{FORMERLY}{', '.join(envelope.former)}\n"
    room = MAX_BYTES - len(head.encode())
    repro = "repro: " + _repro(envelope, room - len("repro: "))
    body = cut_bytes(envelope.body, room - len(repro) - 1).rstrip() if room - len(repro) > 32 else ""
    return f"{head}{body}\n{repro}" if body else head + repro


def _repro(envelope: Envelope, room: int) -> str:
    if not envelope.repro:
        return "ev" if envelope.withheld and envelope.ev else "none"
    try:
        calls = write_repro(envelope.repro, MAX_CHARS)
    except ReproError:  # too long for any reader; do not lose the finding over it
        calls = " " * (room + 1)
    if len(calls) <= room:  # ASCII: characters are bytes
        return calls
    return "ev" if envelope.ev else "none"


def _header(envelope: Envelope) -> str:
    rate = f"{envelope.rate[0]}/{envelope.rate[1]}" if envelope.rate else ""
    fields = (
        ("source", envelope.source),
        ("sev", envelope.sev),
        ("surface", envelope.surface),
        ("run", envelope.run),
        ("fp", envelope.fp),
        ("was", envelope.was),
        ("rate", rate),
        ("ev", f"sha256:{envelope.ev}" if envelope.ev else ""),
    )
    return PREFIX + " ".join(f"{name}={value}" for name, value in fields if value)
