"""A run's look at its platform's targets; an outage becomes a separate finding.

It looks when a persona asks for it, when an outage is open, when the health check fails, and when calls of
the run could not reach a target. HTTP looks go the same way as tools: through gate, jail and broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import anyio

from fleet.broker.control import own_listener, reach
from fleet.drivers.session import Answer, RunOver
from fleet.events.model import CheckFailed, FindingVerified, OutageEnded, OutageNoticed
from fleet.events.stream import Stream
from fleet.findings.envelope import compose, write
from fleet.findings.evidence import EvidenceStep
from fleet.findings.outage import (
    AGAIN,
    SURFACE,
    WORD,
    Outage,
    OutageBook,
    OutageEnd,
    OutageLook,
    fingerprint_of,
    shown,
)
from fleet.findings.proof import TRIES
from fleet.findings.repro import ReproCall, write_repro
from fleet.personas.load import LoadedPersona
from fleet.runs.call.session import RunSession
from fleet.runs.call.targets import NODE, Reach, Target, has_name, reach_of
from fleet.runs.context import FleetContext
from fleet.runs.outage.book import answered, book_of, noticed, settle
from fleet.runs.outage.decide import (
    Control,
    CouldNotTell,
    Down,
    How,
    Patience,
    TargetLook,
    Up,
    Verdict,
    decide,
    severity,
    title,
)
from fleet.runs.proof.grades import raised
from fleet.runs.proof.verify import keep_evidence
from fleet.store.rows import FindingRow
from fleet.text import line
from fleet.unanswered import BAD_GATEWAY, TIMED_OUT, WORDS
from sandbox.errors import GATEWAY

COULD_NOT_TELL = "could_not_tell"
"""Outcome of a run that could not tell whether the platform was down, or we were."""
FETCH = "qa_fetch"
EXPECTED = "every target of the platform answers"


@dataclass(slots=True)
class Watch:
    """Implements the drive's questions before, during and after driving. `doubt`: why it could not tell."""

    world: FleetContext
    run: str
    persona: LoadedPersona
    session: RunSession
    stream: Stream
    doubt: str = ""
    _looks: list[TargetLook] = field(default_factory=list)
    _controls: list[Control] = field(default_factory=list)

    @property
    def looked(self) -> bool:
        """Whether it has asked the platform's targets in this run."""
        return bool(self._looks)

    async def begin(self) -> None:
        """Before the work, once: RunOver when the run would be blind."""
        if self._looks:
            return
        if self.persona.persona.outages or (await self._book()).open:
            await self.look()
            self.verdict()

    async def after(self) -> None:
        """After the work: look at targets that were unreachable and not known to be down."""
        contacts = self.session.contacts
        if contacts.failed.keys() - contacts.down.keys():
            if contacts.locked_out:
                reason = self.world.redactor.text(line(contacts.locked_out, 400))
                self.stream.emit(CheckFailed(reason=f"its silence is not an outage: {reason}"))
                return
            await self.look()

    def verdict(self) -> None:
        """RunOver when it is unknown whether the platform was down."""
        if self.doubt:
            raise RunOver(COULD_NOT_TELL, self.doubt)

    async def look(self) -> Verdict:
        """Look at every target until it answers or has had enough looks; act on the verdict."""
        self._looks, self._controls = [], []
        began = self.world.clock.now()
        verdict = await self._looked()
        if isinstance(verdict, Down):
            await self._down(verdict, began + timedelta(seconds=verdict.since))
        elif isinstance(verdict, CouldNotTell):
            self.doubt = self.world.redactor.text(line(verdict.why, 400))
            self.stream.emit(CheckFailed(reason=f"could not tell: {self.doubt}"))
        if isinstance(verdict, Up):
            await self._up(verdict)
        return verdict

    # -- looking ---------------------------------------------------------------------------------------------

    async def _looked(self) -> Verdict:
        may, patience = FETCH in self.persona.persona.tools, Patience(self.world.platform.web.patience_s)
        targets = tuple(one for one in self.session.contacts.targets if may or not one.bases)
        hosts = {one.name: (reach_of(one.host), has_name(one.host)) for one in targets}
        clock, verdict = self.world.clock, decide((), (), hosts)
        started = clock.monotonic()
        async with AsyncExitStack() as stack:
            own = ""
            for turn, (pause, deadline) in enumerate(
                zip((0.0, *patience.pauses), patience.deadlines, strict=True)
            ):
                await anyio.sleep(pause)
                at = round(clock.monotonic() - started, 3)
                await _together([self._one(target, turn, at, deadline) for target in targets])
                verdict = decide(self._looks, self._controls, hosts, patience)
                if isinstance(verdict, Up):
                    return verdict
                if not own and any(one is Reach.LOOPBACK for one, _ in hosts.values()):
                    own = await stack.enter_async_context(own_listener())
                await self._ask_controls(turn, deadline, own)
        return decide(self._looks, self._controls, hosts, patience)

    async def _one(self, target: Target, turn: int, at: float, deadline_s: float) -> None:
        what = target.url(turn) if target.bases else "eth_chainId"
        if target.bases:
            answer = await self.session.look(FETCH, {"url": what}, probe=WORD, deadline_s=deadline_s)
            how, said = how_of(answer)
        else:
            word = await self.world.checks.node(deadline_s)
            how, said = _sorted(word) if word else ("answered", "")
        self._looks.append(TargetLook(target.name, turn, at, how, said, what))

    async def _ask_controls(self, turn: int, deadline_s: float, own: str) -> None:
        async def ask(name: str, url: str, far: Reach, named: bool) -> None:
            word = await reach(url, deadline_s)
            self._controls.append(Control(name, turn, far, named, not word, own=url == own))

        asked: list[Awaitable[None]] = []
        for url in self.world.platform.web.controls:
            host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
            host = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            asked.append(ask(f"the control {host}", url, reach_of(host), has_name(host)))
        if own:
            asked.append(ask("a listener of ours", own, Reach.LOOPBACK, False))
        await _together(asked)

    # -- acting ----------------------------------------------------------------------------------------------

    async def _book(self) -> OutageBook:
        return await book_of(self.world.journal, self.world.platform.name)

    async def _down(self, verdict: Down, since: datetime) -> None:
        platform, all_ = self.world.platform.name, [one.name for one in self.session.contacts.targets]
        persona = self.persona.persona.name
        looks = tuple(
            OutageLook(
                target=x.target, what=x.what, at=x.at, how="" if x.how == "answered" else x.said, said=x.how
            )
            for x in self._looks
        )

        def make(at: str) -> Outage:
            return Outage(
                fp=fingerprint_of(platform, verdict.targets, at),
                targets=verdict.targets,
                since=at,
                run=self.run,
                persona=persona,
                severity=severity(verdict.targets, all_),
                title=self.world.redactor.text(title(verdict, at)),
                held=NODE in verdict.targets,
                looks=looks,
            )

        before = (await self._book()).open
        unseen = set(all_) - {*verdict.targets, *verdict.answered}
        after, end = await settle(
            self.world.journal,
            platform,
            lambda book: noticed(book, verdict.targets, make, since, unseen=unseen),
        )
        if end is not None and before is not None:
            await self._owed(before, end)
            self._over(before, end)
        known = after.open
        assert known is not None
        self.session.contacts.down = dict.fromkeys(verdict.targets, known.title)
        # this run's own observation, under the outage's name
        mine = make(known.since).model_copy(update={"fp": known.fp})
        self.stream.emit(
            OutageNoticed(fingerprint=known.fp, targets=known.targets, since=known.since, title=mine.title)
        )
        await confirm(self.world, self.run, self.persona, self.stream, mine, self._repro(mine))

    async def _up(self, verdict: Up) -> None:
        self.session.contacts.down = {}
        before = (await self._book()).open
        if before is None:
            return
        all_ = [one.name for one in self.session.contacts.targets]
        now = self.world.clock.now()
        preview = answered(OutageBook(open=before), verdict.answered, all_, now)[1]
        if preview is not None:  # what the log is owed comes first: the next run completes it after a crash
            await self._owed(before, preview)
        _, end = await settle(
            self.world.journal,
            self.world.platform.name,
            lambda book: answered(book, verdict.answered, all_, now),
        )
        if end is not None:
            self._over(before, end)

    async def _owed(self, outage: Outage, end: OutageEnd) -> None:
        """An outage that could not be posted while it lasted, or whose run died, and was long enough."""
        if end.seconds < Patience(self.world.platform.web.patience_s).worth_s:
            return
        if not outage.held and await is_kept(self.world, outage.fp):
            return
        late = outage.model_copy(update={"held": False, "title": f"{outage.title}{AGAIN}{end.until}"})
        await confirm(self.world, self.run, self.persona, self.stream, late, self._repro(late))
        await repeat_held(self.world, self.run, outage.fp)

    def _over(self, outage: Outage, end: OutageEnd) -> None:
        if end.fp == outage.fp:
            self.stream.emit(OutageEnded(**{"fingerprint": end.fp, **end.model_dump(exclude={"fp"})}))

    def _repro(self, outage: Outage) -> tuple[Any, ...]:
        return tuple(
            call
            for one in self.session.contacts.targets
            if one.name in outage.targets
            for call in one.repro()
        )


def how_of(answer: Answer) -> tuple[How, str]:
    """The result of a look through a jail: the platform's answer, its silence, or our own trouble."""
    result: Mapping[str, Any] = answer.result
    kind, status = result.get("error_class", ""), result.get("status", 0)
    if answer.denied:
        return "ours", f"refused by {answer.denied}"
    if status in GATEWAY:
        return "silent", f"{BAD_GATEWAY} (HTTP {status})"
    if kind in ("", "http", "garbage", "too_large"):
        return "answered", ""
    if kind == "timeout":
        return "silent", TIMED_OUT
    if kind == "unreachable":
        return _sorted(str(result.get("error", "")))
    return "ours", line(f"{kind}: {result.get('error', '')}", 120)


def _sorted(words: str) -> tuple[How, str]:
    """Classified by the wording of broker and chain client; anything else is our own trouble."""
    for word in WORDS:
        if words.endswith(word):
            return "silent", word
    if words.endswith("closed without an answer"):
        return "silent", WORDS[1]
    return "ours", line(words, 120)


async def _together(tasks: list[Awaitable[None]]) -> None:
    """Run all concurrently; raise a RunOver of any of them when all have ended."""
    over: list[RunOver] = []

    async def guarded(task: Awaitable[None]) -> None:
        try:
            await task
        except RunOver as error:
            over.append(error)

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(guarded, task)
    if over:
        raise over[0]


async def confirm(
    world: FleetContext,
    run: str,
    persona: LoadedPersona,
    stream: Stream,
    outage: Outage,
    repro: Sequence[ReproCall],
) -> None:
    """Add the outage to the run's findings as confirmed; the outbox posts it once, by fingerprint."""
    row = FindingRow(
        run_id=run,
        fingerprint=outage.fp,
        state="confirmed",
        probe=WORD,
        persona=persona.persona.name,
        surface=SURFACE,
        severity=outage.severity,
        title=shown(outage.title),
        repro=write_repro(repro) if repro else "",
        confirmed=TRIES,
        tries=TRIES,
        data={
            "persona_sha256": persona.sha256,
            "outage": {"since": outage.since, "targets": list(outage.targets)},
            "held": outage.held,
        },
    )
    steps = tuple(
        EvidenceStep(
            tool="qa_fetch" if look.what.startswith("http") else "node",
            args={"url": look.what} if look.what.startswith("http") else {"method": look.what},
            result={"target": look.target, "at_s": look.at, "how": look.said, "error": look.how},
        )
        for look in outage.looks
    )
    sha256 = keep_evidence(world, row, persona, expectation=EXPECTED, steps=steps, rate=(TRIES, TRIES))
    envelope = compose(
        world.redactor,
        source=row.persona,
        sev=row.severity,
        surface=SURFACE,
        run=run,
        fp=row.fingerprint,
        rate=(TRIES, TRIES),
        ev=sha256,
        title=outage.title,
        repro=repro,
    )
    if await world.journal.add_finding(replace(row, evidence=sha256, envelope=write(envelope))):
        stream.emit(raised(replace(row, probe=WORD)))
        stream.emit(
            FindingVerified(
                fingerprint=row.fingerprint,
                confirmed=TRIES,
                tries=TRIES,
                state="confirmed",
                evidence_hashes=(sha256,),
            )
        )


async def is_kept(world: FleetContext, fingerprint: str) -> bool:
    """Whether a run has it among its findings, so that its outbox posts it."""
    return any(row.fingerprint == fingerprint for row in await world.journal.findings())


async def repeat_held(world: FleetContext, run: str, fingerprint: str) -> None:
    """Other runs saw it while it could not be posted: it becomes one entry, of this run."""
    for row in await world.journal.findings(None, ["confirmed"]):
        if row.fingerprint == fingerprint and row.run_id != run and row.data.get("held"):
            await world.journal.set_finding(row.run_id, fingerprint, state="repeated")
