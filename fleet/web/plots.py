"""What SVG inside a page shows, in numbers: a measure over time, and the spans of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from fleet.events.model import Event
from fleet.events.spans import OpenSpan, Spans, fold
from fleet.store.rows import SampleRow
from fleet.text import line, spoken

WIDTH, HEIGHT, EDGE = 320, 72, 6
"""Of a plot, in pixels."""


@dataclass(frozen=True, slots=True)
class MeasurePlot:
    """One measure: `points` are "x,y" of each look, oldest first; `first` and `last` are times (ISO)."""

    name: str
    unit: str
    points: tuple[str, ...]
    control: tuple[str, ...]
    first: str
    last: str
    lowest: str
    highest: str
    latest: str
    looks: int


def plots(past: Mapping[str, Sequence[SampleRow]]) -> list[MeasurePlot]:
    """A plot of each measure that was taken at least twice, those of the latest look first."""
    several = [(name, rows) for name, rows in past.items() if len(rows) > 1]
    return [_plot(name, rows) for name, rows in sorted(several, key=lambda one: one[1][-1].at, reverse=True)]


def _plot(name: str, rows: Sequence[SampleRow]) -> MeasurePlot:
    own = [median(one.own) for one in rows]
    control = [median(one.control) for one in rows if one.control]
    top, low = max(*own, *control), min(*own, *control)
    unit = "ms" if name.startswith("latency of ") else "gas" if name.startswith("gas_used ") else ""

    def points(values: Sequence[float]) -> tuple[str, ...]:
        step, span = (WIDTH - 2 * EDGE) / max(1, len(values) - 1), (top - low) or 1.0
        return tuple(
            f"{EDGE + at * step:.1f},{HEIGHT - EDGE - (value - low) / span * (HEIGHT - 2 * EDGE):.1f}"
            for at, value in enumerate(values)
        )

    return MeasurePlot(
        name=line(spoken(name.rpartition(" #")[0] or name), 160),
        unit=unit,
        points=points(own),
        control=points(control) if len(control) == len(own) else (),
        first=rows[0].at,
        last=rows[-1].at,
        lowest=_number(low),
        highest=_number(top),
        latest=_number(own[-1]),
        looks=len(rows),
    )


def _number(value: float) -> str:
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


@dataclass(slots=True)
class SpanBar:
    """A span that ended: `begin` is Unix time, `x` and `width` are hundredths of what is shown with it."""

    name: str
    begin: float
    seconds: float
    x: float = 0.0
    width: float = 100.0


class SpanBars:
    """The spans of a run, as its records end them."""

    def __init__(self) -> None:
        self._spans, self._open = Spans(), dict[str, tuple[str, float]]()

    def after(self, record: Event) -> list[SpanBar]:
        """What ended with this record."""
        now, ended = datetime.fromisoformat(record.at).timestamp(), []
        self._spans, signals = fold(self._spans, record)
        for one in signals:
            if isinstance(one, OpenSpan):
                self._open[one.key] = (one.name, now)
            elif known := self._open.pop(one.key, None):
                name, begin = known
                ended.append(SpanBar(line(name.replace(":", " "), 80), begin, now - begin))
        return ended


def scale(bars: Iterable[SpanBar]) -> None:
    """Place bars on the line from the first begin to the last end among them."""
    bars = list(bars)
    begin = min((one.begin for one in bars), default=0.0)
    whole = max((one.begin + one.seconds for one in bars), default=0.0) - begin
    for one in bars if whole > 0 else ():
        one.x, one.width = (one.begin - begin) / whole * 100, one.seconds / whole * 100
