"""The dashboard and the alert rules ask for metrics and labels that a scrape has, and leave out none."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import yaml

from fleet.files import ROOT
from fleet.service.exposition import exposition
from fleet.service.metrics import OPEN, Tally
from tests.service.test_health import SNAPSHOT

PLACE = ROOT / "config" / "monitoring"
RULES = yaml.safe_load((PLACE / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
PANELS = json.loads((PLACE / "grafana.json").read_text("utf-8"))["panels"]
ASKED = [(one["expr"], " ".join(one["annotations"].values())) for one in RULES]
DRAWN = [(one["expr"], one["legendFormat"]) for panel in PANELS for one in panel["targets"]]


def scraped() -> dict[str, set[str]]:
    """Each metric that a scrape can have, with its labels."""
    tally = Tally()
    tally.calls["qa_fetch", "answered"] += 1
    tally.seconds["qa_fetch"] += 1.0
    page = exposition(replace(SNAPSHOT, subscription=OPEN), tally).decode()
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(fleet_\w+)(?:\{(.*)\})? ", page, re.M):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


@pytest.mark.parametrize(("expr", "words"), [*ASKED, *DRAWN])
def test_what_is_asked_exists(expr: str, words: str) -> None:
    known = scraped()
    names = set(re.findall(r"fleet_\w+", expr))
    assert names <= known.keys()
    labels = {label for name in names for label in known[name]}
    used = {*re.findall(r"(\w+)=~?\"", expr), *re.findall(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}", words)}
    used |= {label.strip() for found in re.findall(r"by \(([^)]*)\)", expr) for label in found.split(",")}
    assert used - {"job"} <= labels, expr


def test_every_metric_is_drawn_and_what_operate_says_to_watch_has_a_rule() -> None:
    drawn = {name for expr, _ in DRAWN for name in re.findall(r"fleet_\w+", expr)}
    assert drawn == scraped().keys()
    table = (ROOT / "docs/operate.md").read_text("utf-8").partition("## Alerts")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]+) \|", table, re.M)
    watched = {
        name
        for metrics, when in rows
        for name in re.findall(r"`(fleet_\w+)`", metrics)
        if when != "for graphs"
    }
    rules = {name.removesuffix("_total") for expr, _ in ASKED for name in re.findall(r"fleet_\w+", expr)}
    by_plan = {
        "fleet_rung",
        "fleet_personas",
        "fleet_runs_live",
        "fleet_coverage_probes",
        "fleet_budget_left",
    }
    assert watched - rules == by_plan  # what is right depends on the fleet
