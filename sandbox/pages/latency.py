"""The latency of a page: one request after the other, or on a schedule that does not wait for answers.

On a schedule ("open loop") each latency is counted from the request's intended start, so that requests
which a slow answer would have held back are counted as slow too (coordinated omission). With a control, each
request is paired with one to another page, half a slot apart: a slow machine or network is slow for both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sandbox import http
from sandbox.chain.rpc import denial
from sandbox.errors import Deadline, Failure
from sandbox.spec import Mistake

MAX_REPEAT = 50
"""Requests, or pairs, one after the other."""
MAX_SAMPLES = 100
"""Requests, or pairs, on a schedule."""
MAX_RATE = 10.0
"""Slots a second, of one request or one pair: a measurement is not a load test."""
MAX_SECONDS = 12.0
"""Length of a schedule."""
WARM_UPS = 2
"""Initial pairs that are not counted: they absorb what is loaded, resolved or cached only once."""
LANES = 12
"""Requests in flight at most; one beyond that starts late, and is counted from its intended start."""
GOLDEN = (math.sqrt(5) - 1) / 2
"""Places of the requests in their slots: multiples of it, modulo one, spread evenly over every period."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`controls` holds the control's latency beside each of `latencies`; empty without a control."""

    first: http.HttpReply
    latencies: Sequence[float]
    controls: Sequence[float]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One request of a schedule: `due` seconds after its begin."""

    due: float
    slot: int
    beside: bool


def check(repeat: int, rate: float) -> None:
    """Mistake unless these are within the limits."""
    if not 0 <= rate <= MAX_RATE:
        raise Mistake(f"/args/rate: expected 0 (one request after the other) to {MAX_RATE:g} a second")
    most = MAX_SAMPLES if rate else MAX_REPEAT
    if not 1 <= repeat <= most:
        raise Mistake(f"/args/repeat: expected 1 to {most}")
    if rate and repeat / rate > MAX_SECONDS:
        raise Mistake(f"/args/rate: {repeat} requests take more than {MAX_SECONDS:g} s; use a higher rate")


def measure(
    page: http.HttpRequest,
    control: http.HttpRequest | None,
    repeat: int,
    deadline: Deadline,
    rate: float = 0.0,
) -> Measured:
    """Make as many requests, or pairs, as time permits; Failure if it permits none.

    `rate`: slots a second of a schedule; 0 for one request after the other.
    """
    if not rate:
        return _in_turns(page, control, repeat, deadline)
    warm = _in_turns(page, control, WARM_UPS if control else 1, deadline)
    pairs = _scheduled(page, control, schedule(repeat, rate, paired=control is not None), deadline, warm)
    if not pairs:
        raise Failure("busy", "could not tell: no pair of requests was answered in time")
    controls = [beside for _, beside in pairs] if control else []
    return Measured(warm.first, [own for own, _ in pairs], controls)


def schedule(repeat: int, rate: float, *, paired: bool) -> list[_Arrival]:
    """When each request is due; those of a pair are in the same slot, half a slot apart."""
    found = []
    for slot in range(repeat):
        place = slot * GOLDEN % 1
        found.append(_Arrival((slot + place) / rate, slot, False))
        if paired:
            found.append(_Arrival((slot + (place + 0.5) % 1) / rate, slot, True))
    return sorted(found, key=lambda one: one.due)


def percentile(values: Sequence[float], rank: float) -> float:
    """The percentile by nearest rank: a measured value, never an interpolated one."""
    ordered = sorted(values)
    return ordered[max(math.ceil(rank / 100 * len(ordered)), 1) - 1]


def _in_turns(
    page: http.HttpRequest, control: http.HttpRequest | None, repeat: int, deadline: Deadline
) -> Measured:
    first: http.HttpReply | None = None
    pairs: list[tuple[float, float]] = []
    try:
        for _ in range(repeat + (WARM_UPS if control else 0)):
            reply = get(page, deadline)
            first = first or reply
            beside = _control_ms(control, deadline) if control else 0.0
            pairs += [(reply.latency_ms, beside)] if beside is not None else []
    except Failure as failure:
        if failure.error_class not in ("timeout", "busy") or not pairs:
            raise
    if first is None or not pairs:
        raise Failure("busy", "could not tell: the control gave no page to compare with")
    counted = (pairs[WARM_UPS:] if control else pairs) or pairs  # or the warm-up, if the page is slow
    latencies = [own for own, _ in counted]
    return Measured(first, latencies, [beside for _, beside in counted] if control else [])


def _scheduled(
    page: http.HttpRequest,
    control: http.HttpRequest | None,
    arrivals: Sequence[_Arrival],
    deadline: Deadline,
    warm: Measured,
) -> list[tuple[float, float]]:
    """The latencies of each slot that was answered as at first, in the order of slots.

    A page that does not answer by the deadline is counted with the time until then.
    """
    from concurrent.futures import ThreadPoolExecutor  # 9 ms that a single request does not need

    found: dict[tuple[int, bool], float] = {}
    waiting: Iterator[_Arrival] = iter(arrivals)
    begun = time.monotonic()

    def lane() -> None:
        for arrival in waiting:  # `next` of a list's iterator is atomic: each arrival has one lane
            due = begun + arrival.due
            time.sleep(max(due - time.monotonic(), 0))
            try:
                reply = get(control if arrival.beside and control else page, deadline)
                good = reply.status < 400 if arrival.beside else reply.status == warm.first.status
            except Failure as failure:
                if failure.error_class == "refused":
                    raise
                good = failure.error_class == "timeout" and not arrival.beside
            if good:
                found[arrival.slot, arrival.beside] = round((time.monotonic() - due) * 1000, 3)

    lanes = min(LANES, len(arrivals))
    with ThreadPoolExecutor(lanes) as pool:
        for future in [pool.submit(lane) for _ in range(lanes)]:
            future.result()
    paired = control is not None
    slots = sorted(slot for slot, beside in found if not beside and (not paired or (slot, True) in found))
    return [(found[slot, False], found.get((slot, True), 0.0)) for slot in slots]


def _control_ms(control: http.HttpRequest, deadline: Deadline) -> float | None:
    """Latency of the control; None if it failed, as its failure is not the page's."""
    try:
        reply = get(control, deadline)
    except Failure as failure:
        if failure.error_class == "refused":
            raise
        if failure.error_class == "timeout":
            raise Failure("busy", "could not tell: the control did not answer in time") from None
        return None
    return reply.latency_ms if reply.status < 400 else None


def get(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply:
    """The platform's answer; Failure for what the broker says in its place."""
    reply = http.send(request, deadline)
    if reply.by_broker:
        raise denial(reply)
    return reply
