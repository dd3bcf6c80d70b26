"""Identity of findings.

Version 3, for what has a kind (kinds/): the kind's id and the parts of its place, whatever oracle, probe or
tool met it, for whatever persona. Version 2, for a probe without a kind: the surface and the signature of the
observation (sighting.py), plus the normalised repro if the signature alone does not identify the defect.
Version 1, for older entries of the log and for strangers' entries: surface and normalised repro, or title
without a repro. A finding also carries its names of older versions, so that it matches an older entry.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fleet.findings.kinds import kinds
from fleet.findings.repro import ReproCall, spell
from fleet.findings.sighting import Sighting
from fleet.text import clean

HEX_DIGITS = 12
"""48 bits: no accidental match among a million findings; forging one gains nothing in triage."""

_RUN_NAME = re.compile(r"\bqa-[a-z0-9]{4,40}-\d{1,4}\b")
_RUN_HEX = re.compile(r"\b0x(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{40})\b")
_BLANKS = re.compile(r"\s+")


def normalise(text: str) -> str:
    """Text as a key: cleaned, NFC, case-folded, single spaces. `Compile  PANIC` is `compile panic`."""
    shown = clean(text).casefold()
    if not shown.isascii():  # marks are capped already, which keeps normalisation linear
        shown = unicodedata.normalize("NFC", shown)
    return _BLANKS.sub(" ", shown).strip()


def normalise_repro(calls: Sequence[ReproCall]) -> str:
    """The canonical repro without the parts that differ between runs.

    Disposable names, addresses and hashes become placeholders, runs of white space one space. Letter case
    and bare hex are kept: as compiler input they matter.
    """
    return spell([ReproCall(call.tool, {k: _steady(v) for k, v in call.args.items()}) for call in calls])


def _steady(value: Any) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, str):
        value = _RUN_HEX.sub("{hex}", _RUN_NAME.sub("{name}", value))
        return _BLANKS.sub(" ", value)
    if isinstance(value, dict):
        return {key: _steady(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_steady(inner) for inner in value]
    return value


def fingerprint(surface: str, calls: Sequence[ReproCall], title: str) -> str:
    """12 hex digits that name the finding. Severity, wording and run do not matter when there is a repro."""
    kind, what = ("repro", normalise_repro(calls)) if calls else ("title", normalise(title))
    return _hashed(f"{_surface(surface)}\0{kind}\0{what}")


@lru_cache(maxsize=256)
def _surface(name: str) -> str:
    return normalise(name)


def identity(surface: str, sighting: Sighting, calls: Sequence[ReproCall]) -> str:
    """12 hex digits, the same for the same defect, for any probe or driver: version 3, 2 without a kind."""
    if not sighting.kind:
        return _seen(surface, sighting.signature, calls, whole=sighting.whole)
    place = (f"{part} {_steady(clean(text)).strip()}" for part, text in sorted(sighting.where.items()))
    kind = kinds()[sighting.kind].same_as or sighting.kind
    return _hashed("\0".join((f"kind {kind}", *place)))


def graver(name: str, severity: str) -> str:
    """The name of a later, graver sighting of a defect, whose entry has `name` as its former one."""
    return _hashed(f"graver {severity}\0{name}")


def second(surface: str, sighting: Sighting, calls: Sequence[ReproCall]) -> tuple[str, ...]:
    """The version 2 of what has a version 3."""
    if not sighting.kind:
        return ()
    return (_seen(surface, sighting.signature, calls, whole=sighting.whole),)


def former(surface: str, sighting: Sighting, calls: Sequence[ReproCall]) -> tuple[str, ...]:
    """Its names of earlier forms of version 2; two defects may have shared one, so the calls must be the same
    too."""
    return tuple(_seen(surface, text, calls, whole=whole) for text, whole in sighting.former)


def _seen(surface: str, signature: str, calls: Sequence[ReproCall], *, whole: bool) -> str:
    what = "" if whole else normalise_repro(calls)
    return _hashed(f"{_surface(surface)}\0seen\0{signature}\0{what}")


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HEX_DIGITS]
