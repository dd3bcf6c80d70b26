"""Values that a shell completes: words of a fixed list, fingerprints of the worklist."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fleet.errors import FleetError
from fleet.files import state_dir
from fleet.text import clean
from fleet.triage.outputs.files import written

_TITLE = 60


def completed_from(words: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion by these words."""
    known = tuple(words)
    return lambda incomplete: [word for word in known if word.startswith(incomplete)]


def fingerprints(incomplete: str) -> list[tuple[str, str]]:
    """Items of the list on disk, ours, with the beginning of their titles."""
    try:
        known = written(state_dir())
    except FleetError:
        return []
    items = (*known.items, *known.closed) if known else ()
    ours = [one for one in items if one.trusted and one.fingerprint.startswith(incomplete.lower())]
    return [(one.fingerprint, clean(one.title, _TITLE)) for one in ours]
