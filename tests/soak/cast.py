"""The personas of a soak: the shipped ones, with fewer probes and triggers in seconds."""

from __future__ import annotations

import re
from pathlib import Path

from fleet.files import ROOT

TRIGGERS = {
    "qa-smoke": '[{ every = "15s" }]',
    "qa-security": '[{ every = "20s" }, { on = "facets-changed" }]',
    "qa-fuzz": '[{ continuous = "5s", backoff = "15s" }]',
    "qa-ux": '[{ every = "25s" }]',
    "qa-triage": '[{ on = "log-changed" }, { on = "log-cleared" }, { every = "30s" }]',
}
"""Not qa-perf: what it measures is how fast the machine answers, and faults are there to change that."""
KEPT = {
    "qa-smoke": {"chain-views", "whole-path"},
    "qa-security": {"sponsor-key-exposed", "spoofed-from", "foreign-origin"},
    "qa-fuzz": {"missing-entry", "loader-crash", "good-program"},
    "qa-ux": {"method-405", "lying-success"},
    "qa-triage": set[str](),
}
"""Probes: few, so that a run takes seconds; each persona but smoke and triage finds two seeded defects."""
SEEDED = frozenset(
    ("sponsor-key-exposed", "spoofed-from", "missing-entry", "loader-crash", "method-405", "lying-success")
)
"""All that there is to be found: anything else on the log is a false finding."""


def text_of(name: str) -> str:
    """One shipped persona that is due often."""
    shipped = (ROOT / "personas" / f"{name}.md").read_text("utf-8")
    often = re.sub(r"^triggers = .*$", f"triggers = {TRIGGERS[name]}", shipped, count=1, flags=re.MULTILINE)
    head, mark, body = often.rpartition("+++\n")
    first, *probes = head.split("[[probe]]\n")
    kept = [probe for probe in probes if probe.split('"')[1] in KEPT[name]]  # its id comes first
    return "[[probe]]\n".join([first, *kept]) + mark + body


def drop(folder: Path, name: str, text: str) -> None:
    """Put a file in the folder, whole."""
    draft = folder / f".{name}.draft"
    draft.write_text(text, "utf-8")
    draft.rename(folder / f"{name}.md")


def cast(folder: Path) -> None:
    """All of them."""
    for name in TRIGGERS:
        drop(folder, name, text_of(name))
