"""What an answer measures: latency, gas, turns, a charge; each under one name for all runs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from fleet.oracles.model import Exchange
from fleet.oracles.statistics.ranks import FEWEST, sketch
from fleet.store.rows import SampleRow
from fleet.text import line

COUNTS = {"publication": ("gas_used",), "reply": ("turns", "charged")}
"""By kind of answer: the figures of its result that equal questions give again on a healthy platform."""
_BUILDS = ("x-version", "x-app-version", "x-build", "x-release", "x-revision", "server")
"""Headers that may name the platform's version, the most telling first."""


def samples(exchange: Exchange) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """The latencies of a page that was measured on a schedule, and its control's beside them; None: not that.

    Numbers of a guest are untrusted: anything but pairs of positive ones is not a measurement.
    """
    result = exchange.result
    own, beside = (_numbers(result.get(name)) for name in ("samples_ms", "control_ms"))
    good = exchange.tool == "qa_fetch" and 0 < int(result.get("status", 0)) < 400
    return (own, beside) if good and own and len(own) == len(beside) else None


def latency_of(args: Mapping[str, Any]) -> str:
    """The measure that a question of this form takes."""
    return line(f"latency of {args.get('url', '')} beside {args.get('control', '')}", 400)


def measured(exchange: Exchange) -> Iterator[SampleRow]:
    """All that one answer measures."""
    pair = samples(exchange)
    if pair is not None and len(pair[0]) >= FEWEST:
        own, beside = pair
        headers = exchange.result.get("headers", {})
        named = [headers.get(name) for name in _BUILDS] if isinstance(headers, Mapping) else []
        build = line(next((one for one in named if isinstance(one, str) and one), ""), 80)
        measure = latency_of(exchange.args)
        yield SampleRow(measure=measure, own=sketch(own), control=sketch(beside), build=build)
    yield from counts(exchange)


def counts(exchange: Exchange) -> Iterator[SampleRow]:
    """The figures of an act or a call that succeeded."""
    if not exchange.result.get("ok"):
        return
    for field in (name for kind in exchange.kinds for name in COUNTS.get(kind, ())):
        value = exchange.result.get(field)
        if isinstance(value, int) and value > 0:
            args = sha256(json.dumps(dict(exchange.args), sort_keys=True, default=str).encode()).hexdigest()
            yield SampleRow(measure=f"{field} of {exchange.asked[:200]} #{args[:12]}", own=(float(value),))


def _numbers(value: object) -> tuple[float, ...]:
    if not isinstance(value, Sequence) or not all(isinstance(one, int | float) and one > 0 for one in value):
        return ()
    return tuple(float(one) for one in value)
