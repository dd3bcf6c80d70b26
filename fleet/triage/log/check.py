"""Compares the mirror with its log: the ends whole, the rest by samples."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import SystemRandom

from fleet.triage.log.mirror import LogMirror
from fleet.triage.log.pages import LogReader, PageReader, PassLimits, same

SAMPLES = 64
"""Entries between the ends that are compared: a change of one in twenty escapes them one time in 27."""
END = 200
"""Entries at each end that are all compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorComparison:
    """`differs` is the first index at which log and mirror differ, as far as looked; None when none does."""

    mirrored: int
    counted: int
    checked: int
    differs: int | None


async def compare(log: LogReader, mirror: LogMirror, epoch: int, mirrored: int) -> MirrorComparison:
    """What the log shows of an epoch of `mirrored` entries; a shorter log differs where it ends."""
    pages, counted = PageReader(log, PassLimits(), END), await log.count()
    both = min(mirrored, counted)
    inner = range(END, max(END, both - END))
    places = sorted(SystemRandom().sample(inner, min(SAMPLES, len(inner))))
    spans = [(0, min(END, both)), *((at, at + 1) for at in places), (max(END, both - END), both)]
    checked, agreed = 0, 0
    for start, end in spans:
        if start >= end:
            continue
        if (differs := await _first(pages, mirror, epoch, start, end)) is not None:
            before = await _first(pages, mirror, epoch, agreed, start)
            return MirrorComparison(
                mirrored=mirrored,
                counted=counted,
                checked=checked,
                differs=differs if before is None else before,
            )
        checked, agreed = checked + end - start, end
    short = counted if counted < mirrored else None
    return MirrorComparison(mirrored=mirrored, counted=counted, checked=checked, differs=short)


async def _first(pages: PageReader, mirror: LogMirror, epoch: int, start: int, end: int) -> int | None:
    found = await pages.read(start, end)
    known = await mirror.mirror_since(epoch, start, end - start)
    for index in range(start, end):
        at = index - start
        if at >= min(len(found), len(known)) or not same(found[at], known[at]):
            return index
    return None
