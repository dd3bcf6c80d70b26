"""Charts of the measurements that a finding rests on: `plots/<fingerprint>*.svg` in the run's folder.

Fails open: a chart that cannot be drawn or written costs a picture, nothing else.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleet.files import write_atomic
from fleet.oracles.measures import latency_of, samples
from fleet.oracles.model import Exchange
from fleet.oracles.statistics import charts
from fleet.runs.proof.candidates import Candidate
from fleet.store.rows import SampleRow

_LOG = logging.getLogger("fleet.plots")


def draw(
    folder: Path,
    found: Sequence[Candidate],
    exchanges: Sequence[Exchange],
    past: Mapping[str, Sequence[SampleRow]],
) -> None:
    """The page against its control, and over time if there is a history, for each finding of latency."""
    try:
        pair, last = samples(exchanges[-1]), exchanges[-1]
        for one in found:
            if pair is None or one.surface != "perf":
                continue
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            title = one.sighting.title
            looks = past.get(latency_of(last.args), ())
            before = [look.own for look in looks]
            _write(folder / f"{one.fingerprint}.svg", charts.distribution(title, *pair, before))
            if looks:
                course = [*(statistics.median(look.own) for look in looks), statistics.median(pair[0])]
                _write(folder / f"{one.fingerprint}-history.svg", charts.course(title, course))
    except Exception as error:  # whatever a chart library raises
        _LOG.warning("%s: not drawn: %s", folder, error)


def _write(path: Path, picture: bytes) -> None:
    write_atomic(path, picture, sync_name=False)
