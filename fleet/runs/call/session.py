"""One run as its driver sees it: every call through the gate into a fresh jail, recorded on both sides.

Each call is judged, charged and recorded before it is made, and recorded after it. A batch (batch.py) uses
the same steps, for several calls of one jail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import anyio
from anyio import to_thread

from fleet.broker.broker import EgressRecord
from fleet.broker.egress_read import by_host, count_request
from fleet.broker.egress_read import refused as is_refused
from fleet.broker.egress_record import CallEgress, Calls, EgressLog
from fleet.clock import Clock
from fleet.config.escalation import LEVELS, Level
from fleet.config.scope import HostSection
from fleet.drivers.desk import Choice
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.state_changes import RULE, StateChanges
from fleet.drivers.session import Answer, RunOver, cause_of
from fleet.drivers.template import Bindings
from fleet.errors import BudgetExceeded, ChainError, ConfigError, FleetError, JailError, Refused, Unreachable
from fleet.events.model import (
    CredentialSealed,
    DecisionMade,
    DecisionType,
    ExtensionDisabled,
    GateDenied,
    PaceChanged,
    Phase,
    PhaseChanged,
    RiskAssessed,
    TargetChecked,
    ToolRequested,
    ToolResponded,
)
from fleet.findings import envelope
from fleet.findings.instructions import texts_of
from fleet.findings.redact import mask
from fleet.gate.assessment import ASSESSED, METHOD, assess
from fleet.gate.budget import NO_EFFECT
from fleet.gate.impact import technique_of
from fleet.gate.model import Action, Verdict
from fleet.gate.risk import RISK, SAVES_S
from fleet.gate.stop import fence_failed
from fleet.gate.stop import stopped as is_stopped
from fleet.jail.model import Egress, Outcome
from fleet.retry import SILENT_TARGET, WITHDRAWN_TARGET
from fleet.runs.call.confidence import METHOD as SURE_BY
from fleet.runs.call.confidence import THRESHOLDS, Confidence, Factors, score
from fleet.runs.call.guest_protocol import answer, answers, attached, bad_args, batch_line, request_line
from fleet.runs.call.measures import ErrorShare, JailMeasures, failed
from fleet.runs.call.persons_word import PersonsWord
from fleet.runs.call.replies import small
from fleet.runs.call.sightings import CONFIDENTIAL, TOO_MANY, Sightings, confidential
from fleet.runs.call.targets import (
    FAILURES,
    STRIKES,
    Capabilities,
    CircuitBreaker,
    Contacts,
    first_page,
    target_of,
    targets_of,
)
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import RunContext
from fleet.text import clean, cut_bytes, line
from fleet.triggers.build import KEY as BUILD
from sandbox.spec import Context, Effect, ToolSpec
from sandbox.tools import TOOLS
from sandbox.tools.qa_report import Result

_CALLER = next(spec.needs_key for spec in TOOLS.values() if spec.needs_key)
_CONTROL = "qa_fetch"
CONTROL_S = 10.0
"""Seconds for the control of a host that is suspected to be down."""
LED = 200
"""Characters of what led to a question, as they are recorded."""
GUEST_S = 20.0
"""Seconds between the guest's deadline and the jail's, so that the guest can still answer."""
MARGIN_S = 2.0
RETRIES = 2
MOST_SEALED = 50
"""Credentials that one run seals: a hostile page can show any number of them, and the names of so many take
two seconds, in which nothing else is done."""
"""Retries, in another jail, of a call whose jail was killed before it acted."""
ACCOUNT = "account"
"""What an answer is judged as that begins with accounts."""
CHANGES = "changes"
"""The note of the requests that change a platform's state."""
_OVER = {
    "stop": "stopped",
    "schedule": "window_closed",
    "budget": "budget_exceeded",
    "deadline": "deadline_exceeded",
}
_NOT_POSTED: tuple[tuple[type[FleetError], str], ...] = (
    (Refused, "refused"),
    (Unreachable, "unreachable"),
    (ChainError, "reverted"),
    (FleetError, "internal"),
)


@dataclass(frozen=True, slots=True)
class CallPurpose:
    """The purpose of a call: a probe, a proof, or (`looks_s`) a check whether the target answers."""

    probe: str
    call_id: str
    proof: bool
    looks_s: float
    why: str = ""
    """What led to the question that it begins."""

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


class RunSession:
    """Implements the drivers' Session port."""

    def __init__(
        self, context: RunContext, *, wallet: Wallet, history: Mapping[str, float], first_name: int = 1
    ) -> None:
        self._context, self.wallet = context, wallet
        self._world = world = context.fleet
        self._run, self._gate, self._stream = context.run, context.gate, context.stream
        self.time, self._person = context.time, PersonsWord(context)
        self._history = dict(world.platform.history) | dict(history)
        self._next_name = first_name
        self._capabilities: Capabilities | None = None
        notes = world.folder(context.run) if world.trial else world.state
        self._notebook = Notebook(notes / "explore" / world.platform.name)
        self.changes = StateChanges.of(self._notebook.read(CHANGES))
        self.phase: Phase = "initialization"
        self.calls = 0
        self.turn = 0
        self.answered, self.limited = 0, 0
        """Calls that the platform answered with a status, and those of them with 429."""
        self.requests = self.refusals = 0
        """What the broker served of this run's jails."""
        self.egress = EgressLog(
            world.folder(context.run), clock=world.clock, mask=world.redactor.text, failed=self._stop
        )
        self.hosts = by_host(world.folder(context.run))
        """The same by host, as they were asked for."""
        self._shares = dict[str, float]()
        """Of each host's rate, as last told."""
        self._resumes = 0.0
        self._degraded = ""
        self._errors = ErrorShare(world.platform.limits.error_s)
        self._locked_out = self._warns = False
        self.breaker = CircuitBreaker(world.clock, world.patience_s)
        self.contacts = Contacts(targets_of(world.platform), world.platform.agent_urls)
        self._sealed = set[tuple[str, str]]()
        self._unsealed: list[tuple[AdmittedCall, str, str, str]] = []
        self._sealing = anyio.Lock()
        """What was shown since, to be sealed: the call, where, its kind, the value."""
        self.confidence = Confidence()
        self.sightings = Sightings(self._world.platform.authorisation.data)
        self.charged_together = context.gate.together
        """The calls judged inside are charged at once."""
        self.recorded_together = context.stream.together
        """What is recorded inside is written at once."""

    def enter(self, phase: Phase, why: str) -> None:
        """Record that a phase begins, if it is another one: before anything of it is done."""
        if phase != self.phase:
            rung, shown = self._gate.rung(), self._world.redactor.text(line(why, 300))
            self._stream.emit(PhaseChanged(before=self.phase, after=phase, why=shown, rung=rung))
            self.phase = phase

    def is_likely(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        """Whether calls are likelier to be answered than the phase asks for."""
        factors = self.confidence.of((target_of(tool, args) for tool, args in calls), self.time.monotonic())
        return score(factors) > THRESHOLDS.get(self.phase, 0.0)

    def decide(
        self,
        choice: Choice,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        kind: DecisionType = "multi-option selection",
        factors: Factors | None = None,
    ) -> bool:
        """Record a decision before it is acted on; whether its confidence is above what the phase asks for.

        `calls` are what it makes first, resolved; `factors` those of its confidence, else those of the calls.
        """
        mask, now = self._world.redactor.value, self.time.monotonic()
        factors = factors or self.confidence.of((target_of(tool, args) for tool, args in calls), now)
        specs = [(TOOLS[tool], args) for tool, args in calls if tool in TOOLS]
        found = [technique_of(one.name, one.effect_of(args) or one.effect, args) for one, args in specs]
        worst = max(filter(None, found), key=lambda one: LEVELS.index(one.level), default=None)
        made = DecisionMade(
            decision_type=kind,
            selected_action=choice.action,
            rationale=choice.why,
            confidence_score=score(factors),
            confidence_factors=factors,
            threshold=THRESHOLDS.get(self.phase, 0.0),
            method=SURE_BY,
            risk=f"{worst.name}: {worst}" if worst else "no call",
            alternatives_evaluated=choice.instead,
            fallback=choice.fallback,
        )
        self._stream.emit(DecisionMade.model_validate(mask(made.model_dump(mode="json"))))
        return made.is_taken

    def _stop(self, why: str) -> None:
        """What leaves cannot be recorded: nothing leaves until a person has looked."""
        with suppress(ConfigError):  # the call ends the run in any case
            fence_failed(self._world.state, "egress record", why, self._world.clock)

    @property
    def clock(self) -> Clock:
        return self.time

    def bindings(self, *, fresh_name: bool) -> Bindings:
        self.wallet.renew(_CALLER)
        name, taken = "", self.wallet.keys.labels() if fresh_name else ()
        while fresh_name and (not name or name in taken):  # a driver may have numbered its names ahead
            name = f"qa-{self._run}-{self._next_name}"
            self._next_name += 1
        return self._world.bindings(self._run, name)

    async def fresh_callers(self) -> None:
        if await self.writes_left():  # a new identity claims its credit
            self.wallet.retire()

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
        pause = SILENT_TARGET.next_pause(tries)
        if pause is None or acts or not self.breaker.waits(tool, args):
            return False
        await anyio.sleep(pause)
        return True

    async def look(self, tool: str, args: Mapping[str, Any], *, probe: str, deadline_s: float) -> Answer:
        """Check whether a target answers; the result does not count as a failure."""
        return await self.call(tool, args, probe=probe, looks_s=deadline_s)

    async def call(  # noqa: PLR0913  a call, and what it is for
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        probe: str = "",
        proof: bool = False,
        call_id: str = "",
        looks_s: float = 0.0,
        why: str = "",
    ) -> Answer:
        """Make one gated call. A retry after a killed jail is also a call: permitted, charged, recorded."""
        left, how = RETRIES, CallPurpose(probe, call_id, proof, looks_s, why)
        while True:
            acts = self.wallet.acts
            try:
                return await self._call(tool, args, how)
            except JailError as lost:
                if self.wallet.acts != acts or _changes_a_page(tool, args):  # settling looks at its effects
                    return Answer(_lost(lost), lost=True)
                if not left:
                    raise RunOver("jail_lost", f"{RETRIES + 1} times in a row: {lost}") from None
                left -= 1

    async def _call(self, tool: str, args: Mapping[str, Any], how: CallPurpose) -> Answer:
        await self.check_ours()
        if (spec := TOOLS.get(tool)) and spec.effect in (Effect.LOOK, Effect.ACT):
            await self.resumed()
        await self.permitted([(tool, args)])
        asked = await self.admit(await self.judge(tool, args, how))
        if isinstance(asked, Answer):
            await self.escalated()
            return asked
        lost: JailError | None = None
        try:
            result = self.known(asked) or await self._result(asked)
        except JailError as error:
            lost, result = error, _lost(error)
        self.respond(asked, result, self._world.clock.monotonic() - asked.started)
        await self.seal()
        self.check_spent()
        if lost is not None:
            raise lost
        counted = self.count(asked, result)
        await self.escalated()
        if not how.looks_s:
            await self.ask_control(tool, args)
        return counted

    async def permitted(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Wait for a person where one paused this run, or where one of these calls needs a person's word; the
        gate judges each by the answers. RunOver when that ends the run."""
        await self._person.pauses()
        await self._look_after()
        for tool, args in calls:
            verdict = await self._gate.asks(self._action(tool, args))
            if verdict is not None and verdict.asks not in self._gate.answers:
                level = cast(Level, verdict.level)
                said = await self._person.ask("impact", verdict.asks, verdict.reason, level)
                no = f"{said.closing.who} said no: {said.closing.why}"
                self._gate.answers[verdict.asks] = said.state if said.state == "approved" else no

    async def _look_after(self) -> None:
        """Look at the health of the targets that are due, before anything more is asked of them."""
        world, care = self._world, self._world.platform.care
        targets = {one.name: one for one in self.contacts.targets}
        urls = {name: one.url(0) if one.bases else world.platform.chain.rpc for name, one in targets.items()}
        due = world.health.due(
            [(name, care.at(url)) for name, url in urls.items()], world.clock, self.requests
        )
        if due:
            world.health.built(await world.journal.get(f"{BUILD}.{world.platform.name}") or "")
        for name in due:
            if (took := await self._timed(urls[name], page=bool(targets[name].bases))) is None:
                continue
            one, usual = world.health.of(name), world.health.of(name).usual
            wrong = world.health.looked(name, took if took >= 0 else None)
            checked = TargetChecked(
                target=name,
                what=world.redactor.text(urls[name]) if targets[name].bases else "eth_chainId",
                ms=took if took >= 0 else None,
                usual_ms=round(usual, 1),
                wrong=wrong,
                failures=one.failures,
                looks=one.looks,
                requests=self.requests,
            )
            self._stream.emit(checked)
            if wrong:
                said, place = world.health.halted(name), f"{name}, left alone"
                self._warns |= self.sightings.note("strain", place if said else name, said or wrong, "strain")

    async def _timed(self, url: str, *, page: bool) -> float | None:
        """Milliseconds that one look took, -1 without an answer; None where the target cannot be asked."""
        if not page:
            began = self._world.clock.monotonic()
            fails = await self._world.checks.node(CONTROL_S)
            return -1.0 if fails else (self._world.clock.monotonic() - began) * 1000
        seen = await self.look(_CONTROL, {"url": url}, probe="", deadline_s=CONTROL_S)
        if seen.denied:
            return None
        return -1.0 if cause_of(seen.result) in FAILURES else float(seen.result.get("latency_ms") or 0.0)

    async def escalated(self) -> None:
        """Wait for a person to decide on what was seen since the last call, where the profile says so.

        RunOver when nobody lets the run go on."""
        section = self._world.platform.escalation
        await self._weighed()
        if self._warns:  # while the run goes on
            self._warns = False
            await self.sightings.keep(self._world, self._run)
        if (why := self.contacts.locked_out) and not self._locked_out:
            self._locked_out = True
            self.sightings.grave.append(("lock-out", self._world.platform.name, why))
        grave, self.sightings.grave = self.sightings.grave, []
        for trigger, place, what in sorted(grave, key=lambda one: one[0] not in section.stops):
            if trigger in section.pauses and trigger not in section.stops:
                self._person.go_on(await self._person.ask(trigger, place, f"{place}: {what}"))
            if trigger == "drift":  # told, confirmed, or to be confirmed by who lifts STOP
                self._world.names.accept(place.partition(" ")[0])
            if trigger in section.stops:
                self._person.stop(f"{trigger}: {place}: {what}")

    def _action(self, tool: str, args: Mapping[str, Any]) -> Action:
        spec = TOOLS.get(tool)
        effect = (spec.effect_of(args) if spec else None) or Effect.REPORT
        return Action(run=self._run, persona=self._context.persona, tool=tool, effect=effect, args=args)

    async def check_ours(self) -> None:
        """RunOver when a peer has taken this run over."""
        if not await self._world.source.mine(self._run):
            raise RunOver("crashed", "a peer presumed this process dead and settles this run")

    async def judge(self, tool: str, args: Mapping[str, Any], how: CallPurpose) -> JudgedCall:
        """Number one call, judge it and charge it."""
        self.calls += 1
        number, spec = self.calls, TOOLS.get(tool)
        if not how.looks_s and (why := self._world.health.halted(self.contacts.of(tool, args))):
            verdict = Verdict(permit=False, rule="health", reason=why)
        elif why := self.sightings.wall(tool, args):
            verdict = Verdict(permit=False, rule="challenge", reason=why)
        elif how.trusts_outages and not self.breaker.permits(tool, args):
            again = f"{STRIKES} times in a row: the next call is in {WITHDRAWN_TARGET.first_s:g} s"
            why = f"{target_of(tool, args)} failed {again}"
            verdict = Verdict(permit=False, rule="withdrawn", reason=why)
        elif why := self.changes.why_not(tool, args, how.probe, proof=not how.trusts_outages):
            verdict = Verdict(permit=False, rule=RULE, reason=why)
        elif spec is not None and (bad := bad_args(spec, args)) is not None:
            verdict = await self._gate.malformed(tool, bad)
        else:
            verdict = await self._gate.decide(self._action(tool, args), looks=how.looks_s > 0)
        return JudgedCall(number, tool, args, how, verdict)

    async def admit(self, judged: JudgedCall) -> AdmittedCall | Answer:
        """Record the request of a call that was judged; the answer to one that is refused."""
        number, tool, args, how, verdict = judged
        spec = TOOLS.get(tool)
        if not verdict.permit or spec is None:
            return self._denied(number, tool, verdict, args, how.call_id)
        shown = self._world.redactor.fields(args)
        risk = self._risked(judged, spec)
        self._assess(judged, spec)
        self._stream.emit(
            ToolRequested(
                call=number,
                call_id=how.call_id,
                probe=how.probe,
                tool=tool,
                args=shown,
                why=line(self._world.redactor.text(how.why), LED),
                impact=verdict.level + risk,
            )
        )
        await self.wallet.ready(tool, args)
        if _changes_a_page(tool, args) and args.get("method") != "DELETE":
            await self._intend_page(number, tool, args)
        return AdmittedCall(number, tool, spec, args, how, self._world.clock.monotonic())

    def _risked(self, judged: JudgedCall, spec: ToolSpec) -> str:
        """Count a call that is made into the platform's cumulative risk; the points with it, in words."""
        section, world = self._world.platform.escalation, self._world
        if not (section.risk or section.risk_stops):
            return ""
        level, place = (
            cast(Level, judged.verdict.level.partition(" ")[0]),
            target_of(judged.tool, judged.args),
        )
        host = world.platform.care.at(str(judged.args.get(spec.page, ""))) if spec.page else HostSection()
        at = world.clock.now().timestamp()
        points = world.risk.add(level, host.criticality, f"{judged.tool} {place}", at)
        return f", risk {points:.1f}"

    def _assess(self, judged: JudgedCall, spec: ToolSpec) -> None:
        """Record what a call of medium impact or more risks, before it is made, where the scope is signed."""
        world, args = self._world, judged.args
        effect = spec.effect_of(args) or spec.effect
        found = technique_of(judged.tool, effect, args)
        if not world.config.authority.signers or found is None:
            return
        at = world.platform.care.at(str(args.get(spec.page, ""))).criticality if spec.page else "unknown"
        found = found.at(at, effect)
        if found.level not in ASSESSED:
            return
        made = assess(found, at, effect)
        self._stream.emit(
            RiskAssessed(
                call=judged.number,
                technique=str(found.name),
                method=METHOD,
                dimensions={name: tuple(one) for name, one in made._asdict().items()},
                overall=made.overall,
                most=world.platform.limits.risk_most,
            )
        )

    async def _weighed(self) -> None:
        """Wait for a person, or set STOP, where too much risk came together."""
        world, section = self._world, self._world.platform.escalation
        if not (section.risk or section.risk_stops):
            return
        at = world.clock.now().timestamp()
        points = world.risk.now(at)
        if at - world.risk.saved >= SAVES_S:
            await world.journal.put(RISK + world.platform.name, f"{points:.3f} {at:.3f}")
            world.risk.saved = at
        what = f"cumulative risk of {points:.0f} points"
        if section.risk_stops and points >= section.risk_stops:
            self._person.stop(f"risk: {world.platform.name}: {what}, of {section.risk_stops:g} at most")
        if section.risk and points >= section.risk:
            place = f"{world.platform.name} from {world.risk.since:.0f}"
            self._person.go_on(await self._person.ask("risk", place, f"{what}, of {section.risk:g} at most"))
            world.risk.reset(world.clock.now().timestamp())

    async def _intend_page(self, number: int, tool: str, args: Mapping[str, Any]) -> None:
        """Note an act that may leave something on a page; settling finds out what became of it."""
        url = self._world.redactor.text(str(args["url"]).partition("?")[0])
        method = str(args.get("method", "POST"))
        sends = f"{args.get('body_type', '')} {args.get('headers', '')}".lower()
        what = "accounts" if tool != _CONTROL else "upload" if "multipart" in sends else "post"
        data = {"call": number, "tool": tool, "method": method, "url": url, "what": what}
        await self._world.journal.intend(self._run, "page", f"{method} {url}", data)

    def known(self, asked: AdmittedCall) -> dict[str, Any] | None:
        """The immediate answer to a call whose target is known to be down."""
        if asked.spec.effect is Effect.REPORT or not asked.how.trusts_outages:
            return None
        if not (outage := self.contacts.why_not(asked.tool, asked.args)):
            return None
        return {"ok": False, "latency_ms": 0.0, "error": outage, "error_class": "unreachable", "hint": ""}

    async def _result(self, asked: AdmittedCall) -> dict[str, Any]:
        spec = asked.spec
        if spec.effect is Effect.REPORT:
            return await self._post_free_entry(asked.args["text"])
        guest_s = asked.how.looks_s or spec.wall_s or GUEST_S
        measures = JailMeasures()
        outcome = await self._jail(spec)(
            request_line(spec, asked.args, await self._guest_context(spec, guest_s)),
            deadline_s=guest_s + MARGIN_S,
            # tools that only compute run hostile input beside the guest: no egress
            egress=None
            if spec.effect is Effect.COMPUTE
            else self._egress(Calls(asked.number, asked.number), spec, [asked.args], measures),
        )
        self._measured(asked.number, asked.number, measures, outcome)
        return attached(spec, answer(spec, outcome), self._world.folder(self._run) / "evidence")

    def _jail(self, spec: ToolSpec) -> Callable[..., Awaitable[Outcome]]:
        jail = self._world.jail.call
        return partial(jail, resources=spec.resources) if spec.resources else jail

    async def in_one_jail(
        self,
        spec: ToolSpec,
        calls: Sequence[tuple[int, Mapping[str, Any]]],
        numbers: Calls,
        starts_s: float,
    ) -> tuple[dict[int, dict[str, Any]], bool]:
        """The results of admitted calls, by place in the batch, and whether the guest ended as it should."""
        guest_s = spec.wall_s or GUEST_S
        measures = JailMeasures()
        outcome = await self._jail(spec)(
            batch_line(spec, calls, await self._guest_context(spec, guest_s), starts_s),
            deadline_s=starts_s + guest_s + MARGIN_S,
            egress=self._egress(numbers, spec, [args for _, args in calls], measures),
        )
        self._measured(*numbers, measures, outcome)
        return answers(spec, outcome)

    async def _guest_context(self, spec: ToolSpec, guest_s: float) -> Context:
        lacks = (await self.capabilities()).lacks
        context = self._world.context(self._run, self.wallet.addresses(), guest_s, lacks)
        known = self._world.accounts if spec.signs_in else {}
        return replace(context, accounts={at: dict(one) for at, one in known.items()})

    def _measured(self, first: int, last: int, measures: JailMeasures, outcome: Outcome) -> None:
        if (event := measures.event(first, last, outcome)) is not None:
            self._stream.emit(event)

    def _egress(
        self, numbers: Calls, spec: ToolSpec, calls: Sequence[Mapping[str, Any]], measures: JailMeasures
    ) -> Egress:
        found = (technique_of(spec.name, spec.effect_of(args) or spec.effect, args) for args in calls)
        worst = max((LEVELS.index(one.level) for one in found if one), default=0)
        record = CallEgress(self.egress, numbers, LEVELS[worst])

        def noted(one: EgressRecord) -> None:
            measures.records.append(one)
            self._noted(one)

        return self._world.egress(self.wallet, len(calls), noted, record)

    def _noted(self, record: EgressRecord) -> None:
        self.requests += 1
        self._failing(record)
        before = self._shares.get(record.host, 1.0)
        if not record.rule and (record.share < before or record.share >= min(1.0, 2 * before) > before):
            self._shares[record.host] = record.share
            self._stream.emit(
                PaceChanged(
                    host=self._world.redactor.text(record.host),
                    before=before,
                    after=record.share,
                    status=record.status,
                    ms=record.ms,
                )
            )
        count_request(self.hosts, record)
        self.sightings.requested(record)
        if record.pause:
            self._resumes = max(self._resumes, self._world.clock.monotonic() + record.pause)
        longest = self._world.platform.web.degraded_s
        if record.strained_s >= longest / 2:
            what = (
                f"strained for {record.strained_s:.0f} s although it is asked less, of {longest:g} s at most"
            )
            self._warns = self.sightings.note("strain", record.host, what) or self._warns
        if record.strained_s >= longest:
            self._degraded = (
                f"{record.host} has answered 503 or slowly for {record.strained_s:.0f} s, although it was"
                f" asked less (web.degraded_s = {longest:g})"
            )
            self.sightings.grave.append(("strain", record.host, self._degraded))

    def _failing(self, record: EgressRecord) -> None:
        """End the run where too many of a host's requests fail for too long."""
        limits = self._world.platform.limits
        if is_refused(record.rule):
            return
        now, fails = self._world.clock.monotonic(), failed(record)
        share, lasts = self._errors.take(record.host, now, fails=fails, share=limits.error_share)
        said = f"{share:.0%} of its requests failed for {lasts:.0f} s, of {limits.error_s:g} s at most"
        if lasts >= 0.75 * limits.error_s:
            self._warns = self.sightings.note("strain", f"{record.host} fails", said) or self._warns
        if lasts >= limits.error_s and not self._degraded:
            self._degraded = f"{record.host}: {said} (limits.error_share = {limits.error_share:g})"
            self.sightings.grave.append(("strain", record.host, self._degraded))

    async def _post_free_entry(self, text: str) -> dict[str, Any]:
        """`qa_report`, the one tool that the trusted side executes itself: post one free entry under the
        fleet's identity: mask, cut, sign, read back.

        Refuses text in the form of a finding: the outbox posts findings after their proof.
        """
        world, result = self._world, Result(ok=False, error_class="bad_request", error="/args/text: empty")
        started = world.clock.monotonic()
        shown = cut_bytes(world.redactor.public(clean(text, newlines=True)).strip(), envelope.MAX_BYTES)
        if envelope.read(shown).grammar != "free":
            result = replace(result, error="/args/text: findings are posted automatically after their proof")
        elif shown:
            try:
                posted = await world.chain.log.post(shown, run=self._run, charge="reports")
                result = Result(ok=True, tx=posted.tx, index=posted.index, read_back=True)
            except FleetError as error:
                word = next(word for kind, word in _NOT_POSTED if isinstance(error, kind))
                result = replace(result, error_class=word, error=clean(str(error), 500))
        return asdict(replace(result, latency_ms=(world.clock.monotonic() - started) * 1000))

    def respond(self, asked: AdmittedCall, result: dict[str, Any], seconds: float) -> None:
        """Record what a call answered, and what was heard meanwhile: a jail cannot say that itself."""
        if "heard" in result:
            result["heard"] = self._world.listener.heard(asked.args, asked.started)
        kept = result
        if self._world.config.keep.sealed_for and (kind := confidential(asked.args, result)):
            kept = {**result, "text": mask(CONFIDENTIAL)}
            place = target_of(asked.tool, asked.args)
            self._unsealed.append((asked, place, kind, str(result["text"])))
        masked = self._world.redactor.answer(asked.tool, kept)
        self._stream.emit(
            ToolResponded(
                call=asked.number,
                call_id=asked.how.call_id,
                tool=asked.tool,
                is_error=not result["ok"],
                result=masked,
                seconds=round(seconds, 4),
            )
        )
        if self.sightings.shown(asked.tool, asked.args, result, masked):
            self._take_out(asked, result)
        if (seen := self.sightings.answered(asked.number, asked.tool, asked.args, result)) is not None:
            self._stream.emit(seen)

    def _take_out(self, asked: AdmittedCall, result: Mapping[str, Any]) -> None:
        """Take what is to be sealed out of an answer, and keep no picture of it."""
        world, place = self._world, target_of(asked.tool, asked.args)
        if asked.spec.attaches and (picture := str(result.get("sha256", ""))).isalnum():
            (world.folder(self._run) / "evidence" / f"{picture}.png").unlink(missing_ok=True)
        for kind, value in world.redactor.secrets("\n".join(texts_of(result, 8))):
            if (place, value) not in self._sealed and len(self._sealed) < MOST_SEALED:
                self._sealed.add((place, value))
                self._unsealed.append((asked, place, kind, value))

    async def seal(self) -> None:
        """Seal what was taken out, before anything else is done, STOP or not: it is masked everywhere else.
        In a thread, for it is slow by purpose: two seconds at most."""
        world = self._world
        with anyio.CancelScope(shield=True):
            async with self._sealing:  # looks at several targets come back at once
                while self._unsealed:
                    asked, place, kind, value = self._unsealed.pop(0)
                    keep = partial(world.vault.keep, world.platform.name, self._run, place, kind, value)
                    if name := await to_thread.run_sync(keep):
                        sealed = CredentialSealed(
                            call=asked.number, tool=asked.tool, place=place, kind=kind, vault=name
                        )
                        self._stream.emit(sealed)

    def check_spent(self) -> None:
        """RunOver when a budget refused a signature of the last call, or STOP did; FleetError when what it
        asked cannot be recorded."""
        spent, self.wallet.spent = self.wallet.spent, ""
        stopped, self.wallet.stopped = self.wallet.stopped, ""
        if stopped:
            raise RunOver("stopped", stopped)
        if self._degraded and "strain" not in self._world.platform.escalation.pauses:
            raise RunOver("target_degraded", self._degraded)
        if spent:
            raise RunOver("budget_exceeded", spent)
        if (fault := self.egress.fault) is not None:
            raise RunOver("stopped", str(fault)) if is_stopped(self._world.state) else fault

    def count(self, asked: AdmittedCall, result: dict[str, Any]) -> Answer:
        """Count what an answer says of its target; one too many failures withdraw it."""
        tool, args, spec = asked.tool, asked.args, asked.spec
        if status := result.get("status"):
            self.answered += 1
            self.limited += status == TOO_MANY
            if status in NO_EFFECT and spec.acts_at and spec.effect_of(args) is Effect.ACT:
                self._context.ledger.write_refused()
        self.confidence.add(target_of(tool, args), cause_of(result), self.time.monotonic())
        if not asked.how.looks_s:
            self.contacts.count(tool, args, result)
            if spec.effect_of(args) is Effect.ACT:
                self.changes.acted()
            if self.changes.observe(tool, args, result, asked.how.probe):
                self._notebook.write(CHANGES, self.changes.state())
            probes = asked.how.trusts_outages and self.breaker.gave_up(tool, args)
            self._record_withdrawn(self.breaker.count(tool, args, result), cause_of(result))
            if probes and cause_of(result) in FAILURES and (target := self.contacts.of(tool, args)):
                why = f"{target} failed again after it was left alone for a while ({cause_of(result)})"
                self._world.health.halt(target, why)
                self._warns |= self.sightings.note("strain", f"{target}, left alone", why, "strain")
        if spec.needs_key:  # what is left of the credit of the identity that called
            label = spec.lends.get(str(args.get("caller")), spec.needs_key)
            if result.get("error_class") == "unfunded":
                self.wallet.wear(label)
            charged, credit = result.get("charged", 0), str(result.get("credit", ""))
            if label == spec.needs_key and isinstance(charged, int) and charged > 0 and credit.isdigit():
                self.wallet.pays(int(credit), charged)
        return Answer(result)

    def _record_withdrawn(self, target: str, last: str) -> None:
        if target:
            reason = f"auto_disable: {STRIKES} consecutive failures, last: {last}"
            self._stream.emit(ExtensionDisabled(namespace=target, reason=reason, turn=self.turn))

    async def ask_control(self, tool: str, args: Mapping[str, Any]) -> None:
        """Ask the first page of a suspected host: the host is withdrawn only when that fails as well.

        A run that may not ask it cannot tell, and withdraws the host.
        """
        if not self.breaker.is_suspect(tool, args):
            return
        fails, cause = True, "a known outage"
        if not self.contacts.why_not(tool, args):
            url = first_page(tool, args)
            found = await self.look(_CONTROL, {"url": url}, probe="", deadline_s=CONTROL_S)
            cause = found.denied or cause_of(found.result)
            fails = bool(found.denied) or cause in FAILURES
        self._record_withdrawn(self.breaker.control(tool, args, answers=not fails), cause)

    async def counts(self) -> dict[str, int]:
        """What this run asked, for a comparison with earlier ones (fleet/runs/conduct.py)."""
        return {
            "calls": self.calls,
            "acts": (await self._world.journal.spent(self._run)).get("writes", 0),
            "refused": self.refusals,
            "unreached": sum(self.contacts.failed.values()),
            "requests": self.requests,
            "hosts": len(self.hosts),
        }

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

    async def pace(self) -> None:
        """Wait until the gate's rate permits one more call."""
        if pause := self._gate.pause():
            await anyio.sleep(pause)

    def held(self) -> float:
        """Seconds until the pause is over that the platform asked for; 0 without one."""
        return max(0.0, self._resumes - self._world.clock.monotonic())

    async def resumed(self) -> None:
        """Wait until a pause is over that the platform asked for, if the run's time reaches that far."""
        if 0 < (pause := self.held()) < self._gate.time_left():
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
        self.refusals += 1
        self.sightings.refused(rule, target_of(tool, args), reason)
        if verdict.ends_run:
            raise RunOver(_OVER.get(rule, "refused"), reason)
        return Answer({}, denied=rule or "unknown", reason=reason)


def _changes_a_page(tool: str, args: Mapping[str, Any]) -> bool:
    """Whether a call may have changed what no effect of the journal records: it is never repeated."""
    spec = TOOLS.get(tool)
    return spec is not None and bool(spec.acts_at) and spec.effect_of(args) is Effect.ACT


def _lost(error: JailError) -> dict[str, Any]:
    return {"ok": False, "error_class": "internal", "error": str(error)}
