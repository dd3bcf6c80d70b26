"""Oracles of measurements: a page far slower than its kind, a slow share of its requests, a regression. Pure.

One rule for all: a rank test at a stated error rate (statistics/ranks.py), a large effect, and a control that
did not move in the same seconds. A slow machine or network slows page and control alike.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from urllib.parse import urlsplit

from fleet.findings.field_words import in_words
from fleet.findings.sighting import Sighting
from fleet.oracles.echoes import route
from fleet.oracles.measures import counts, latency_of, samples
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.statistics import ranks
from fleet.oracles.statistics.changes import best_level
from fleet.severity import Severity
from fleet.store.rows import SampleRow

KIN = 3
"""Fewest other pages that a page is compared with; at least one of them of its own kind."""
FAR, FAR_MS, APART = 5.0, 150.0, 0.9
"""How far a page lies above them: its p10 this factor above each median, and these milliseconds above each
p95, so that a costly page on a busy machine, which varies, is not far above; and Cliff's delta."""
TIMES, TIMES_MS, SPREADS = 1.5, 150.0, 4.0
"""A slow request: this factor of the medians of page and control, and above them these milliseconds and these
spreads: of the control's middle half, and of the page's faster half, which slow requests do not reach."""
FEW_SLOW, FEW_BURSTS = 5, 3
"""Fewest slow requests, and fewest separate groups of them."""
CALM, CALM_MS = 3.0, 50.0
"""A control is calm if its p95 is within this of its median; beside any other nothing is judged."""
WORSE, WORSE_MS = 2.0, 100.0
"""A regression: factor and milliseconds above the worst of the reference."""
LOOKS = 5
"""Fewest earlier looks for a regression of latency."""
COUNTED = 12
"""The same for a count. By chance its value lies above all of n earlier ones once in n + 1 looks; in the look
and three proofs, once in 1820 for n = 12, which is within `ranks.SHARE`."""
MORE = 1.5
"""Factor of a count above the highest of them."""
SLOWED = 3.0
"""Beside a control that is slower than usual by more than this, no days are compared."""
_FACE = re.compile(r"\{face:[a-z0-9-]{1,63}\}")
_FIELDS = frozenset({"p50_ms", "p95_ms", "max_ms", "ratio", "latency_ms", "samples_ms"})


def same_kind(one: str, other: str) -> bool:
    """Whether two URLs differ in one segment, a name or the query only: faces, routes of one API."""
    if one == other:
        return False
    first, second = (urlsplit(_FACE.sub("{face}", url)) for url in (one, other))
    if (first.scheme, first.netloc) != (second.scheme, second.netloc):
        return False
    parts, others = first.path.split("/"), second.path.split("/")
    differing = sum(1 for a, b in zip(parts, others, strict=False) if a != b)
    placed = parts[0] == others[0]  # the same placeholder, or both on one host
    return placed and len(parts) == len(others) and differing <= 1


oracle = partial(Oracle, surface="perf")


def _sampled(page: str, own: Sequence[float], control: str, beside: Sequence[float]) -> Exchange:
    args = {"url": page, "control": control, "rate": 10.0, "repeat": len(own)}
    return Exchange("qa_fetch", args, {"status": 200, "samples_ms": own, "control_ms": beside})


_FAST = tuple(5 + at * 0.618 % 1 for at in range(50))
_SLOW = tuple(400 + one for one in _FAST)
_MIXED = tuple(one + (400 if at % 5 == 4 else 0) for at, one in enumerate(_FAST))
_KIN = _sampled("{site}/b", _FAST[:20], "{site}/c", _FAST[:20])
_ONE = {"url": "{site}/a", "control": "{site}/d"}
_PAST = tuple(SampleRow(measure=latency_of(_ONE), own=_FAST[:40], control=_FAST[:40]) for _ in range(LOOKS))
_CALLED = Exchange("qa_call", {"target": "a", "message": "count"}, {"ok": True, "status": 200, "turns": 9})
_TURNS = tuple(SampleRow(measure=one.measure, own=(3.0,)) for one in counts(_CALLED) for _ in range(COUNTED))


def slow_above(own: ranks.Sample, beside: ranks.Sample) -> float:
    """Milliseconds above which a request is slow. The page's own upper quartile would not do: where a quarter
    of its requests is slow, it is one of them."""
    typical, usual = statistics.median(own), statistics.median(beside)
    middle = (ranks.quantile(beside, 0.75) - ranks.quantile(beside, 0.25)) * max(1.0, typical / usual)
    spread = max(2 * (typical - ranks.quantile(own, 0.25)), middle)
    most = max(typical, usual)
    return max(TIMES * most, most + max(TIMES_MS, SPREADS * spread))


def unsettled(exchange: Exchange) -> str:
    """Why a measurement on a schedule cannot tell: its control was not calm; "" for any other answer."""
    pair = samples(exchange)
    if pair is None or len(pair[1]) < ranks.FEWEST or not exchange.args.get("control"):
        return ""
    usual, late = statistics.median(pair[1]), ranks.quantile(pair[1], 0.95)
    if late <= CALM * usual + CALM_MS:
        return ""
    return f"its control took {_ms(late)} (p95) where it took {_ms(usual)} (median)"


@oracle(
    id="slow-regression",
    says="a page does not become slower than at its best time while its control does not",
    severity=Severity.MEDIUM,
    judges=("page",),
    given=Facts(past={latency_of(_ONE): _PAST}),
    example=(_sampled("{site}/a", _SLOW, "{site}/d", _FAST),),
    control=(_sampled("{site}/a", _SLOW, "{site}/d", _SLOW),),
)
def slow_regression(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """The median or the p95 of a page lies above every look of its best time; its control did not move."""
    past = [one for one in facts.past.get(latency_of(seen[-1].args), ()) if one.own and one.control]
    if len(past) < LOOKS or not (looks := _judged(seen[-1:])):
        return
    own, beside = looks[-1]
    if not any(ranks.quantile(own, rank) > _limit(past, rank, min) for rank in (0.5, 0.95)):
        return  # most nights: nothing to compare
    level = best_level([statistics.median(one.own) for one in past])
    # its lowest level that lasted: a slow creep does not become the measure of itself
    best = [past[at] for at in level] if len(level) >= LOOKS else past
    usual = max(statistics.median(one.control) for one in best)
    slowed = max(1.0, statistics.median(beside) / max(usual, 1e-3))
    if slowed > SLOWED:
        return
    own = tuple(one / slowed for one in own)
    for rank, words in ((0.5, "median"), (0.95, "p95")):
        now, limit = ranks.quantile(own, rank), _limit(best, rank, max)
        if now <= limit or ranks.quantile(beside, rank) > limit:
            continue
        if rank == 0.5:
            p = max(ranks.above(own, one.own).p for one in best)
        else:
            p = ranks.more_often(own, beside, limit) if ranks.bursts(own, limit) >= FEW_BURSTS else 1.0
        if p <= ranks.SHARE:
            title = (
                f"{seen[-1].asked} takes {_ms(now)} ({words}), at most"
                f" {_ms(max(ranks.quantile(one.own, rank) for one in best))} in {len(best)} earlier runs"
            )
            return (yield _slow(seen[-1], title))


@oracle(
    id="slow-page",
    says="no page is far slower than all other pages of its kind in the same minutes",
    severity=Severity.MEDIUM,
    judges=("page",),
    yields_to=("slow-regression",),
    forgeable=True,
    example=(_KIN, _sampled("{site}/a", _SLOW, "{site}/d", _FAST)),
    control=(_KIN, _sampled("{site}/a", _FAST, "{site}/d", _FAST)),
)
def slow_page(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Each exchange measures a page beside another one; the last page lies far above all others of them."""
    looks = _judged(seen)
    if not looks or len(seen) < 2:
        return
    page, own = str(seen[-1].args.get("url", "")), looks[-1][0]
    others: dict[str, tuple[float, ...]] = {}
    for exchange, (values, beside) in zip(seen, looks, strict=True):
        others[str(exchange.args.get("control", ""))] = beside
        others[str(exchange.args.get("url", ""))] = values
    del others[page]
    if len(others) < KIN or not any(same_kind(page, other) for other in others):
        return
    usual = max(statistics.median(values) for values in others.values())
    fastest, slowest = ranks.quantile(own, 0.1), max(ranks.quantile(one, 0.95) for one in others.values())
    if fastest < FAR * usual or fastest < slowest + FAR_MS:
        return
    far = [ranks.above(own, values) for values in others.values()]
    if all(one.p <= ranks.SHARE and one.delta >= APART for one in far):
        title = (
            f"{seen[-1].asked} takes {_ms(statistics.median(own))} (median), {len(others)} other pages"
            f" at most {_ms(usual)}"
        )
        yield _slow(seen[-1], title, led=tuple(range(len(seen) - 1)))


@oracle(
    id="slow-share",
    says="a page is as fast for every request as for most of them, where its control is",
    severity=Severity.MEDIUM,
    judges=("page",),
    yields_to=("slow-regression", "slow-page"),
    forgeable=True,
    example=(_sampled("{site}/a", _MIXED, "{site}/d", _FAST),),
    control=(_sampled("{site}/a", _MIXED, "{site}/d", _MIXED),),
)
def slow_share(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """Some requests of a page are slow, and none of those to its control in the same seconds."""
    if not (looks := _judged(seen[-1:])):
        return
    own, beside = looks[-1]
    limit = slow_above(own, beside)
    slow = ranks.exceeding(own, limit)
    if unsettled(seen[-1]) or slow < FEW_SLOW or ranks.bursts(own, limit) < FEW_BURSTS:
        return
    if ranks.more_often(own, beside, limit) <= ranks.SHARE:
        title = (
            f"{seen[-1].asked}: {slow} of {len(own)} take {_ms(ranks.quantile(own, 0.95))} (p95), the others"
            f" {_ms(statistics.median(own))}"
        )
        yield _slow(seen[-1], title)


@oracle(
    id="cost-regression",
    says="the same question does not come to cost more gas, turns or credit than it ever did",
    severity=Severity.MEDIUM,
    judges=("reply", "publication"),
    given=Facts(past={_TURNS[0].measure: _TURNS}),
    example=(_CALLED,),
    control=(Exchange("qa_call", _CALLED.args, {"ok": True, "status": 200, "turns": 3}),),
)
def cost_regression(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """A count of the same question lies far above all that earlier runs counted."""
    for row in counts(seen[-1]):
        before = [one.own[0] for one in facts.past.get(row.measure, ()) if len(one.own) == 1]
        field = row.measure.partition(" ")[0]
        if len(before) >= COUNTED and row.own[0] >= MORE * max(before) and row.own[0] >= max(before) + 2:
            now, most = (in_words(field, int(value)) for value in (row.own[0], max(before)))
            title = f"{seen[-1].asked} {now}, at most {most.removeprefix('takes ')} in {len(before)} runs"
            found = Sighting(title, f"regression {field}", where={"fact": field})
            yield Observation(found, frozenset({field}))


def _judged(seen: Sequence[Exchange]) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """The samples of each exchange; empty unless all are measurements of different pages, the last one long
    enough, and samples can be judged here."""
    looks = [pair for one in seen if (pair := samples(one)) is not None]
    if len(looks) < len(seen) or any(len(own) < 2 * ranks.BLOCK for own, _ in looks):
        return []
    apart = all(one.args.get("url") != one.args.get("control") for one in seen)
    return looks if apart and len(looks[-1][0]) >= ranks.FEWEST and not ranks.missing() else []


def _limit(past: Sequence[SampleRow], rank: float, of: Callable[[list[float]], float]) -> float:
    """Where a quantile begins to be a regression from the least, or the worst, of these looks."""
    return WORSE * of([ranks.quantile(one.own, rank) for one in past]) + WORSE_MS


def _slow(exchange: Exchange, title: str, led: tuple[int, ...] = ()) -> Observation:
    """One page that is slow is one defect, however it was seen."""
    return observed(title, f"slow {route(exchange.args)}", *_FIELDS, led=led)


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"
