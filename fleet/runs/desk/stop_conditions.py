"""How far a run may go on its own: the stop conditions, in order. Pure.

kill_switch       STOP is set
iteration         max_turns_per_run turns, or max_features_per_run probes
model_time        a model's share of the run's time is over, and probes are open
repeated_failure  three failed turns in a row, or five timeouts, or a fail-fast condition of the persona
size              the run's files have reached their budget
plan_complete     every probe was looked at, or can no longer be looked at
awaiting_human    nothing was looked at, and the dial permits none of the rest
no_progress       six turns with the same open items
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fleet.gate.model import Rung
from fleet.personas.model import PolicySection
from fleet.runs.desk.state import Plan, complete
from fleet.runs.driver_choice import MAX_STALE
from fleet.text import counted

MAX_FAILURES = 3
MAX_TIMEOUTS = 5
PLAYBOOK_TURNS = 0.5
"""The largest share of max_turns_per_run that is kept for the playbook: a turn per open probe."""
MAX_BYTES = 48_000_000
"""Bytes of a run's trajectory: below the 50 MB limit of a run, to leave room for its end."""

ENDED_WELL = frozenset({"done"})
PROVABLE = frozenset(
    {
        "iteration_budget",
        "agent_stuck",
        "budget_exhausted",
        "awaiting_human",
        "no_progress",
        "max_continuations",
        "incomplete",
        "deadline_exceeded",
        "jail_lost",
        "budget_exceeded",
    }
)
"""Outcomes that end the driver but not the run: raised findings are still proven."""
HANDED_OVER = PROVABLE - {"awaiting_human", "jail_lost"} | {"failed", "budget_exceeded"}
"""Outcomes of a model's work after which the playbook asks what is open; a limit of the run ends that too."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ends: the condition, the recorded outcome, and one line for a person."""

    reason: str
    outcome: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts between two turns. Counts cover the whole run, across restarts.

    `stop`: why everything is paused, else "". `failed` and `timeouts` count since the last good turn, `stale`
    counts turns since an open item changed. `explores`: the driver may continue after the plan is complete,
    for up to `patience` turns without progress. `model`: a model drives; `late`: its share of the time is
    over.
    """

    plan: Plan
    rung: Rung
    stop: str = ""
    turns: int = 0
    retries_used: int = 0
    failed: int = 0
    timeouts: int = 0
    last_failure: str = ""
    stale: int = 0
    size: int = 0
    explores: bool = False
    patience: int = MAX_STALE
    model: bool = False
    late: bool = False


def limit_of(policy: PolicySection) -> int | None:
    """Maximum number of probes per run; None for no limit."""
    if policy.mode == "strict_incremental":
        return 1
    return policy.max_features_per_run if policy.mode == "bounded_batch" else None


def retries_left(policy: PolicySection, used: int) -> int:
    """Remaining retries for all probes together."""
    return max(0, policy.retry_budget - used)


def next_item(facts: RunFacts, policy: PolicySection, besides: Collection[str] = ()) -> str:
    """The id of the next item, or "" when none is left or may be started, `besides` those that are taken."""
    waiting = facts.plan.open(retries_left(policy, facts.retries_used))
    started = facts.plan.tried() + sum(item.state == "pending" and item.id in besides for item in waiting)
    limit = limit_of(policy)
    if limit is not None and started >= limit:
        waiting = tuple(item for item in waiting if item.state != "pending")
    return next((item.id for item in waiting if item.id not in besides), "")


def stop(facts: RunFacts, policy: PolicySection) -> Stop | None:
    """The first condition that holds, or None when the run may continue."""
    for condition in CONDITIONS:
        found = condition(facts, policy)
        if found is not None:
            return found
    return None


def _kill_switch(facts: RunFacts, _policy: PolicySection) -> Stop | None:
    return Stop("kill_switch", "stopped", facts.stop) if facts.stop else None


def _iteration(facts: RunFacts, policy: PolicySection) -> Stop | None:
    most = policy.max_turns_per_run
    kept = min(len(facts.plan.open()), int(most * PLAYBOOK_TURNS)) if facts.model else 0
    if facts.turns >= most - kept:
        rest = f", {kept} kept for the playbook" if kept else ""
        return Stop("iteration", "iteration_budget", f"max_turns_per_run = {most}{rest}")
    if full(facts, policy) and facts.plan.open() and not next_item(facts, policy):
        left = len(facts.plan.open())
        return Stop(
            "iteration",
            "iteration_budget",
            f"max_features_per_run = {limit_of(policy)}: {left} of {len(facts.plan.items)} probes not tried",
        )
    return None


def _model_time(facts: RunFacts, _policy: PolicySection) -> Stop | None:
    if not (facts.late and facts.plan.open()):
        return None
    return Stop("model_time", "deadline_exceeded", "the rest of the time is for the playbook")


def fails_fast(failure: str, policy: PolicySection) -> bool:
    """Whether the policy ends the run at a failure of FAILURES, without another driver."""
    fast = policy.fail_fast
    return (fast.on_chat_error and failure in ("provider_error", "refusal")) or (
        fast.on_validation_failure and failure in ("invalid_action_exhausted", "schema_exhausted")
    )


def _repeated_failure(facts: RunFacts, policy: PolicySection) -> Stop | None:
    why = facts.last_failure
    if facts.failed and fails_fast(why, policy):
        return Stop("repeated_failure", "agent_stuck", f"fail fast: {why}")
    if facts.failed >= MAX_FAILURES:
        return Stop("repeated_failure", "agent_stuck", f"{facts.failed} failed turns in a row, last: {why}")
    if facts.timeouts >= MAX_TIMEOUTS:
        return Stop("repeated_failure", "budget_exhausted", "inference_latency")
    return None


def _size(facts: RunFacts, _policy: PolicySection) -> Stop | None:
    if facts.size < MAX_BYTES:
        return None
    return Stop("size", "budget_exhausted", f"the trajectory has {facts.size} bytes")


def _plan_complete(facts: RunFacts, policy: PolicySection) -> Stop | None:
    finished = complete(facts.plan, retries_left(policy, facts.retries_used))
    if not finished or (facts.explores and facts.stale < facts.patience):
        return None
    return Stop("plan_complete", "done", summary(facts.plan))


def _awaiting_human(facts: RunFacts, _policy: PolicySection) -> Stop | None:
    waiting = facts.plan.open()
    if not waiting or facts.plan.looked() or any(item.rung.height <= facts.rung.height for item in waiting):
        return None
    many = len(waiting) != 1
    probes = f"{counted(len(waiting), 'probe')} {'need' if many else 'needs'}"
    detail = f"{probes} a higher rung than {facts.rung}: a person must raise the dial"
    return Stop("awaiting_human", "awaiting_human", detail)


def _no_progress(facts: RunFacts, _policy: PolicySection) -> Stop | None:
    if facts.stale < facts.patience:
        return None
    return Stop("no_progress", "no_progress", f"{counted(facts.stale, 'turn')} with the same open probes")


CONDITIONS: tuple[Callable[[RunFacts, PolicySection], Stop | None], ...] = (
    _kill_switch,
    _iteration,
    _model_time,
    _repeated_failure,
    _size,
    _plan_complete,
    _awaiting_human,
    _no_progress,
)


def summary(plan: Plan) -> str:
    """Summary of a plan in one line; "" when every probe was looked at."""
    if plan.looked() == len(plan.items):
        return ""
    none = sum(item.state == "not_applicable" for item in plan.items)
    wrong = ", ".join(item.id for item in plan.items if item.state == "undecided")
    shown = f"{plan.looked()} of {len(plan.items)} probes looked at"
    shown = f"{shown}, {none} not applicable" if none else shown
    return f"{shown}, undecided: {wrong}" if wrong else shown


def full(facts: RunFacts, policy: PolicySection) -> bool:
    """Whether no more probes may be started; started ones may be retried."""
    limit = limit_of(policy)
    return limit is not None and facts.plan.tried() >= limit
