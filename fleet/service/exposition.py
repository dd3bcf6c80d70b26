"""The Prometheus metrics: read from the journal at each scrape, so that a restart loses nothing.

Every label is our own word or a validated name: nothing from a platform or a model becomes one.
Imported at the first scrape: most daemons are never scraped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from fleet.gate.model import Rung
from fleet.service.metrics import OPEN, Reading, Tally

STATES = ("queued", "running", "settling")


def exposition(reading: Reading, tally: Tally) -> bytes:
    """The page in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Once(list(_families(reading, tally))))
    return generate_latest(registry)


class _Once:
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(reading: Reading, tally: Tally) -> Iterator[Metric]:
    runs = CounterMetricFamily("fleet_runs", "Runs that ended, by outcome.", labels=["outcome"])
    for outcome, count in sorted(reading.outcomes.items()):
        runs.add_metric([outcome], count)
    yield runs
    calls = CounterMetricFamily("fleet_tool_calls", "Tool calls, by verdict.", labels=["tool", "verdict"])
    for (tool, verdict), count in sorted(tally.calls.items()):
        calls.add_metric([tool, verdict], count)
    yield calls
    seconds = CounterMetricFamily("fleet_tool_seconds", "Time spent in tool calls.", labels=["tool"])
    for tool, spent in sorted(tally.seconds.items()):
        seconds.add_metric([tool], spent)
    yield seconds
    yield CounterMetricFamily("fleet_triggers_skipped", "Firings that did not run.", value=tally.skipped)
    yield CounterMetricFamily("fleet_personas_refused", "Bad persona files seen.", value=tally.refused)
    queue = GaugeMetricFamily("fleet_queue_depth", "Runs waiting.", labels=["persona"])
    for persona, count in sorted(reading.waiting.items()):
        queue.add_metric([persona], count)
    yield queue
    age = GaugeMetricFamily("fleet_stage_age_seconds", "Age of the oldest run of a state.", labels=["stage"])
    for state in STATES:
        since = reading.ages.get(state)
        seconds_old = (reading.now - datetime.fromisoformat(since)).total_seconds() if since else 0.0
        age.add_metric([state], max(0.0, seconds_old))
    yield age
    left = GaugeMetricFamily(
        "fleet_budget_left", "What runs in flight may still spend.", labels=["persona", "unit"]
    )
    for (persona, unit), count in sorted(reading.budgets.items()):
        left.add_metric([persona, unit], count)
    yield left
    day = GaugeMetricFamily(
        "fleet_day_budget_left",
        'What may still be spent today; persona "" is the fleet.',
        labels=["persona", "unit"],
    )
    for (persona, unit), count in sorted(reading.days.items()):
        day.add_metric([persona, unit], count)
    yield day
    yield from _gauges(reading)
    yield from _platform(reading)


def _platform(reading: Reading) -> Iterator[Metric]:
    """What is not known yet has no value, rather than 0."""
    if reading.platform.up is not None:
        text = "1 if the platform answered the last look, 0 during an outage."
        yield GaugeMetricFamily("fleet_platform_up", text, value=reading.platform.up)
    good = GaugeMetricFamily(
        "fleet_last_success_timestamp_seconds",
        "When the last run ended that did all it could.",
        labels=["persona"],
    )
    for persona, at in sorted(reading.last_success.items()):
        good.add_metric([persona], datetime.fromisoformat(at).timestamp())
    yield good
    probes = GaugeMetricFamily(
        "fleet_coverage_probes", "Probes of the last run, by group.", labels=["persona", "group"]
    )
    for (persona, group), count in sorted(reading.coverage.items()):
        probes.add_metric([persona, group], count)
    yield probes
    items = GaugeMetricFamily("fleet_findings", "Items as triage left them.", labels=["state", "severity"])
    for (state, severity), count in sorted(reading.items.items()):
        items.add_metric([state, severity], count)
    yield items
    if reading.worklist_age_s is not None:
        text = "Seconds since triage wrote the worklist."
        yield GaugeMetricFamily("fleet_worklist_age_seconds", text, value=reading.worklist_age_s)


def _gauges(reading: Reading) -> Iterator[Metric]:
    rung = Rung(reading.rung).height
    yield GaugeMetricFamily("fleet_rung", "The dial: 0 observe, 1 exercise, 2 propose.", value=rung)
    yield GaugeMetricFamily("fleet_paused", "1 while STOP is set.", value=reading.paused)
    yield GaugeMetricFamily("fleet_degraded", "1 while the disk is full.", value=bool(reading.degraded))
    yield GaugeMetricFamily("fleet_personas", "Personas loaded.", value=reading.personas)
    yield GaugeMetricFamily("fleet_runs_live", "Runs in flight.", value=reading.live)
    yield GaugeMetricFamily("fleet_outbox", "Findings proven and not yet posted.", value=reading.outbox)
    yield GaugeMetricFamily(
        "fleet_beat_age_seconds", "Seconds since the work loop turned.", value=reading.beat_age_s
    )
    if reading.subscription:
        opened = reading.subscription == OPEN
        yield GaugeMetricFamily(
            "fleet_chain_subscribed", "1 while new blocks wake the triggers.", value=opened
        )
    if reading.log_entries is not None:
        lag = max(0, reading.log_entries - reading.log_mirrored)
        yield GaugeMetricFamily("fleet_log_lag", "Entries on chain that triage has not read.", value=lag)
