"""One run as its driver sees it: every call through the gate into a fresh jail, recorded on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from fleet.backoff import Backoff
from fleet.broker.broker import EgressRecord
from fleet.drivers.session import Answer, RunOver, cause_of
from fleet.drivers.template import Bindings
from fleet.errors import BudgetExceeded, FleetError, JailError
from fleet.jail.model import Egress
from fleet.runs.call.attachment import attached
from fleet.runs.call.call_record import AdmittedCall, CallPurpose, CallRecord
from fleet.runs.call.capabilities import Capabilities
from fleet.runs.call.free_entry import post_free_entry
from fleet.runs.call.guest_protocol import answer, answers, batch_line, request_line
from fleet.runs.call.tool_groups import FAILURES, first_page
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import RunContext
from sandbox.spec import Context, Effect, ToolSpec
from sandbox.tools import TOOLS

_CALLER = next(spec.needs_key for spec in TOOLS.values() if spec.needs_key)
_CONTROL = "qa_fetch"
CONTROL_S = 10.0
"""Seconds for the control of a host that is suspected to be down."""
GUEST_S = 20.0
"""Seconds between the guest's deadline and the jail's, so that the guest can still answer."""
MARGIN_S = 2.0
MAX_RETRIES = 5
AGAIN = Backoff(0.5, 4.0)
"""Back-off before another call to a silent target."""
RETRIES = 2
"""Retries, in another jail, of a call whose jail was killed before it acted."""


class RunSession(CallRecord):
    """Implements the drivers' Session port."""

    def __init__(
        self,
        context: RunContext,
        *,
        wallet: Wallet,
        history: Mapping[str, float],
        first_name: int = 1,
    ) -> None:
        super().__init__(context, wallet)
        world = context.fleet
        self._history = dict(world.platform.history) | dict(history)
        self._next_name = first_name
        self._capabilities: Capabilities | None = None
        self.requests = 0
        """What the broker served of this run's jails."""
        self._resumes = 0.0

    def bindings(self, *, fresh_name: bool) -> Bindings:
        self._wallet.renew(_CALLER)
        return self._world.bindings(self._run, self._fresh() if fresh_name else "")

    async def fresh_callers(self) -> None:
        if await self.writes_left():  # a new identity claims its credit
            self._wallet.retire()

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
        acts = spec is not None and (bool(spec.acts_on) or _changes_a_page(tool, args))
        if tries >= MAX_RETRIES or acts or not self.breaker.waits(tool, args):
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
        left, how = RETRIES, CallPurpose(probe, call_id, proof, looks_s)
        while True:
            acts = self._wallet.acts
            try:
                return await self._call(tool, args, how)
            except JailError as lost:
                if self._wallet.acts != acts or _changes_a_page(tool, args):  # settling looks at its effects
                    return Answer(_lost(lost), lost=True)
                if not left:
                    raise RunOver("jail_lost", f"{RETRIES + 1} times in a row: {lost}") from None
                left -= 1

    async def _call(self, tool: str, args: Mapping[str, Any], how: CallPurpose) -> Answer:
        await self.check_ours()
        if self._asks_platform(tool):
            await self.resumed()
        asked = await self.admit(await self.judge(tool, args, how))
        if isinstance(asked, Answer):
            return asked
        lost: JailError | None = None
        try:
            result = self.known(asked) or await self._result(asked)
        except JailError as error:
            lost, result = error, _lost(error)
        self.respond(asked, result, self._world.clock.monotonic() - asked.started)
        self.check_spent()
        if lost is not None:
            raise lost
        counted = self.count(asked, result)
        if not how.looks_s:
            await self.ask_control(tool, args)
        return counted

    async def ask_control(self, tool: str, args: Mapping[str, Any]) -> None:
        """Ask the first page of a suspected host: the host is withdrawn only when that fails as well.

        A run that may not ask it cannot tell, and withdraws the host.
        """
        if not self.breaker.is_suspect(tool, args):
            return
        fails, cause = True, "a known outage"
        if not self.contacts.why_not(tool, args):
            url = first_page(tool, args)
            answer = await self.look(_CONTROL, {"url": url}, probe="", deadline_s=CONTROL_S)
            cause = answer.denied or cause_of(answer.result)
            fails = bool(answer.denied) or cause in FAILURES
        self.disabled(self.breaker.control(tool, args, answers=not fails), cause)

    @staticmethod
    def _asks_platform(tool: str) -> bool:
        spec = TOOLS.get(tool)
        return spec is not None and spec.effect in (Effect.LOOK, Effect.ACT)

    async def calls_left(self) -> int:
        """Calls that the budget leaves to this run."""
        return (await self._context.ledger.left())["calls"]

    async def writes_left(self) -> int:
        """Transactions that the budget leaves to this run."""
        return (await self._context.ledger.left()).get("writes", 0)

    async def reserve_requests(self, count: int) -> str:
        """Count an explorer's requests against the platform's day; why not, if they do not fit."""
        try:
            await self._context.ledger.spend("requests", count)
        except BudgetExceeded as spent:
            return str(spent)
        return ""

    async def count_requests(self, since: int, reserved: int) -> None:
        """Count those that the broker served beyond the reserved ones."""
        if (more := self.requests - since - reserved) > 0:
            await self._context.ledger.count("requests", more)

    async def _result(self, asked: AdmittedCall) -> dict[str, Any]:
        spec = asked.spec
        guest_s = asked.how.looks_s or spec.wall_s or GUEST_S
        if spec.effect is Effect.REPORT:
            return await post_free_entry(self._context, asked.args["text"])
        jail = self._world.jail.call
        call = partial(jail, resources=spec.resources) if spec.resources else jail
        outcome = await call(
            request_line(spec, asked.args, await self._guest_context(guest_s)),
            deadline_s=guest_s + MARGIN_S,
            # tools that only compute run hostile input beside the guest: no egress
            egress=None if spec.effect is Effect.COMPUTE else self._egress(1),
        )
        return attached(spec, answer(spec, outcome), self._world.folder(self._run) / "evidence")

    async def in_one_jail(
        self, spec: ToolSpec, calls: Sequence[tuple[int, Mapping[str, Any]]], starts_s: float
    ) -> tuple[dict[int, dict[str, Any]], bool]:
        """The results of admitted calls, by place in the batch, and whether the guest ended as it should."""
        outcome = await self._world.jail.call(
            batch_line(spec, calls, await self._guest_context(GUEST_S), starts_s),
            deadline_s=starts_s + GUEST_S + MARGIN_S,
            egress=self._egress(len(calls)),
        )
        return answers(spec, outcome)

    async def _guest_context(self, guest_s: float) -> Context:
        lacks = (await self.capabilities()).lacks
        return self._world.context(self._run, self._wallet.addresses(), guest_s, lacks)

    def _egress(self, calls: int) -> Egress:
        return self._world.egress(self._wallet, calls, self._noted)

    def _noted(self, record: EgressRecord) -> None:
        self.requests += 1
        if record.pause:
            self._resumes = max(self._resumes, self._world.clock.monotonic() + record.pause)

    def held(self) -> float:
        """Seconds until the pause is over that the platform asked for; 0 without one."""
        return max(0.0, self._resumes - self._world.clock.monotonic())

    async def resumed(self) -> None:
        """Wait until a pause is over that the platform asked for, if the run's time reaches that far."""
        if 0 < (pause := self.held()) < self._context.gate.time_left():
            await anyio.sleep(pause)


def _changes_a_page(tool: str, args: Mapping[str, Any]) -> bool:
    """Whether a call may have changed what no effect of the journal records: it is never repeated."""
    spec = TOOLS.get(tool)
    return spec is not None and bool(spec.acts_at) and spec.effect_of(args) is Effect.ACT


def _lost(error: JailError) -> dict[str, Any]:
    return {"ok": False, "error_class": "internal", "error": str(error)}
