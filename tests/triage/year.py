"""A platform, its fleet and its people, simulated: the log is a list, what decides is the real thing.

Every 15 minutes a run of one of four personas looks at its places and runs items of its own again; every six
hours `qa-retest` runs all of them again within its calls; triage runs every two hours.
Places break and are repaired; some show their defect only in a part of the looks. There are outages, looks
without an answer, decisions of persons, floods of strangers, and state directories that are lost.

What is true of an item is kept apart (`Place.told`), in the few words of the contract, and compared after
every pass.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from fleet.chain.log.own_entries import OwnEntries
from fleet.chain.ports import FeedbackPort
from fleet.clock import iso
from fleet.findings.records import fixed_record, write_record
from fleet.findings.recurrence import Recurrence
from fleet.personas.model import Probe, Step
from fleet.runs.proof.item_questions import KnownItem, known_of
from fleet.runs.proof.rerun import SPARE, cost
from fleet.runs.proof.retest_order import own_order, whole_order
from fleet.store.rows import DecisionKind, DecisionRow, FindingRow, ItemRow, MirroredEntry
from fleet.triage.items.decisions import named, record_of
from fleet.triage.items.fold import Decided, TriageFold
from fleet.triage.items.life import OPEN
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.run import item_row
from tests.triage.triage_log import FLEET, START, TRUSTED
from tests.triage.year_places import PERSONAS, ListedLog, Place

PLACES = 200
BREAKS = 0.03
"""Share of the healthy places that breaks in a day."""
STEP = timedelta(minutes=15)
PAUSE = timedelta(minutes=1)
"""Between the runs of a step, and to a person's decision: which of them is first must be plain."""
PASS = timedelta(hours=2)
"""Between two passes of triage: longer than in a fleet, so that a year can be simulated."""
RETEST = timedelta(hours=6)
CALLS = 150
"""Calls of a run of qa-retest: fewer than it has, so that they bind."""
LATEST = RETEST + PASS + 2 * STEP
"""The longest way from a repair to the list: a run of qa-retest, and the next pass."""


class Year:
    """One fleet on one platform; `figures`, `rows`, `decisions`, `items` and `fold` are what it may lose."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = datetime.fromtimestamp(START, UTC)
        self.places = [Place(n, self._rate()) for n in range(PLACES)]
        self.by_name = {place.name: place for place in self.places}
        self.log, self.steps, self.happened = ListedLog(), 0, Counter[str]()
        self.outage_until, self.decided = self.now, Decided(())
        self.forget()

    def _rate(self) -> float:
        return self.random.uniform(0.4, 0.9) if self.random.random() < 0.1 else 1.0

    def forget(self) -> None:
        """The state directory is lost: what the log does not hold is forgotten."""
        self.fold, self.own = TriageFold(TRUSTED), OwnEntries(TRUSTED)
        self.figures: dict[str, Recurrence] = {}
        self.rows: dict[str, FindingRow] = {}
        self.decisions: list[DecisionRow] = []
        self.items: list[ItemRow] = []
        for place in self.places:
            place.told = [one for one in place.told if one[2]]
            place.disturbed = iso(self.now)
            place.hold = (place.logged_hold, True) if place.logged_hold else None
        self.happened["state lost"] += 1

    def post(self, text: str, sender: str = FLEET) -> None:
        at = int(self.now.timestamp())
        entry = MirroredEntry(epoch=0, index=len(self.log.entries), sender=sender, timestamp=at, text=text)
        self.log.entries.append(entry)

    async def step(self) -> None:
        """A quarter of an hour."""
        self.now += STEP - 2 * PAUSE
        self.steps += 1
        self._weather()
        run = f"r{self.steps}"
        if self.random.random() < 0.3 / 96:
            self.forget()
        if self.random.random() < 0.08 / 96:
            self._flood()
        await self._persona(PERSONAS[self.steps % len(PERSONAS)], run)
        self.now += PAUSE
        if self.steps % (RETEST // STEP) == 0:
            await self._retest(f"{run}-retest")
        self.now += PAUSE
        if self.random.random() < 1 / 96:
            await self._person()
        if self.steps % (PASS // STEP) == 0:
            self.look()

    def _weather(self) -> None:
        for place in self.places:
            if place.broken and place.until is not None and self.now >= place.until:
                place.broken, place.whole_since = False, self.now
                self.happened["repairs"] += 1
            elif not place.broken and self.random.random() < BREAKS / 96:
                place.broken, place.whole_since = True, None
                place.until = self.now + timedelta(hours=self.random.expovariate(1 / 72))
                self.happened["breaks"] += 1
        if self.now >= self.outage_until and self.random.random() < 0.15 / 96:
            self.outage_until = self.now + timedelta(hours=self.random.uniform(0.5, 5))
            self.happened["outages"] += 1

    def _shows(self, place: Place) -> bool:
        return place.broken and self.random.random() < place.rate

    async def _persona(self, persona: str, run: str) -> None:
        met = set()
        for place in self.places:
            if place.persona == persona and self.now >= self.outage_until and self._shows(place):
                met.add(place.name)
                await self._proven(place, run)
        for one in own_order(self._known(), self.figures, persona, met):
            await self._again(one, run)

    async def _retest(self, run: str) -> None:
        left = CALLS
        _, order = whole_order(self._known(), self.figures, run, self.now)
        for one in order:
            place = self.by_name[one.item.fingerprint]
            step = Step(tool="qa_fetch", args=dict(place.calls[0].args))
            probe = Probe(id="place", severity="low", steps=(step,), expect="true", finding=place.title)
            left -= cost(probe)[0]
            if left < SPARE:
                self.happened["left for another run"] += 1
                break
            await self._again(one, run)

    def _known(self) -> list[KnownItem]:
        return known_of(self.items, self.rows.values())

    async def _proven(self, place: Place, run: str) -> None:
        """Three of three, counted, and posted if that is news."""
        if not all(self._shows(place) for _ in range(3)):
            return
        self._figure(place, lambda before: before.shown(iso(self.now), run))
        newest = await self.own.newest(cast(FeedbackPort, self.log), [place.name, place.was])
        news = newest is None or newest.resolves
        if news:
            self.post(place.entry(run))
            place.reports += 1
        place.tell(iso(self.now), "seen", logged=news)
        self.rows[place.name] = place.row(run)

    async def _again(self, known: KnownItem, run: str) -> None:
        """An item is run again: what rerun.py and retest.py make of it."""
        place, at = self.by_name[known.item.fingerprint], iso(self.now)
        self.happened["re-runs"] += 1
        if self.now < self.outage_until or self.random.random() < 0.02:
            self._figure(place, lambda before: before.unreached(at, "no answer"))
            place.disturbed = at
        elif any(self._shows(place) for _ in range(3)):
            self._figure(place, lambda before: before.shown(at, run))
            place.tell(at, "seen")
            if known.item.state in ("fixed", "verified-fixed"):
                await self._proven(place, run)
        else:
            self._figure(place, lambda before: before.clean(at, run))
            place.tell(at, "clean")
            self.happened["false cleans"] += place.broken

    def _figure(self, place: Place, change: Any) -> None:
        self.figures[place.name] = change(self.figures.get(place.name, Recurrence()))

    async def _person(self) -> None:
        """Somebody decides about an item: of the open ones rightly or wrongly, of the others to reopen."""
        known = [one for one in self.items if one.fingerprint in self.by_name]
        if not known:
            return
        item = self.random.choice(known)
        open_ = item.state in OPEN
        kind: DecisionKind = self.random.choice(["dismiss", "snooze", "fixed"]) if open_ else "reopen"
        ends = kind in ("dismiss", "snooze")
        made = named(
            DecisionRow(
                item=item.fingerprint,
                kind=kind,
                reason="so decided",
                who="alice",
                at=iso(self.now),
                until=iso(self.now + timedelta(days=self.random.randint(1, 10))) if ends else "",
            )
        )
        place, published = self.by_name[item.fingerprint], self.random.random() < 0.5
        if published:
            self.post(write_record(record_of(made), surface=item.surface, title=item.title))
            place.resolved += kind == "fixed"
        self.decisions.append(made)
        place.hold = (made, published) if ends else None
        if published:  # what was not published later is forgotten with the journal, and this one stands again
            place.logged_hold = made if ends else None
        if kind in ("fixed", "reopen"):
            place.tell(made.at, "fixed" if kind == "fixed" else "reopen", logged=published)
        place.disturbed = made.at
        self.happened[f"persons: {kind}"] += 1

    def _flood(self) -> None:
        """Strangers: copies of our entries, records of theirs that look like ours, reports of nothing."""
        for sender in self.random.sample(range(1000), 3):
            for n in range(self.random.randint(1, 60)):
                place = self.random.choice(self.places)
                record = fixed_record(place.name, Recurrence().clean(iso(self.now), "r1"))
                texts = (
                    place.entry(f"r{n}"),
                    write_record(record, surface=place.surface, title=place.title),
                    f"qa/v1 source=qa-fuzz sev=critical surface=security fp={place.was}\nowned\nrepro: none",
                    f"[BUG] page {self.random.randrange(10**6)} of the shop hangs",
                )
                self.post(self.random.choice(texts), f"0x{sender:040x}")
                self.happened["strangers' entries"] += 1

    def look(self) -> Decided:
        """One pass of triage, and the posts that it asks for."""
        self.fold.add(self.log.entries[self.fold.index.next_index :])
        known = PassInputs(now=self.now, figures=dict(self.figures), decisions=tuple(self.decisions))
        self.decided = decided = self.fold.decide(known)
        self.items = [item_row(item) for item in decided.items]
        for text in (*decided.records, *filter(None, (decided.summary,))):
            self.post(text)
        self._noted(decided.records)
        self.check(decided)
        self.happened["passes"] += 1
        return decided

    def _noted(self, records: Sequence[str]) -> None:
        """A resolve record is on the log now."""
        for text in records:
            place = self.by_name.get(text.partition(" fp=")[2][:12])
            if place is None or "\nverified-fixed: " not in text:
                continue
            place.resolved += 1
            at = self.figures[place.name].clean_at
            place.told = [
                (when, what, there or (when, what) == (at, "clean")) for when, what, there in place.told
            ]

    def check(self, decided: Decided) -> None:
        """The list is true."""
        listed = {item.fingerprint: item for item in decided.items if item.trusted}
        assert all(name in self.by_name for name in listed), "an item that no place has"
        for place in self.places:
            item, state = listed.get(place.name), place.state()
            assert (item is not None) == bool(state), f"place {place.n}: {state or 'nothing'} is told of it"
            assert place.reports <= 1 + place.resolved, f"place {place.n} is doubled on the log"
            if item is None:
                continue
            where = f"place {place.n} at {iso(self.now)}: {item.state}, told {place.told[-4:]}"
            if place.held(self.now):
                assert item.state in ("dismissed", "snoozed"), where
            elif state == "open":
                assert item.state in OPEN - {"regression"}, where
            else:
                assert item.state == state, where
            quiet = max(iso(place.whole_since), place.quiet) if place.whole_since else ""
            if quiet and quiet < iso(self.now - LATEST) and not place.held(self.now):
                assert item.state == "verified-fixed", f"{where}, whole since {place.whole_since}"
