"""Learned probes: questions of explorers that showed a defect, asked again by every later run.

One file for each in `learned/<platform>/`, named by the finding's fingerprint; a person may remove it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fleet.config.section import Section
from fleet.errors import UsageError
from fleet.files import UnfitFile, read_owned, write_atomic
from fleet.personas.model import Probe

MAX_BYTES = 65_536
MOST = 500
"""Learned probes of one platform at most: a platform that answers everything wrongly must not fill a disk."""
_LOG = logging.getLogger("fleet.personas")


class Learned(Section):
    """One learned probe. `oracle` is the one that judged; `persona` the one whose run saw it first."""

    fingerprint: str
    persona: str
    oracle: str
    title: str
    run: str
    at: str
    probe: Probe


@dataclass(frozen=True, slots=True)
class LearnedProbes:
    """The learned probes of one platform. Reading fails open: a bad file is logged and left out."""

    folder: Path

    def all(self) -> tuple[Learned, ...]:
        """Every learned probe, by fingerprint."""
        if not self.folder.is_dir():
            return ()
        found = []
        for path in sorted(self.folder.glob("*.json"))[:MOST]:
            try:
                found.append(Learned.model_validate_json(read_owned(path, MAX_BYTES)))
            except (OSError, ValidationError, UnfitFile) as error:
                _LOG.warning("%s: left out: %s", path, str(error).splitlines()[0])
        return tuple(found)

    def of(self, persona: str, tools: Iterable[str], most: int) -> tuple[Probe, ...]:
        """Those of one persona whose tools it is still granted."""
        granted = set(tools)
        own = [one.probe for one in self.all() if one.persona == persona]
        return tuple(one for one in own if {step.tool for step in one.steps} <= granted)[: max(most, 0)]

    def keep(self, one: Learned, former: Iterable[str] = ()) -> None:
        """Remember a probe; the first one of a fingerprint stays, also one of its `former` fingerprints."""
        path = self._path(one.fingerprint)
        known = any(self._path(name).exists() for name in (one.fingerprint, *former))
        if known or (self.folder.is_dir() and sum(1 for _ in self.folder.iterdir()) >= MOST):
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(path, one.model_dump_json(indent=1).encode())
        except OSError as error:
            _LOG.warning("%s: not written: %s", path, error.strerror)

    def forget(self, fingerprint: str) -> Learned:
        """Remove one; UsageError when it is not there, or several begin like that."""
        matches = [one for one in self.all() if fingerprint and one.fingerprint.startswith(fingerprint)]
        if len(matches) != 1:
            what = "several learned probes begin" if matches else "no learned probe begins"
            raise UsageError(f"{what} with {fingerprint!r}", remedy="fleet personas learned")
        self._path(matches[0].fingerprint).unlink()
        return matches[0]

    def _path(self, fingerprint: str) -> Path:
        return self.folder / f"{fingerprint}.json"
