"""Items that a person marked fixed: hidden from the worklist until reported again. Pure.

A resolution names a cluster and a moment. It hides what that epoch of the log had reported until then; a
later report reopens the item as a regression. After the log was cleared, old resolutions hide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from fleet.errors import ConfigError
from fleet.triage.cluster import Cluster, ReadReport


class Resolution(BaseModel):
    """`key` is a fingerprint, `at` Unix seconds, `epoch` the epoch of the log when it was resolved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
    at: Annotated[int, Field(ge=0)]
    epoch: Annotated[int, Field(ge=0)]
    note: str = ""
    index: int = -1
    """Of a record on the log: it resolves the entries before it; -1: those up to `at`."""


_ALL = TypeAdapter(tuple[Resolution, ...])


def read_resolutions(text: str | None) -> tuple[Resolution, ...]:
    """Resolutions as stored; ConfigError when damaged, since hiding by guess would lose findings."""
    try:
        return _ALL.validate_json(text) if text else ()
    except ValidationError:
        raise ConfigError("the stored resolutions cannot be read", remedy="restore fleet.db") from None


def write_resolutions(resolutions: Sequence[Resolution]) -> str:
    """The format that `read_resolutions` reads."""
    return _ALL.dump_json(tuple(resolutions)).decode()


def apply(clusters: Iterable[Cluster], resolutions: Iterable[Resolution]) -> list[Cluster]:
    """The clusters that are still open; one with reports after its resolution carries `resolved_at`."""
    by_key: dict[str, list[Resolution]] = {}
    for resolution in resolutions:
        by_key.setdefault(resolution.key, []).append(resolution)
    kept = (_apply(item, [r for key in sorted(item.keys) for r in by_key.get(key, ())]) for item in clusters)
    return [item for item in kept if item is not None]


def _apply(item: Cluster, resolutions: Sequence[Resolution]) -> Cluster | None:
    if not resolutions:
        return item
    reports = tuple(r for r in item.reports if not any(_hides(one, r) for one in resolutions))
    if not reports:
        return None
    before = [one.at for one in resolutions if any(_follows(report, one) for report in reports)]
    return replace(item, reports=reports, resolved_at=max(before, default=0))


def _follows(report: ReadReport, resolution: Resolution) -> bool:
    """Whether it was reported again after it was resolved."""
    if resolution.index >= 0 and report.epoch == resolution.epoch:
        return report.index > resolution.index
    return report.at > resolution.at


def _hides(resolution: Resolution, report: ReadReport) -> bool:
    if report.epoch != resolution.epoch:
        return False
    return report.index < resolution.index if resolution.index >= 0 else report.at <= resolution.at
