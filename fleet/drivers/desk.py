"""The interface of every driver: turns, tool calls through the gate, a plan, and nothing else.

A playbook, a model and an outside agent over MCP all drive a run through one `Desk`; so they have the same
gate, the same records and the same limits. The desk trusts none of them: it checks names, arguments and
texts, and RunOver ends the run regardless of the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from fleet.events.model import Alternative, Event, TurnUsage
from fleet.personas.model import Step
from sandbox.spec import Effect
from sandbox.tools import TOOLS

RUN_PROBE, REPORT_FINDING, FINISH = "run_probe", "report_finding", "finish"
"""The desk's own tools beside `qa_*`: work on the plan, claim a defect with its repro, finish."""

FAILURES = ("turn_timeout", "provider_error", "schema_exhausted", "invalid_action_exhausted", "refusal")
"""Why a turn failed: three failed turns in a row end the run as `agent_stuck`, five timeouts in a row as
`budget_exhausted` with the detail `inference_latency` (harness-facts 2.3)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as it is offered now. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    group: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call answered: data, never instructions; at most `MAX_REPLY` bytes as JSON.

    A refusal, an unknown tool and bad arguments are replies with `is_error`; `content["error"]` names the
    fault, `content["pointer"]` where in the arguments.
    """

    call_id: str
    tool: str
    content: Mapping[str, Any]
    is_error: bool = False


MAX_REPLY = 16_384
"""Most bytes of one reply; longer ones are cut with a visible mark."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The brief of a driver, by author. Only `system` may enter a model's system role.

    `system` is the persona's own text with charter and guardrails (trusted: the operator wrote it), `plan`
    the currently open probes. Digests are SHA-256 of MISSION, CHARTER and GUARDRAILS.
    """

    system: str
    plan: str
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """Calls to make in order, with placeholders as in a repro; the oracles judge every answer to them."""

    steps: tuple[Step, ...]
    minimal: bool = field(default=False, kw_only=True)
    """Whether its texts were cut to a minimum already: a proof tries only a few smaller ones."""
    apart: tuple[tuple[int, ...], ...] = field(default=(), kw_only=True)
    """Positions of steps in the row of its last call that the rest does not depend on, in groups: a proof
    leaves out those that what was seen does not need."""
    led: str = field(default="", kw_only=True, compare=False)
    """What led to it: the piece that was seen, and what it tests."""

    @property
    def acts(self) -> int:
        """How many of the calls are acts."""
        return sum(TOOLS[step.tool].effect_of(step.args) is Effect.ACT for step in self.steps)

    @property
    def why(self) -> str:
        """What led to it, for the record; "" for what follows from all that its explorer learned."""
        return self.led


def led_by(why: str, *questions: Question) -> list[Question]:
    """The same questions, with what led to those that do not say so."""
    return [one if one.why else replace(one, led=why) for one in questions]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is done next, why, instead of what, and what is done when it fails: the words of a decision."""

    action: str
    why: str
    instead: tuple[Alternative, ...]
    fallback: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an explorer may still ask in this run; what the proofs of its findings need is kept back."""

    calls: int
    acts: int
    """Of one turn."""
    why: str = ""
    """Why no call is left; where some are, why no act is left."""


ACCOUNTS = "accounts"
"""What the name of a part begins with that needs accounts."""


@dataclass(frozen=True, slots=True)
class Left:
    """A part of the platform that a run did not look at, or not fully, and why: for its report.

    `unexplored`: it cannot be looked at; `left`: a limit of the run or of the platform left some of it;
    `cut`: most of it, so that the run counts as incomplete.
    """

    part: str
    reason: str
    kind: Literal["unexplored", "left", "cut"] = "unexplored"


class Turn(Protocol):
    """One turn in progress; it is recorded however it ends."""

    async def ask(self, call_id: str, tool: str, args: Mapping[str, Any] | str) -> Reply:
        """One tool call; calls of one turn may be concurrent, and run one after the other.

        `args` is a text if the driver's JSON was malformed. Raises RunOver when a fence ends the run.
        """

    async def pose(self, questions: Sequence[Question]) -> Sequence[Sequence[Mapping[str, Any]] | None]:
        """Ask an explorer's questions; the results of each, up to the first call that was refused or failed,
        None for one that was not begun.

        Results are untrusted data. Raises RunOver when a fence ends the run.
        """

    def show(self, event: Event) -> None:
        """Put a message event of the driver (started, delta, done, said) on the run's stream."""

    def used(self, usage: TurnUsage) -> None:
        """Report usage, once per model call; the turn's record and the footer hold the sums."""

    def failed(self, failure: str, detail: str = "") -> None:
        """Mark this turn as failed, with a reason of FAILURES."""


class Reserved(Protocol):
    """What one model call may cost, set aside."""

    async def settle(self, usage: TurnUsage | None) -> None:
        """After the call: charge its actual cost; None or unknown numbers leave all of it spent."""


class Desk(Protocol):
    """One run as a driver sees it. Turns are taken one after the other; a driver may think meanwhile."""

    @property
    def turn_s(self) -> float:
        """Deadline of one turn, in seconds."""

    def brief(self, probe: str = "") -> Brief:
        """The brief, with the current plan, or with what it has about one probe."""

    def offers(self) -> tuple[Offer, ...]:
        """The tools on offer now; those of withdrawn groups are missing."""

    def next_probe(self, besides: Collection[str] = ()) -> str:
        """The probe that the plan would work on next, without the taken ones; "" when none is left."""

    def turn(self, probe: str = "") -> AbstractAsyncContextManager[Turn]:
        """Begin the next turn, under its own deadline; `probe`: `finish` is for who is at that one.

        Entering waits for the turn before it to be left, checks the stop conditions in order and raises
        RunOver; leaving writes the record, then what was seen is proven and posted, the gravest first, before
        the next one.
        TimeoutError and RunOver reach the caller; after a timeout only the turn's record is
        written.
        """

    async def more(self, probe: str = "") -> str:
        """Called when a driver stops on its own: the words that make it continue, or "" if it may stop.

        Who is at one probe may stop when that is settled. Depends on the plan and the stop conditions only,
        never on what the driver says. Raises RunOver with `max_continuations` when the limit is reached.
        """

    @property
    def requests(self) -> int:
        """What the run has sent so far: a call may be one of them, or forty."""

    async def room(self) -> Allowance:
        """What an explorer may still ask; no calls when its run should end."""

    def decide(self, choice: Choice, questions: Sequence[Question]) -> Sequence[Question]:
        """Record what is asked next and why; those of the questions that are likely enough to be answered."""

    def leave(self, left: Left) -> None:
        """Record what the run did not look at; the latest record of a part counts."""

    async def reserve(self, *, tokens: int) -> Reserved:
        """Before a model call: reserve what it may cost. BudgetExceeded: not covered, or unpriced."""


class Driver(Protocol):
    """Drives one run to its end. Returns the detail of a completed run."""

    async def __call__(self, desk: Desk, /) -> str: ...


class ProviderFailed(Exception):
    """The model is unavailable: the playbook asks what is open."""
