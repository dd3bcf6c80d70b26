"""Samples of several looks pooled in one HdrHistogram: percentiles within 0.1 %. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LONGEST_MS = 600_000
"""Larger latencies count as this."""
DIGITS = 3


def pooled(looks: Iterable[Sequence[float]], ranks: Sequence[float]) -> list[float]:
    """Percentiles (0 to 100) of latencies in milliseconds, in the order of `ranks`; 0 without any."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, LONGEST_MS * 1000, DIGITS)
    for values in looks:
        for one in values:
            histogram.record_value(max(1, min(round(one * 1000), LONGEST_MS * 1000)))
    return [histogram.get_value_at_percentile(rank) / 1000 for rank in ranks]
