"""Looks at probes, claims and answers, and proves what they show."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from fleet.clock import iso
from fleet.drivers.expect import ExpectationError, Values, number
from fleet.drivers.session import Answer, RunOver, Session
from fleet.drivers.template import Bindings, wants_name
from fleet.events.model import ProbeSkipped
from fleet.events.stream import Stream
from fleet.files import write_atomic
from fleet.findings.fingerprint import graver
from fleet.findings.instances import noted
from fleet.findings.kinds import beyond_rights
from fleet.findings.proof import MOST_LOOKS, TRIES
from fleet.findings.repro import ReproCall, write_repro
from fleet.findings.sighting import titled
from fleet.gate.budget import Budget
from fleet.oracles.measures import latency_of, measured, samples
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.place import met_at
from fleet.oracles.statistics import charts, ranks
from fleet.oracles.web.quotations import ShownWords
from fleet.oracles.web.timing import unsettled
from fleet.personas.learned import Learned
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Probe, Step
from fleet.runs.call.batch import QuestionRound
from fleet.runs.call.choices import SILENT, judging, proving
from fleet.runs.call.confidence import asked_before, reproduced
from fleet.runs.call.session import ACCOUNT, RunSession
from fleet.runs.context import FleetContext
from fleet.runs.proof.attempt import UNJUDGED, Attempt, attempt
from fleet.runs.proof.candidates import NEW, Candidate, answered, candidates, covering, showing
from fleet.runs.proof.claims import kept
from fleet.runs.proof.grades import needs_review, raised
from fleet.runs.proof.item_figures import PROVEN, count_shown
from fleet.runs.proof.minimise import FEW, MOST, minimise, retold
from fleet.runs.proof.quoted import quoted_on_request
from fleet.runs.proof.retest_order import FIXED, UNPROVEN, VERIFIED
from fleet.runs.proof.verify import (
    JAIL_LOST,
    OF_ONE_PROOF,
    Proof,
    gravest_first,
    judge,
    prove_all,
    prove_round,
)
from fleet.severity import GRAVE, weight
from fleet.store.rows import FindingRow, SampleRow
from sandbox.tools import TOOLS

_LOG = logging.getLogger("fleet.plots")
Prove = Callable[
    [FleetContext, Session, Stream, Sequence[Proof], LoadedPersona, Facts], Awaitable[list[RunOver]]
]
NAMES = 8
"""Fingerprints of version 2 that a finding keeps at most."""
LESSER_WAITS = timedelta(seconds=60)
"""How long what is not grave, or is only confirmed again, waits at most for its proof while a run goes on: a
proof pauses between its tries, so several are proven together, and something graver may cover it."""
LESSER_SHARE = 0.05
"""And the share of the run's time that this is at most: in a look of minutes a person waits for the first."""


def draw(
    folder: Path,
    found: Sequence[Candidate],
    exchanges: Sequence[Exchange],
    past: Mapping[str, Sequence[SampleRow]],
) -> None:
    """The page against its control, and over time if there is a history, for each finding of latency."""
    try:
        pair, last = samples(exchanges[-1]), exchanges[-1]
        for one in found:
            if pair is None or one.surface != "perf":
                continue
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            title = one.sighting.title
            looks = past.get(latency_of(last.args), ())
            before = [look.own for look in looks]
            _write(folder / f"{one.fingerprint}.svg", charts.distribution(title, *pair, before))
            if looks:
                course = [*(statistics.median(look.own) for look in looks), statistics.median(pair[0])]
                _write(folder / f"{one.fingerprint}-history.svg", charts.course(title, course))
    except Exception as error:  # whatever a chart library raises
        _LOG.warning("%s: not drawn: %s", folder, error)


def _write(path: Path, picture: bytes) -> None:
    write_atomic(path, picture, sync_name=False)


async def at_the_end() -> None:
    """For a run that posts when it is settled."""


@dataclass(frozen=True, slots=True)
class ProbeRunner:
    """One persona against one platform, in one run; RunOver and journal errors pass through."""

    world: FleetContext
    run: str
    persona: LoadedPersona
    stream: Stream
    session: RunSession
    past: Mapping[str, Sequence[SampleRow]] = field(default_factory=dict)
    """What earlier runs measured, by measure."""
    post: Callable[[], Awaitable[None]] = at_the_end
    """Posts what is confirmed by now, while the run goes on."""
    begun: list[Proof] = field(default_factory=list)
    """Proofs between two tries."""

    @property
    def facts(self) -> Facts:
        """What the oracles know of the platform."""
        return Facts.of(self.world.platform, self.session.history(), self.past)

    def filled(self, steps: Iterable[Step]) -> list[tuple[str, Mapping[str, Any]]]:
        """Calls with their placeholders resolved, for what asks nothing by them."""
        bindings = self.world.bindings(self.run, "")
        return [(step.tool, bindings.resolve(step.args)) for step in steps]

    async def look(self, probe: Probe) -> Attempt:
        """Run one probe of the persona once, and record what its answers show."""
        seen = await attempt(self.session, probe)
        exchanges = tuple(
            Exchange(call["tool"], call["args"], result)
            for call, result in zip(seen.asked, seen.results, strict=True)
        )
        await _ready(exchanges)
        if seen.state in UNJUDGED:
            self.skip(probe.id, seen.reason)
        elif seen.state == "healthy":
            await self._note(probe, seen)
        found = candidates(probe, seen, self.persona.persona.surface, self.facts)
        for one in found:
            await self._raise(one)
        if not found and seen.state == "healthy":
            await self._keep(row for one in exchanges for row in measured(one))
        self._draw(found, exchanges)
        return seen

    async def look_at_claim(self, probe: Probe) -> tuple[Attempt, bool]:
        """Run a claim once; raise what it shows, to be proven like any finding. True: a person reviews it.

        An oracle's verdict on its answers is raised in the oracle's words and needs no review.
        """
        seen = await attempt(self.session, probe)
        review = False
        surface = self.persona.persona.surface
        for one in candidates(probe, seen, surface, self.facts, trusted=False):
            claim = {"title": probe.finding, "severity": probe.severity, "expect": probe.expect}
            waits = one.forgeable or not one.oracle
            await self._raise(one, claim | {"review": True} if waits else None)
            review |= waits
        return seen, review

    async def look_at_answers(
        self,
        steps: tuple[Step, ...],
        results: Sequence[Mapping[str, Any]],
        *,
        trusted: bool = False,
        minimal: bool = False,
    ) -> None:
        """Judge the answers to a question of a driver; earlier steps without a result led to it.

        `trusted`: the driver is an explorer of ours, which does not lie. `minimal`: its
        texts are small already.
        """
        asked = steps[len(steps) - len(results) :]
        exchanges = tuple(
            Exchange(step.tool, step.args, result) for step, result in zip(asked, results, strict=True)
        )
        await _ready(exchanges)
        found = answered(steps, results, self.facts)
        for one in found:
            waits = one.forgeable and not trusted
            claim = {"title": one.sighting.title, "review": True} if waits else None
            await self._raise(one, claim, minimal=minimal)
        if trusted and not found:
            settled = [one for one in exchanges if samples(one) and not unsettled(one)]
            await self._keep(row for one in settled for row in measured(one))
        self._draw(found, exchanges)

    async def prove_seen(self) -> None:
        """Try once what was seen so far and is due, while the run goes on: between two tries it asks on.

        What is grave and not on the list is begun at once, the rest when it has waited for `LESSER_WAITS`, or
        that share of a short run.
        What the budget refused, what could not be told, what a graver one may cover, and what a person
        reviews before it is posted, waits for the end of the run. RunOver as below.
        """
        raised = {one.fingerprint: one for one in await self.world.journal.findings(self.run, ["raised"])}
        begun = self._resumed(raised)
        rows = [one for one in raised.values() if not one.data.get("why") and not needs_review(one)]
        rows = [one for one in rows if one.fingerprint not in begun]
        share = timedelta(seconds=LESSER_SHARE * Budget.of(self.persona.persona.budget).wall_s)
        late = iso(self.world.clock.now() - min(LESSER_WAITS, share))
        if rows and not any(row.at <= late for row in rows):
            items = await self.world.journal.items(self.world.platform.name)
            listed = [one for one in items if one.trusted and one.state not in (FIXED, VERIFIED, *UNPROVEN)]
            known = {name for one in listed for name in (one.fingerprint, *one.names)}
            rows = [row for row in rows if row.severity in GRAVE and known.isdisjoint(row.names)]
        seen = [*rows, *(one.row for one in begun.values())]
        rows = [row for row in rows if not covering(row, seen)]
        self.begun[:] = [*begun.values(), *await self._opened(await self._proofs(rows, again=True))]
        ends: list[RunOver] = []
        while due := [one for one in self.begun if one.is_open and not one.due_s(self.world)]:
            ends += await self._round(prove_round, due)
        _unless_lost(ends)

    def _resumed(self, raised: Mapping[str, FindingRow]) -> dict[str, Proof]:
        """The proofs that are begun, by fingerprint; not one whose finding was decided in another way, or
        which another sighting leads since."""
        found = {}
        for one in self.begun:
            row = raised.get(one.row.fingerprint)
            if one.is_open and row is not None and row.data.get("probe") == one.row.data.get("probe"):
                one.row = row
                found[row.fingerprint] = one
        return found

    async def prove_raised(self) -> None:
        """Prove and post all that was raised, the gravest first: it waits for no try of the rest.

        What a graver one may cover comes last. RunOver `jail_lost`, when all were tried, for a candidate that
        kills its jails.
        """
        raised = await self.world.journal.findings(self.run, ["raised"])
        begun = self._resumed({one.fingerprint: one for one in raised})
        new = await self._proofs([one for one in raised if one.fingerprint not in begun], again=False)
        proofs = [*begun.values(), *new]
        self.begun.clear()
        rows = [one.row for one in proofs]
        last = [one for one in new if covering(one.row, rows)]
        first = [one for one in proofs if one not in last]
        groups = [[one for one in first if one.row.severity == grave] for grave in GRAVE]
        groups += [[one for one in first if one.row.severity not in GRAVE], last]
        ends: list[RunOver] = []
        for group in filter(None, groups):
            open_ = await self._opened([one for one in group if not one.seen])
            for one in group:
                one.again = False
            ends += await self._round(prove_all, [*(one for one in group if one.seen), *open_])
        _unless_lost(ends)

    async def _round(self, prove: Prove, proofs: Sequence[Proof]) -> list[RunOver]:
        """Try some proofs, and count and post what is decided."""
        asking, shown_by = self.session.phase, ", ".join(sorted(one.row.fingerprint for one in proofs))
        self.session.enter("exploitation", f"seen, to be reproduced: {shown_by}")
        if not await self._worth(proofs):
            self.session.enter(asking, "too few looks could tell: the next run proves it first")
            return []
        ends = await prove(self.world, self.session, self.stream, proofs, self.persona, self.facts)
        for one in proofs:
            if not one.is_open:
                seen, steps = judge(one.seen), one.probe.steps
                choice = judging(one.row, seen.confirmed, seen.tries, len(steps), one.why)
                factors = reproduced(seen.confirmed, seen.tries)
                self.session.decide(choice, self.filled(steps), "threshold crossing", factors)
        if all(one.is_open for one in proofs):
            self.session.enter(asking, "tried, and to be tried again later")
            return ends
        if not self.world.trial:
            for row in await self.world.journal.findings(self.run, ["confirmed"]):
                self._learn(row)
            await count_shown(self.world, self.run)
        self.session.enter("reporting", "what is decided is posted")
        await self.post()
        self.session.enter(asking, "what was decided is posted")
        proven, section = await self.world.journal.findings(self.run, PROVEN), self.world.platform.escalation
        grave = self.session.sightings.grave
        grave += [
            ("finding", row.fingerprint, row.title) for row in proven if section.stops_for(row.severity)
        ]
        grave += [("privilege", row.fingerprint, row.title) for row in proven if beyond_rights(row.title)]
        if section.combined([row.severity for row in proven]):
            titles = "; ".join(row.title for row in proven if not section.stops_for(row.severity))
            grave.append(("finding", f"findings of {self.run} together", titles))
        await self.session.escalated()
        return ends

    async def _worth(self, proofs: Sequence[Proof]) -> bool:
        """Record that candidates are reproduced now; those of which too few looks could tell stay raised."""
        rows = [one.row for one in gravest_first(proofs)]
        steps = [step for one in proofs for step in one.probe.steps]
        if not rows:
            return True
        looks = sum(len(one.seen) for one in proofs) / len(proofs)
        told = sum(len(one.seen) - one.seen.count("could_not") for one in proofs) / len(proofs)
        choice, factors = proving(rows, len(steps)), asked_before(looks, told)
        if self.session.decide(choice, self.filled(steps), "binary choice", factors):
            return True
        for one in proofs:
            one.give_up(SILENT)
            await self.world.journal.set_finding(
                one.row.run_id, one.row.fingerprint, data={**one.row.data, "why": one.why}
            )
        return False

    async def _proofs(self, rows: Iterable[FindingRow], *, again: bool) -> list[Proof]:
        """A proof of each; if its persona has changed, a candidate stays unverified. `again`: what cannot be
        told now is tried again later."""
        proofs = []
        for row in rows:
            probe = kept(row)
            if probe is not None and row.data.get("persona_sha256") == self.persona.sha256:
                proofs.append(Proof(row, probe, again=again))
            else:
                await self.world.journal.set_finding(self.run, row.fingerprint, state="unverified")
        return [one for one in proofs if not await self._quoted(one)]

    async def _opened(self, proofs: Sequence[Proof]) -> list[Proof]:
        """Those that nothing proven covers, with the smallest question that shows each."""
        proven = await self.world.journal.findings(self.run, PROVEN)  # an older one may be fixed by now
        open_ = [one for one in proofs if not await self._covered(one.row, proven)]
        await self._minimise(open_)
        return open_

    async def _quoted(self, proof: Proof) -> bool:
        """Whether the words that a finding rests on are only quoted; then it is dropped, with the reason."""
        if not (recorded := proof.row.data.get("words")):
            return False
        words, spare = ShownWords.model_validate(recorded), len(proof.probe.steps) * TRIES
        if not (why := await quoted_on_request(self.session, words, spare=spare)):
            return False
        data = {**proof.row.data, "quoted": why}
        await self.world.journal.set_finding(self.run, proof.row.fingerprint, state="dropped", data=data)
        self.skip(proof.probe.id, f"{proof.row.title}: {why}")
        return True

    async def _covered(self, row: FindingRow, proven: Sequence[FindingRow]) -> bool:
        """Whether a proven finding says more of the same place; then this one is dropped, with the reason."""
        if (more := covering(row, proven)) is None:
            return False
        data = {**row.data, "covered_by": more.title}
        await self.world.journal.set_finding(self.run, row.fingerprint, state="dropped", data=data)
        return True

    async def _minimise(self, proofs: Sequence[Proof]) -> None:
        """Cut each question of a driver, with what the budget leaves when every proof is paid; not a row of
        two accounts, of which each try would make two more: its oracle named what it needs."""
        needed = sum(len(one.probe.steps) * MOST_LOOKS for one in proofs)
        new = [
            one
            for one in gravest_first(proofs)
            if one.probe.id.startswith(NEW)
            and one.row.data.get("whole")
            and ACCOUNT not in TOOLS[one.probe.steps[-1].tool].judged_as
        ]
        for at, proof in enumerate(new):
            row, before = proof.row, proof.probe
            spare = (await self.session.calls_left() - needed) // (len(new) - at)
            most = FEW if row.data.get("minimal") else MOST
            try:
                found = await minimise(
                    before, partial(self._shows, row, before), most=min(most, spare // len(before.steps))
                )
            except RunOver as over:  # it is proven as it is, and the others are cut none the less
                if over.outcome not in OF_ONE_PROOF:
                    raise
                continue
            if found.probe is not before:
                seen = retold(str(row.data.get("seen", row.title)), before, found.probe)
                seen = self.world.redactor.showing(row.data.get("on_chain", ())).text(seen)
                title = titled(str(row.data.get("named", "")), seen)
                probe = found.probe.model_copy(update={"finding": title[:300].ljust(8, ".")})
                repro = write_repro(ReproCall(step.tool, dict(step.args)) for step in probe.steps)
                asked = probe.model_dump(mode="json")
                data = {**row.data, "probe": asked, "seen": seen, "minimised_from": row.repro}
                changed: dict[str, Any] = {"title": title, "repro": repro, "data": data}
                await self.world.journal.set_finding(self.run, row.fingerprint, **changed)
                proof.row, proof.probe = replace(row, **changed), probe

    async def _shows(self, row: FindingRow, before: Probe, probes: Sequence[Probe]) -> list[bool]:
        """Whether one execution of each question shows the same observation, except for what was cut."""
        if any(TOOLS[step.tool].needs_key for probe in probes for step in probe.steps):
            await self.session.fresh_callers()
        bound = [
            self.session.bindings(fresh_name=wants_name([one.args for one in probe.steps]))
            for probe in probes
        ]
        asked = [
            [(step.tool, names.resolve(dict(step.args))) for step in probe.steps]
            for probe, names in zip(probes, bound, strict=True)
        ]
        posed = await QuestionRound(self.session, asked)()
        # what an earlier run left may be in another version's words: then the signature is what counts
        seen = "" if row.data.get("left_by") else str(row.data.get("seen", row.title))
        return [
            self._is_titled(row, retold(seen, before, probe), probe, names, answers)
            for probe, names, answers in zip(probes, bound, posed, strict=True)
        ]

    def _is_titled(
        self, row: FindingRow, seen: str, probe: Probe, names: Bindings, answers: Sequence[Answer]
    ) -> bool:
        if len(answers) < len(probe.steps) or any(one.denied or one.lost for one in answers):
            return False
        asked = tuple({"tool": one.tool, "args": names.pointed(dict(one.args))} for one in probe.steps)
        results = tuple(one.result for one in answers)
        look = Attempt(state="healthy", asked=asked, results=results)
        shown = showing(row, probe, look, self.facts)
        mask = self.world.redactor.text
        return shown is not None and (not seen or mask(shown.sighting.title) == mask(seen))

    def _learn(self, row: FindingRow) -> None:
        """Remember the question that shows a confirmed finding, if no persona asks it."""
        probe = kept(row)
        if probe is None or not probe.id.startswith(NEW) or "claim" in row.data:
            return
        self.world.learned.keep(
            Learned(
                fingerprint=row.fingerprint,
                persona=row.persona,
                oracle=str(row.data.get("oracle", "")),
                title=row.title,
                run=self.run,
                at=iso(self.world.clock.now()),
                probe=probe.model_copy(update={"finding": row.title[:300].ljust(8, ".")}),
            ),
            row.names[1:],
        )

    def skip(self, probe: str, reason: str) -> None:
        """Record that a probe was skipped."""
        self.stream.emit(ProbeSkipped(probe=probe, reason=self.world.redactor.text(reason)))

    async def _raise(
        self, found: Candidate, claim: Mapping[str, Any] | None = None, *, minimal: bool = False
    ) -> None:
        world = self.world
        row = found.row(self.run, self.persona, claim, platform=world.platform.name, redactor=world.redactor)
        row = replace(row, data=row.data | {"minimal": True}) if minimal else row
        if not await world.journal.add_finding(row):
            await self._note_again(row)
        recorded = await self._recorded(row.fingerprint)
        times = recorded.times if recorded else 1
        self.stream.emit(raised(row, times))

    async def _note_again(self, row: FindingRow) -> None:
        """Keep where else the same is met, and what version 2 called it there; the graver sighting leads, and
        one that needs no person before one that does. Of what is proven already, a graver one is proven as a
        finding of its own, whose entry leads the item."""
        first = await self._recorded(row.fingerprint)
        if first is None:
            return
        if (
            first.state in PROVEN
            and "claim" not in row.data
            and weight(row.severity) > weight(first.severity)
        ):
            data = {**row.data, "known_as": row.names[:NAMES]}
            name = graver(row.fingerprint, row.severity)
            await self.world.journal.add_finding(replace(row, fingerprint=name, data=data))
        leads = first.state == "raised" and _lead(row) > _lead(first)
        lead, other = (row, first) if leads else (first, row)
        at, here, own = iso(self.world.clock.now()), _met_at(other), _met_at(lead)
        data = {**lead.data, "places": first.data.get("places", [])}
        data["known_as"] = [*dict.fromkeys((*lead.names[1:], *other.names[1:]))][:NAMES]
        if here and here != own:
            data["places"] = noted(first.data, self.world.redactor.text(here), at, own)
        changes: dict[str, Any] = {"data": data} if data != first.data else {}
        if leads:
            changes |= {name: getattr(row, name) for name in ("severity", "title", "repro")}
        if changes:
            await self.world.journal.set_finding(self.run, row.fingerprint, **changes)

    async def _recorded(self, fingerprint: str) -> FindingRow | None:
        rows = await self.world.journal.findings(self.run)
        return next((one for one in rows if one.fingerprint == fingerprint), None)

    async def _keep(self, rows: Iterable[SampleRow]) -> None:
        for row in () if self.world.trial else rows:
            await self.world.journal.keep_sample(self.world.platform.name, row)

    def _draw(self, found: Sequence[Candidate], exchanges: Sequence[Exchange]) -> None:
        if any(one.oracle for one in found) and any(map(samples, exchanges)):
            draw(self.world.folder(self.run) / "plots", found, exchanges, self.past)

    async def _note(self, probe: Probe, seen: Attempt) -> None:
        for metric, text in () if self.world.trial else probe.note.items():
            try:
                await self.world.journal.note(metric, number(text, Values(seen.results)))
            except ExpectationError as error:
                self.stream.emit(ProbeSkipped(probe=probe.id, reason=f"note {metric}: {error}"))


def _unless_lost(ends: Sequence[RunOver]) -> None:
    if lost := [one for one in ends if one.outcome == JAIL_LOST]:
        raise lost[-1]


def _met_at(row: FindingRow) -> str:
    probe = kept(row)
    return met_at(probe.steps[-1].tool, probe.steps[-1].args) if probe and probe.steps else ""


def _lead(row: FindingRow) -> tuple[bool, float]:
    return "claim" not in row.data, weight(row.severity)


async def _ready(exchanges: Iterable[Exchange]) -> None:
    """Load the libraries that judge samples in a thread: the first load takes a second."""
    if any(map(samples, exchanges)):
        await to_thread.run_sync(ranks.load)
