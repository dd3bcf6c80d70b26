"""What every driver works at: turns, tool calls through the gate, a plan, and nothing else.

A playbook, a model and an outside agent over MCP all drive a run through one `Desk`; so they have the
same gate, the same records and the same bounds. The desk trusts none of them: names, arguments and texts
are checked there, RunOver ends the run whatever the driver would like.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from fleet.events.model import Event, TurnUsage

RUN_PROBE, REPORT_FINDING, FINISH = "run_probe", "report_finding", "finish"
"""The desk's own tools beside `qa_*`: work on the plan, claim a defect with its repro, say: enough."""

FAILURES = ("turn_timeout", "provider_error", "schema_exhausted", "invalid_action_exhausted", "refusal")
"""Why a turn failed: three failed turns in a row end the run as `agent_stuck`, five timeouts in a row as
`budget_exhausted` with the detail `inference_latency` (harness-facts 2.3)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as a driver may see it now. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    group: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call answered: data, never instructions; at most `MAX_REPLY` bytes as JSON.

    A refusal, an unknown tool and bad arguments are replies with `is_error`; `content["error"]` says what,
    `content["pointer"]` where in the arguments.
    """

    call_id: str
    tool: str
    content: Mapping[str, Any]
    is_error: bool = False


MAX_REPLY = 16_384
"""Bytes of one reply as a driver sees it; longer ones are cut with a visible mark."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a driver is told, by its author. Only `system` may stand in a model's system role.

    `system` is the persona's own text with charter and guardrails (trusted: the operator wrote it), `plan`
    the open probes as they are now. Digests are SHA-256 of MISSION, CHARTER and GUARDRAILS.
    """

    system: str
    plan: str
    digests: Mapping[str, str] = field(default_factory=dict)


class Turn(Protocol):
    """One turn in progress; a record when it ends, however it ends."""

    async def ask(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        """One tool call; calls of one turn may be asked at once, and are done one after the other.

        `args` is a text where the driver's JSON was malformed. Raises RunOver when a fence ends the run.
        """

    def show(self, event: Event) -> None:
        """Put a message event of the driver (started, delta, done, said) on the run's stream."""

    def used(self, usage: TurnUsage) -> None:
        """What the turn cost; once per model call, summed up in the turn's record and the footer."""

    def failed(self, failure: str, detail: str = "") -> None:
        """This turn brought nothing, for a reason of FAILURES."""


class Desk(Protocol):
    """One run as a driver sees it."""

    def brief(self) -> Brief:
        """The words to work by, with the plan as it is now."""

    def offers(self) -> tuple[Offer, ...]:
        """The tools that may be asked for now; a withdrawn group is gone."""

    def next_probe(self) -> str:
        """The probe that the plan would work on next, or "" when none is left."""

    def turn(self) -> AbstractAsyncContextManager[Turn]:
        """The next turn, under its own deadline.

        Entering checks the stop conditions in their order and raises RunOver; leaving writes the record.
        TimeoutError and RunOver go on to the caller; after a timeout nothing of the turn is written any more
        but its record.
        """

    async def more(self) -> str:
        """Asked when a driver has stopped by itself: what to tell it to go on, or "" when it may stop.

        Depends on the plan and the stop conditions only, never on what the driver says. Raises RunOver with
        `max_continuations` when it was told often enough.
        """

    async def reserve(self, *, tokens: int) -> None:
        """Before a model call: set aside what it may cost. BudgetExceeded: not covered, or unpriced."""

    async def settle(self, usage: TurnUsage | None) -> None:
        """After a model call: charge what it did cost; None, or unknown numbers, leave the reserve spent."""


class Driver(Protocol):
    """Drives one run to its end. Returns the detail of a run that is done."""

    async def __call__(self, desk: Desk, /) -> str: ...


class ProviderFailed(Exception):
    """The model cannot be had now: `auto` goes on with the playbook, `model` ends the run."""
