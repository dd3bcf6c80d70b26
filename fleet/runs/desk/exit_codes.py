"""The exit code of a run, from its data as JSON. Pure; apart from coverage.py, which loads plan and gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.store.rows import BLIND, CLOSING

FOUND = frozenset({"posted", "posting", "repeated", "confirmed"})
"""States of findings that count as defects of the platform."""
UNDECIDED = "undecided:"
"""Prefix of the journal's facts, by platform and persona: the undecided probes of its last run, as JSON."""
UNEXPLORED = "unexplored:"
"""The same of the parts of the platform that its explorers could not look at."""
LEFT = "left:"
"""The same of what a limit left: an explorer's questions, candidates without a proof."""
LOCK_OUT = "lock-out"
"""The part that names a lock-out there."""
MODEL_ENDED = "model-ended:"
"""The same of what ended the model."""

_GONE = (": unreachable: ", ": timeout: ", "no whole answer within", "All connection attempts failed")
"""Wording of reasons for a target that did not answer."""


def exit_code(run: Mapping[str, Any]) -> int:
    """The exit code of `fleet run` for a run's data as JSON: 0 if it looked at something and left out nothing
    that applies at this rung.

    1 findings; 3 a probe's expectation could not be decided, or nothing of the persona applies to this
    platform; 4 the platform was unreachable; 5 dial or
    gate refused everything that applies, or everything is paused; 75 something was left out that another run
    may reach.
    """
    coverage, findings = run.get("coverage", {}), run.get("findings", ())
    if any(row["state"] in FOUND and row.get("probe") != CLOSING for row in findings):
        return 1
    if run["outcome"] in ("stopped", "window_closed", "awaiting_human", "refused"):
        return 5
    if run["outcome"] == "could_not_tell":
        return 4
    if coverage.get("undecided"):
        return 3
    reasons = [row["reason"] for row in coverage.get("could_not", ())]
    unproven = any(
        row["state"] in ("raised", "unverified") and not row["data"].get("claim") for row in findings
    )
    starved = any(row["cut"] for row in coverage.get("left", ()))
    if run["outcome"] not in ("done", BLIND) or reasons or unproven or starved:
        return 4 if any(word in why for why in (run["detail"], *reasons) for word in _GONE) else 75
    if coverage.get("looked") or run["outcome"] == "done":
        return 0
    return 5 if coverage.get("refused") else 3
