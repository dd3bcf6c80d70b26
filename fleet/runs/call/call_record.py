"""The record of a run's calls: each is judged, charged and recorded before it is made, and after it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio

from fleet.clock import Clock
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.state_changes import RULE, StateChanges
from fleet.drivers.session import Answer, RunOver, cause_of
from fleet.events.model import ExtensionDisabled, GateDenied, ToolRequested, ToolResponded
from fleet.gate.model import Action, Verdict
from fleet.runs.call.guest_protocol import bad_args
from fleet.runs.call.replies import small
from fleet.runs.call.targets import Contacts, targets_of
from fleet.runs.call.tool_groups import RETRY_S, STRIKES, CircuitBreaker, target_of
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import RunContext
from fleet.text import line
from sandbox.spec import Effect, ToolSpec
from sandbox.tools import TOOLS

TOO_MANY = 429
_OVER = {"stop": "stopped", "budget": "budget_exceeded", "deadline": "deadline_exceeded"}


EXPLORING = "explore"
"""The probe that a call of an explorer is recorded under."""
CHANGES = "changes"
"""The note of the requests that change a platform's state."""


@dataclass(frozen=True, slots=True)
class CallPurpose:
    """The purpose of a call: a probe, a proof, or (`looks_s`) a check whether the target answers."""

    probe: str
    call_id: str
    proof: bool
    looks_s: float

    @property
    def explores(self) -> bool:
        """Whether it is one of an explorer, or of a search for a smaller question."""
        return self.probe == EXPLORING

    @property
    def trusts_outages(self) -> bool:
        """Whether it is refused while its target is withdrawn; proofs and checks are not."""
        return not (self.proof or self.looks_s)


class JudgedCall(NamedTuple):
    """A call with its number and the gate's verdict."""

    number: int
    tool: str
    args: Mapping[str, Any]
    how: CallPurpose
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """A call that the gate permitted, charged and recorded."""

    number: int
    tool: str
    spec: ToolSpec
    args: Mapping[str, Any]
    how: CallPurpose
    started: float


class CallRecord:
    """Between a driver's call and its jail: the gate, the ledger, the stream, and what fails repeatedly."""

    def __init__(self, context: RunContext, wallet: Wallet) -> None:
        self._context, self._wallet = context, wallet
        self._world = world = context.fleet
        self._run, self._persona = context.run, context.persona
        self._gate, self._stream = context.gate, context.stream
        notes = world.folder(context.run) if world.trial else world.state
        self._notebook = Notebook(notes / "explore" / world.platform.name)
        self.changes = StateChanges.of(self._notebook.read(CHANGES))
        self.calls = 0
        self.turn = 0
        self.answered, self.limited = 0, 0
        """Calls that the platform answered with a status, and those of them with 429."""
        self.breaker = CircuitBreaker(world.clock, world.patience_s)
        self.contacts = Contacts(targets_of(world.platform))

    @property
    def clock(self) -> Clock:
        return self._world.clock

    async def check_ours(self) -> None:
        """RunOver when a peer has taken this run over."""
        if not await self._world.source.mine(self._run):
            raise RunOver("crashed", "a peer presumed this process dead and settles this run")

    async def judge(self, tool: str, args: Mapping[str, Any], how: CallPurpose) -> JudgedCall:
        """Number one call, judge it and charge it."""
        self.calls += 1
        number = self.calls
        if how.trusts_outages and not self.breaker.permits(tool, args):
            return JudgedCall(number, tool, args, how, _withdrawn(tool, args))
        if why := self.changes.why_not(tool, args, explores=how.explores):
            return JudgedCall(number, tool, args, how, Verdict(permit=False, rule=RULE, reason=why))
        return JudgedCall(number, tool, args, how, await self._decide(tool, TOOLS.get(tool), args))

    async def admit(self, judged: JudgedCall) -> AdmittedCall | Answer:
        """Record the request of a call that was judged; the answer to one that is refused."""
        number, tool, args, how, verdict = judged
        spec = TOOLS.get(tool)
        if not verdict.permit or spec is None:
            return self._denied(number, tool, verdict, args, how.call_id)
        shown = self._world.redactor.fields(args)
        self._stream.emit(
            ToolRequested(call=number, call_id=how.call_id, probe=how.probe, tool=tool, args=shown)
        )
        await self._wallet.ready(tool, args)
        return AdmittedCall(number, tool, spec, args, how, self._world.clock.monotonic())

    def charged_together(self) -> AbstractAsyncContextManager[None]:
        """The calls judged inside are charged at once."""
        return self._gate.together()

    def recorded_together(self) -> AbstractContextManager[None]:
        """What is recorded inside is written at once."""
        return self._stream.together()

    def known(self, asked: AdmittedCall) -> dict[str, Any] | None:
        """The answer to a call whose target is known to be down."""
        if asked.spec.effect is Effect.REPORT or not asked.how.trusts_outages:
            return None
        outage = self.contacts.why_not(asked.tool, asked.args)
        return _known(outage) if outage else None

    def respond(self, asked: AdmittedCall, result: Mapping[str, Any], seconds: float) -> None:
        """Record what a call answered."""
        self._stream.emit(
            ToolResponded(
                call=asked.number,
                call_id=asked.how.call_id,
                tool=asked.tool,
                is_error=not result["ok"],
                result=self._world.redactor.fields(result),
                seconds=round(seconds, 4),
            )
        )

    def check_spent(self) -> None:
        """RunOver when a budget refused a signature of the last call."""
        spent, self._wallet.spent = self._wallet.spent, ""
        if spent:
            raise RunOver("budget_exceeded", spent)

    def count(self, asked: AdmittedCall, result: dict[str, Any]) -> Answer:
        """Count what an answer says of its target; one too many failures withdraw it."""
        if status := result.get("status"):
            self.answered += 1
            self.limited += status == TOO_MANY
        if not asked.how.looks_s:
            self.contacts.count(asked.tool, asked.args, result)
            if self.changes.saw(asked.tool, asked.args, result):
                self._notebook.write(CHANGES, self.changes.state())
            self.disabled(self.breaker.count(asked.tool, asked.args, result), cause_of(result))
        if asked.spec.needs_key:
            self._credit(asked, result)
        return Answer(result)

    def disabled(self, target: str, last: str) -> None:
        """Record the target that was withdrawn, if one was."""
        if target:
            reason = f"auto_disable: {STRIKES} consecutive failures, last: {last}"
            self._stream.emit(ExtensionDisabled(namespace=target, reason=reason, turn=self.turn))

    @property
    def affords(self) -> int:
        """Calls that the credit of the caller still pays, as far as is known."""
        return self._wallet.affords

    def renew(self, label: str, calls: int) -> None:
        """Another identity, if this one's credit does not pay a question with this number of calls."""
        self._wallet.renew(label, calls)

    def _credit(self, asked: AdmittedCall, result: Mapping[str, Any]) -> None:
        """Note what is left of the credit of the identity that called."""
        label = asked.spec.lends.get(str(asked.args.get("caller")), asked.spec.needs_key)
        if result.get("error_class") == "unfunded":
            self._wallet.wear(label)
        charged, credit = result.get("charged", 0), str(result.get("credit", ""))
        if label == asked.spec.needs_key and isinstance(charged, int) and charged > 0 and credit.isdigit():
            self._wallet.pays(int(credit), charged)

    async def pace(self) -> None:
        """Wait until the gate's rate permits one more call."""
        if pause := self._gate.pause():
            await anyio.sleep(pause)

    def withhold(self, tool: str, args: Mapping[str, Any], rule: str, reason: str) -> Answer:
        """Refuse a call before the gate is asked."""
        self.calls += 1
        return self._denied(self.calls, tool, Verdict(permit=False, rule=rule, reason=reason), args, "")

    async def reject(self, tool: str, reason: str, args: Mapping[str, Any], *, call_id: str = "") -> Answer:
        """Record and charge an invalid call: unknown, malformed, or with bad arguments."""
        self.calls += 1
        verdict = await self._gate.malformed(tool, reason)
        return self._denied(self.calls, tool, verdict, args, call_id)

    async def _decide(self, tool: str, spec: ToolSpec | None, args: Mapping[str, Any]) -> Verdict:
        if spec is not None and (bad := bad_args(spec, args)) is not None:
            return await self._gate.malformed(tool, bad)
        effect = spec.effect_of(args) if spec else None
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


def _known(outage: str) -> dict[str, Any]:
    """The immediate answer for a call to a target known to be down."""
    return {"ok": False, "latency_ms": 0.0, "error": outage, "error_class": "unreachable", "hint": ""}


def _withdrawn(tool: str, args: Mapping[str, Any]) -> Verdict:
    reason = f"{target_of(tool, args)} failed {STRIKES} times in a row: the next call is in {RETRY_S:g} s"
    return Verdict(permit=False, rule="withdrawn", reason=reason)
