"""The Prometheus metrics: read from the journal at each scrape, so that a restart loses nothing.

Every label is our own word or a validated name: nothing from a platform or a model becomes one.
Imported at the first scrape: most daemons are never scraped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fleet.gate.model import Rung
from fleet.service.metrics import OPEN, Tally
from fleet.service.snapshot import DaemonSnapshot

STATES = ("queued", "running", "settling")


def exposition(snapshot: DaemonSnapshot, tally: Tally) -> bytes:
    """The page in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Once([*_counters(snapshot, tally), *_gauges(snapshot), *_single_gauges(snapshot)]))
    return generate_latest(registry)


class _Once:
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _labelled(
    family: CounterMetricFamily | GaugeMetricFamily,
    samples: Mapping[str, float] | Mapping[tuple[str, str], float],
) -> Metric:
    for labels, value in sorted(samples.items()):
        family.add_metric([labels] if isinstance(labels, str) else labels, value)
    return family


def _counters(now: DaemonSnapshot, tally: Tally) -> Iterator[Metric]:
    counter = CounterMetricFamily
    yield _labelled(counter("fleet_runs", "Runs that ended, by outcome.", labels=["outcome"]), now.outcomes)
    text = "Tool calls, by verdict."
    yield _labelled(counter("fleet_tool_calls", text, labels=["tool", "verdict"]), tally.calls)
    text = "Time spent in tool calls."
    yield _labelled(counter("fleet_tool_seconds", text, labels=["tool"]), tally.seconds)
    asked = {verdict: tally.egress[verdict] for verdict in ("passed", "refused")}
    text = "Requests of jails, by verdict of the broker, of runs that ended."
    yield _labelled(counter("fleet_egress_requests", text, labels=["verdict"]), asked)
    moved = {direction: tally.egress[direction] for direction in ("sent", "received")}
    text = "Bytes of bodies between jails and hosts, of runs that ended."
    yield _labelled(counter("fleet_egress_bytes", text, labels=["direction"]), moved)
    yield counter("fleet_triggers_skipped", "Firings that did not run.", value=tally.skipped)
    yield counter("fleet_personas_refused", "Bad persona files seen.", value=tally.refused)


def _gauges(now: DaemonSnapshot) -> Iterator[Metric]:
    ages = {
        state: max(0.0, (now.now - datetime.fromisoformat(now.ages[state])).total_seconds())
        if now.ages.get(state)
        else 0.0
        for state in STATES
    }
    left = {
        (owner, str(unit)): count
        for owner, units in now.journal.left.items()
        for unit, count in units.items()
    }
    good = {persona: datetime.fromisoformat(at).timestamp() for persona, at in now.last_success.items()}
    gauge, budget = GaugeMetricFamily, ["persona", "unit"]
    yield _labelled(gauge("fleet_queue_depth", "Runs waiting.", labels=["persona"]), now.journal.waiting)
    text = "Age of the oldest run of a state."
    yield _labelled(gauge("fleet_stage_age_seconds", text, labels=["stage"]), ages)
    text = "What runs in flight may still spend."
    yield _labelled(gauge("fleet_budget_left", text, labels=budget), now.budgets)
    text = 'What may still be spent today; persona "" is the fleet.'
    yield _labelled(gauge("fleet_day_budget_left", text, labels=budget), left)
    text = "When the last run ended that did all it could."
    yield _labelled(gauge("fleet_last_success_timestamp_seconds", text, labels=["persona"]), good)
    text = "Probes of the last run, by group."
    yield _labelled(gauge("fleet_coverage_probes", text, labels=["persona", "group"]), now.coverage)
    text = "Items as triage left them."
    yield _labelled(gauge("fleet_findings", text, labels=["state", "severity"]), now.items)


def _single_gauges(now: DaemonSnapshot) -> Iterator[Metric]:
    """What is not known yet has no value, rather than 0."""
    up = "1 if the platform answered the last look, 0 during an outage."
    lag = None if now.log_entries is None else max(0, now.log_entries - now.log_mirrored)
    values: dict[str, tuple[str, float | None]] = {
        "fleet_platform_up": (up, now.journal.reachable.up),
        "fleet_worklist_age_seconds": ("Seconds since triage wrote the worklist.", now.worklist_age_s),
        "fleet_rung": ("The dial: 0 observe, 1 exercise, 2 propose.", Rung(now.rung).height),
        "fleet_paused": ("1 while STOP is set.", now.paused),
        "fleet_degraded": ("1 while the disk is full.", bool(now.degraded)),
        "fleet_personas": ("Personas loaded.", len(now.personas)),
        "fleet_runs_live": ("Runs in flight.", now.live),
        "fleet_outbox": ("Findings proven and not yet posted.", now.outbox),
        "fleet_beat_age_seconds": ("Seconds since the work loop turned.", now.beat_age_s),
        "fleet_chain_subscribed": (
            "1 while new blocks wake the triggers.",
            now.subscription == OPEN if now.subscription else None,
        ),
        "fleet_log_lag": ("Entries on chain that triage has not read.", lag),
    }
    for name, (text, value) in values.items():
        if value is not None:
            yield GaugeMetricFamily(name, text, value=value)
