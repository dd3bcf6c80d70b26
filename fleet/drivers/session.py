"""What a driver may do: call tools through the gate. Everything else is out of its reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fleet.drivers.template import Bindings

OUR_FAILURES = frozenset({"refused", "internal", "unreachable", "disk_full", "bad_request"})
"""error_class words that say "could not look": never a statement about the platform."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One tool call's answer. `denied` names the gate's rule when the call was not permitted."""

    result: Mapping[str, Any]
    denied: str = ""
    reason: str = ""


class RunOver(Exception):
    """The run must end now; `outcome` is the recorded word, e.g. stopped, budget_exceeded."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome, self.detail = outcome, detail


class Session(Protocol):
    """One run as a driver sees it."""

    def bindings(self, *, fresh_name: bool) -> Bindings:
        """Values for one attempt's placeholders, with a name that no attempt has used when asked for."""

    async def call(self, tool: str, args: Mapping[str, Any], *, probe: str = "") -> Answer:
        """One gated, jailed call; RunOver when a fence ends the run."""

    def history(self) -> Mapping[str, float]:
        """Figures of earlier runs by metric; the profile's own where there are too few."""
