"""Placeholders in a probe's arguments: which exist, and which words in braces are mistakes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches

PLACEHOLDERS: dict[str, str] = {
    "site": "base URL of the platform's site",
    "proxy": "base URL of the platform's proxy",
    "listener": "URL of the fleet's own listener, for a word `qah` and 12 hexadecimal digits behind a slash",
    "name": "a fresh disposable name of this attempt, `qa-<run>-<n>`",
    "run": "the run's id",
    "face:NAME": "public face of NAME; `{face:{name}}` is that of the run's own disposable name",
    "target:ROLE": "what the profile's `[targets]` names for a role: a name, or a URL",
}
"""By their form in braces."""
WORDS = tuple(form for form in PLACEHOLDERS if ":" not in form)
KINDS = tuple(form.partition(":")[0] for form in PLACEHOLDERS if ":" in form)
FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")
TARGET = re.compile(r"\{target:([a-z][a-z0-9-]{0,31})\}")
FORM = "placeholders: " + ", ".join("{" + form + "}" for form in PLACEHOLDERS)

_LIKE = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)(:[^{}]*)?\}")
_CLOSE = 0.75
_AFTER = ("", "/", "?", "#")
"""What may follow a base URL."""


def mistaken(text: str, *, points: bool, roles: Collection[str] | None = None) -> Iterator[tuple[int, str]]:
    """Position and reason of each word in braces that is not a placeholder.

    `points`: the argument names a part of the platform, where braces mean nothing else; in a source or a
    message only a word close to a placeholder is one. `roles`: the known ones of `{target:ROLE}`.
    """
    plain = text.replace("{name}", "qa-run-1").replace("{run}", "run")
    filled = TARGET.sub("x", plain)
    for found in _LIKE.finditer(text):
        word, rest = found[1], found[2] or ""
        known = KINDS if rest else WORDS
        if word not in known and (points or _close(word, known)):
            yield found.start(), f"no placeholder {found[0]}{_close(word, known)}"
        elif (
            points
            and word in ("site", "proxy", "listener")
            and text[found.end() : found.end() + 1] not in _AFTER
        ):
            yield found.start(), f"a slash is missing between {found[0]} and {text[found.end() :][:40]!r}"
        elif word == "target" and not TARGET.fullmatch(found[0]):
            yield found.start(), f"{found[0]} names no role: a role is a-z, 0-9 and -"
        elif word == "target" and roles is not None and rest[1:] not in roles:
            yield found.start(), f"no profile names a target {rest[1:]!r}{_close(rest[1:], roles)}"
    for found in re.finditer(r"\{face:[^{}]*\}", filled):
        if not FACE.fullmatch(found[0]):
            yield max(text.find("{face:"), 0), f"{found[0]} names no face: a name is a-z, 0-9 and -"


def _close(word: str, known: Collection[str]) -> str:
    close = get_close_matches(word, sorted(known), n=1, cutoff=_CLOSE)
    return f"; did you mean {close[0]!r}?" if close else ""
