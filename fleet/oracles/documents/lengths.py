"""Oracle of time against the length of an input. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from fleet.oracles.echoes import family
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

LETTER = "a"
LENGTHS = {"GET": (16, 1_500, 6_000, 16), "POST": (16, 4_000, 16_000, 16)}
"""Short, long, four times as long, short again; of a URL below the 8,000 that RFC 9110 asks of servers."""
LEAST_MS, STEEP, CALM_MS = 400.0, 8.0, 100.0
"""What the longest takes at least, and how many times what a quarter of it takes: four where time grows as
the length does, sixteen where it grows as its square; what the short one takes at most."""
_SENT = re.compile(rf"{LETTER}{{16,}}")


def _measured(*latencies: float) -> tuple[Exchange, ...]:
    urls = [{"url": "{site}/search?q=" + LETTER * length} for length in LENGTHS["GET"]]
    results = [{"status": 200, "latency_ms": one} for one in latencies]
    return tuple(Exchange("qa_fetch", args, got) for args, got in zip(urls, results, strict=True))


@oracle(
    id="slow-by-length",
    says="the time of a request does not grow faster than the length of what it sends",
    surface="security",
    severity=Severity.MEDIUM,
    judges=("page",),
    example=_measured(4.0, 70.0, 1100.0, 5.0),
    control=_measured(4.0, 290.0, 1100.0, 5.0),
)
def slow_by_length(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[short, long, four times as long, short]: the same request else, answered in the same way when long."""
    four = seen[-len(LENGTHS["GET"]) :]
    lengths = [sum(map(len, _SENT.findall(_text(one)))) for one in four]
    alike = all(_SENT.sub("", _text(one)) == _SENT.sub("", _text(two)) for one, two in pairwise(four))
    if tuple(lengths) not in LENGTHS.values() or not alike:
        return
    short, quarter, whole, again = (float(one.result.get("latency_ms", 0.0)) for one in four)
    statuses = [one.result.get("status") for one in four[1:3]]
    answered = isinstance(statuses[0], int) and statuses[0] == statuses[1] and statuses[0] < 500
    calm = 0 < max(short, again) <= CALM_MS
    if answered and calm and whole >= max(LEAST_MS, STEEP * quarter):
        what = f"{lengths[2]:,} letters take {whole:,.0f} ms, {lengths[1]:,} take {quarter:,.0f} ms"
        place = family(seen[-1].args).partition("?")[0]
        title, key = f"{place}: {what}", f"slow-by-length {place}"
        led = tuple(range(len(seen) - len(four), len(seen) - 1))
        yield observed(title, key, "latency_ms", led=led, where={"route": place})


def _text(one: Exchange) -> str:
    return json.dumps(one.args, sort_keys=True)
