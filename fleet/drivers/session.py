"""A run as one attempt at a probe sees it: tool calls through the gate, and what ends the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fleet.drivers.template import Bindings
from sandbox.errors import OUR_FAILURES, cause_of

__all__ = ["OUR_FAILURES", "PASSING", "Answer", "RunOver", "Session", "cause_of"]

PASSING = frozenset({"unreachable", "timeout", "busy", "internal", "unfunded"})
"""Those of OUR_FAILURES that may pass soon: worth a retry within the run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One tool call's answer. `denied` names the gate's rule when the call was not permitted.

    `lost`: its jail was killed after it had acted, so its answer is unknown and it must not be repeated.
    """

    result: Mapping[str, Any]
    denied: str = ""
    reason: str = ""
    lost: bool = False


class RunOver(Exception):
    """The run must end now; `outcome` is the recorded word, e.g. stopped, budget_exceeded."""

    def __init__(self, outcome: str, detail: str) -> None:
        super().__init__(f"{outcome}: {detail}")
        self.outcome, self.detail = outcome, detail


class Session(Protocol):
    """One run as an attempt at a probe sees it."""

    def bindings(self, *, fresh_name: bool) -> Bindings:
        """Values for one attempt's placeholders, on request with an unused name."""

    async def fresh_callers(self) -> None:
        """Call under identities without a history from the next attempt on, if the budget pays for them."""

    async def missing(self, needs: Iterable[str]) -> str:
        """Why a probe with these needs is not applicable on this platform; "" when all are met."""

    async def call(
        self, tool: str, args: Mapping[str, Any], *, probe: str = "", proof: bool = False
    ) -> Answer:
        """One gated, jailed call; RunOver when a fence ends the run. A `proof` is never withheld for what
        failed before it."""

    async def wait_for(self, tool: str, args: Mapping[str, Any], tries: int) -> bool:
        """Back off before another call to this target; False when the patience is over."""

    def history(self) -> Mapping[str, float]:
        """Figures of earlier runs by metric; the profile's own if there are too few."""

    def facts(self) -> Mapping[str, Any]:
        """The platform's promises from the profile."""
