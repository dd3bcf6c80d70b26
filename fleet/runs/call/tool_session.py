"""One run as its driver sees it: every call through the gate into a fresh jail, recorded on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from fleet.backoff import Backoff
from fleet.drivers.session import OUR_FAILURES, Answer, RunOver, cause_of
from fleet.drivers.template import Bindings
from fleet.errors import FleetError, JailError
from fleet.events.model import ExtensionDisabled, GateDenied, ToolRequested, ToolResponded
from fleet.gate.model import Action, Verdict
from fleet.runs.call.capabilities import Capabilities
from fleet.runs.call.free_entry import post_free_entry
from fleet.runs.call.guest_protocol import answer, bad_args, request_line
from fleet.runs.call.replies import small
from fleet.runs.call.targets import Contacts, targets_of
from fleet.runs.call.tool_groups import RETRY_S, STRIKES, CircuitBreaker, target_of
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import RunContext
from fleet.text import line
from sandbox.spec import Effect, ToolSpec
from sandbox.tools import TOOLS

GUEST_S = 20.0
"""Seconds between the guest's deadline and the jail's, so that the guest can still answer."""
MARGIN_S = 2.0
MAX_RETRIES = 5
AGAIN = Backoff(0.5, 4.0)
"""Back-off before another call to a silent target."""
EXPLORED = "explore"
"""What an explorer's calls are recorded under, in place of a probe's id."""
RETRIES = 2
"""Retries, in another jail, of a call whose jail was killed before it acted."""

_OVER = {"stop": "stopped", "budget": "budget_exceeded", "deadline": "deadline_exceeded"}


@dataclass(frozen=True, slots=True)
class _Call:
    """The purpose of a call: a probe, a proof, or (`looks_s`) a check whether the target answers."""

    probe: str
    call_id: str
    proof: bool
    looks_s: float

    @property
    def trusts_outages(self) -> bool:
        """Whether it is refused while its target is withdrawn; proofs and checks are not."""
        return not (self.proof or self.looks_s)


class RunSession:
    """Implements the drivers' Session port."""

    def __init__(
        self,
        context: RunContext,
        *,
        wallet: Wallet,
        history: Mapping[str, float],
        first_name: int = 1,
    ) -> None:
        self._context, self._wallet = context, wallet
        self._world = world = context.fleet
        self._run, self._persona = context.run, context.persona
        self._gate, self._stream = context.gate, context.stream
        self._history = dict(world.platform.history) | dict(history)
        self._next_name = first_name
        self._capabilities: Capabilities | None = None
        self.calls = 0
        self.turn = 0
        self.strikes = CircuitBreaker(world.clock, world.patience_s)
        self.contacts = Contacts(targets_of(world.platform))

    def bindings(self, *, fresh_name: bool) -> Bindings:
        return self._world.bindings(self._run, self._fresh() if fresh_name else "")

    def _fresh(self) -> str:
        """A name that this run has not used, even if a driver numbers its names ahead."""
        taken = self._wallet.keys.labels()
        while True:
            name = f"qa-{self._run}-{self._next_name}"
            self._next_name += 1
            if name not in taken:
                return name

    def history(self) -> Mapping[str, float]:
        return self._history

    def facts(self) -> Mapping[str, Any]:
        return self._world.platform.facts

    async def missing(self, needs: Iterable[str]) -> str:
        return (await self.capabilities()).missing(needs)

    async def capabilities(self) -> Capabilities:
        """The platform's capabilities: asks its diamond once per run, and again after a failure."""
        if self._capabilities is None:
            try:
                self._capabilities = Capabilities(self._world.platform, await self._world.checks.offered())
            except FleetError:
                return Capabilities(self._world.platform)
        return self._capabilities

    async def wait_for(self, tool: str, args: Mapping[str, Any], tries: int) -> bool:
        spec = TOOLS.get(tool)
        # a call that may have sent a transaction is checked when the run settles, never retried
        acts = spec is not None and bool(spec.acts_on)
        if tries >= MAX_RETRIES or acts or not self.strikes.waits(tool, args):
            return False
        await anyio.sleep(AGAIN.pause(tries))
        return True

    async def look(self, tool: str, args: Mapping[str, Any], *, probe: str, deadline_s: float) -> Answer:
        """Check whether a target answers; the result does not count as a failure."""
        return await self.call(tool, args, probe=probe, looks_s=deadline_s)

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        probe: str = "",
        proof: bool = False,
        call_id: str = "",
        looks_s: float = 0.0,
    ) -> Answer:
        """Make one gated call. A retry after a killed jail is also a call: permitted, charged, recorded."""
        left, how = RETRIES, _Call(probe, call_id, proof, looks_s)
        while True:
            acts = self._wallet.acts
            try:
                return await self._call(tool, args, how)
            except JailError as lost:
                if self._wallet.acts != acts:  # settling looks at its effects
                    return Answer(_lost(lost), lost=True)
                if not left:
                    raise RunOver("jail_lost", f"{RETRIES + 1} times in a row: {lost}") from None
                left -= 1

    async def _call(self, tool: str, args: Mapping[str, Any], how: _Call) -> Answer:
        call_id = how.call_id
        if not await self._world.source.mine(self._run):
            raise RunOver("crashed", "a peer presumed this process dead and settles this run")
        self.calls += 1
        number, spec = self.calls, TOOLS.get(tool)
        if how.trusts_outages and not self.strikes.permits(tool, args):
            return self._denied(number, tool, _withdrawn(tool, args), args, call_id)
        verdict = await self._decide(tool, spec, args)
        if not verdict.permit or spec is None:
            return self._denied(number, tool, verdict, args, call_id)
        shown = self._world.redactor.fields(args)
        self._stream.emit(ToolRequested(call=number, call_id=call_id, probe=how.probe, tool=tool, args=shown))
        await self._wallet.ready(tool, args)
        started = self._world.clock.monotonic()
        lost: JailError | None = None
        try:
            if spec.effect is Effect.REPORT:
                result = await post_free_entry(self._context, args["text"])
            elif how.trusts_outages and (outage := self.contacts.why_not(tool, args)):
                result = _known(outage)
            else:
                result = await self._jailed(spec, args, how.looks_s or GUEST_S)
        except JailError as error:
            lost, result = error, _lost(error)
        self._stream.emit(
            ToolResponded(
                call=number,
                call_id=call_id,
                tool=tool,
                is_error=not result["ok"],
                result=self._world.redactor.fields(result),
                seconds=round(self._world.clock.monotonic() - started, 4),
            )
        )
        if self._wallet.spent:
            raise RunOver("budget_exceeded", self._wallet.spent)
        if lost is not None:
            raise lost
        if not how.looks_s:
            self.contacts.count(tool, args, result)
            if target := self.strikes.count(tool, args, result):
                reason = f"auto_disable: {STRIKES} consecutive failures, last: {cause_of(result)}"
                self._stream.emit(ExtensionDisabled(namespace=target, reason=reason, turn=self.turn))
        return Answer(result)

    async def calls_left(self) -> int:
        """Calls that the budget leaves to this run."""
        return (await self._context.ledger.left())["calls"]

    async def pose(self, questions: Sequence[Sequence[tuple[str, Mapping[str, Any]]]]) -> list[list[Answer]]:
        """The answers to each question's calls, up to the first that was refused or could not look."""
        found: list[list[Answer]] = []
        for calls in questions:
            answers: list[Answer] = []
            for tool, args in calls:
                answers.append(await self.call(tool, args, probe=EXPLORED))
                if answers[-1].denied or cause_of(answers[-1].result) in OUR_FAILURES:
                    break
            found.append(answers)
        return found

    async def reject(self, tool: str, reason: str, args: Mapping[str, Any], *, call_id: str = "") -> Answer:
        """Record and charge an invalid call: unknown, malformed, or with bad arguments."""
        self.calls += 1
        verdict = await self._gate.malformed(tool, reason)
        return self._denied(self.calls, tool, verdict, args, call_id)

    async def _decide(self, tool: str, spec: ToolSpec | None, args: Mapping[str, Any]) -> Verdict:
        if spec is not None and (bad := bad_args(spec, args)) is not None:
            return await self._gate.malformed(tool, bad)
        effect = spec.effect if spec else None
        action = Action(
            run=self._run,
            persona=self._persona,
            tool=tool,
            effect=effect or Effect.REPORT,
            args=args,
        )
        return await self._gate.decide(action)

    def _denied(
        self, number: int, tool: str, verdict: Verdict, args: Mapping[str, Any], call_id: str
    ) -> Answer:
        rule, reason = verdict.rule, self._world.redactor.text(line(verdict.reason, 500))
        self._stream.emit(
            GateDenied(
                call=number,
                call_id=call_id,
                tool=line(tool, 64),
                rule=rule,
                reason=reason,
                args=small(self._world.redactor.fields(args)),
            )
        )
        if verdict.ends_run:
            raise RunOver(_OVER.get(rule, "refused"), reason)
        return Answer({}, denied=rule or "unknown", reason=reason)

    async def _jailed(self, spec: ToolSpec, args: Mapping[str, Any], guest_s: float) -> dict[str, Any]:
        lacks = (await self.capabilities()).lacks
        context = self._world.context(self._run, self._wallet.addresses(), guest_s, lacks)
        outcome = await self._world.jail.call(
            request_line(spec, args, context),
            deadline_s=guest_s + MARGIN_S,
            # tools that only compute run hostile input beside the guest: no egress
            egress=None if spec.effect is Effect.COMPUTE else self._world.egress(self._wallet),
        )
        return answer(spec, outcome)


def _lost(error: JailError) -> dict[str, Any]:
    return {"ok": False, "error_class": "internal", "error": str(error)}


def _known(outage: str) -> dict[str, Any]:
    """The immediate answer for a call to a target known to be down."""
    return {"ok": False, "latency_ms": 0.0, "error": outage, "error_class": "unreachable", "hint": ""}


def _withdrawn(tool: str, args: Mapping[str, Any]) -> Verdict:
    reason = f"{target_of(tool, args)} failed {STRIKES} times in a row: the next call is in {RETRY_S:g} s"
    return Verdict(permit=False, rule="withdrawn", reason=reason)
