"""The side task that notifies: looks at the fleet, notes what is news in the journal, and sends what is due.

News is a difference between what the journal says now and what was reported before, both in one document that
changes by compare and swap: a restart neither repeats nor loses any. A message is marked after it was sent.
No run waits for it.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import anyio

from fleet.clock import Clock, iso, rest
from fleet.config import FleetConfig
from fleet.drivers.desk import ACCOUNTS
from fleet.errors import FleetError
from fleet.events.outbound import WarnOnce
from fleet.findings.redact import Redactor
from fleet.gate.budget import Unit, left_today
from fleet.runs.call.questions import is_open, questions
from fleet.runs.call.sightings import SIGHTED
from fleet.runs.desk.exit_codes import LEFT, LOCK_OUT, UNEXPLORED
from fleet.runs.outage.book import book_of
from fleet.runs.signals import WakeUp
from fleet.service.notify.news import (
    of_accounts,
    of_budgets,
    of_ending,
    of_held,
    of_host,
    of_items,
    of_lock_outs,
    of_lost,
    of_outages,
    of_posture,
    of_proposals,
    of_questions,
    of_sightings,
    of_unanswered,
)
from fleet.service.notify.receivers import Receivers, ping, post_figures
from fleet.service.notify.state import (
    FACTS,
    SILENCE,
    NoticeMessage,
    NoticeState,
    due,
    read_state,
    tried,
    wanted,
)
from fleet.store.journal import Journal
from fleet.store.rows import HOLD, FindingRow
from fleet.triage.run import DIGEST
from fleet.triggers.chain.telling import TOLD, tellings

REACHED = "reached:"
"""Prefix of the facts which message reached whom, and when."""
ROUND_S = 30.0
TOGETHER_S = 1.0
"""Seconds from what begins a round to the round: what comes together is looked at together."""
PING_EVERY_S = 60.0
SENDING_S = 60.0
"""Seconds of a round after which no further message is begun: well within a turn to send."""
LEASE = timedelta(minutes=3)
"""How long a daemon on a shared journal keeps the turn to send without renewing it."""

_LOG = logging.getLogger("fleet.notify")


@dataclass(frozen=True, slots=True)
class HostNews:
    """What only this daemon knows: refused persona files with the reason, loaded personas, limits of the day
    by owner, and its trouble."""

    refused: Mapping[str, str] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    limits: Mapping[str, Mapping[Unit, int]] = field(default_factory=dict)
    trouble: str = ""
    second: str = ""
    """Who is notified when half of a question's time is over."""
    ending: str = ""
    """That the time of the tests ends soon, with the warnings of a schedule."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What the daemon is doing, by the names of its metrics."""
    lost: str = ""
    """How the daemon before this one was lost; "" if it was stopped."""


class NoticeWatch:
    """Rounds over one platform; `news`, `config` and `receivers` are asked anew at each."""

    def __init__(  # noqa: PLR0913  a constructor
        self,
        journal: Journal,
        platform: str,
        redactor: Redactor,
        clock: Clock,
        *,
        config: Callable[[], FleetConfig],
        news: Callable[[], HostNews],
        receivers: Callable[[FleetConfig], Receivers],
        host: str = "",
        asked: WakeUp | None = None,
    ) -> None:
        """`asked` begins a round at once: a run waits for a person."""
        self._journal, self._platform, self._key = journal, platform, FACTS + platform
        self._redactor, self._clock = redactor, clock
        self._config, self._news, self._receivers = config, news, receivers
        self._asked = asked or WakeUp()
        self._host = host or socket.gethostname()
        self._read: str | None = ""
        self._pinged = float("-inf")
        self._warn = WarnOnce(_LOG, "notifications")

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if await self._asked.wait(rest(ROUND_S)):
                await anyio.sleep(TOGETHER_S)
            await self.round()

    async def round(self) -> None:
        """One round: look, fetch the dead-man's URL, send. Any failure is only logged."""
        to, well = Receivers({}), False
        try:
            to = self._receivers(self._config())
        except FleetError as error:
            self._warn(str(error), whole=True)
        try:
            await self.look(tuple(to.by_name))
            well = not self._news().trouble
        except FleetError as error:
            self._warn(str(error), whole=True)
        if (to.ping or to.figures) and self._clock.monotonic() - self._pinged >= PING_EVERY_S:
            self._pinged = self._clock.monotonic()
            if to.ping and (why := await ping(to.ping, well=well)):
                self._warn(why, receiver="the dead-man's switch")
            if to.figures and (why := await post_figures(to.figures, self._news().figures)):
                self._warn(why, receiver="the receiver of figures")
        try:
            if to.by_name:
                await self.send(to)
        except FleetError as error:
            self._warn(str(error), whole=True)

    async def look(self, receivers: Sequence[str]) -> None:
        """Note what is news for the pages, and make the messages that are due: none without receivers."""
        now, news = self._clock.now(), self._news()
        section, silenced = self._config().notify, await silences(self._journal)
        digest = await self._journal.get(DIGEST)
        items = await self._journal.items(self._platform) if digest != self._read else None
        masked = [replace(one, title=self._redactor.text(one.title)) for one in items or ()]  # before any cut
        refused = {name: self._redactor.text(why) for name, why in news.refused.items()}
        outages = await book_of(self._journal, self._platform)
        proposals = await self._journal.proposals(self._platform)
        lock_outs, unaccounted = await self._lock_outs(), await self._unaccounted()
        sighted, held = await self._sighted(), await self._held()
        asked = [one for one in await questions(self._journal) if one.platform == self._platform]
        posture = tellings(await self._journal.facts(f"{TOLD}{self._platform}:"))
        left = await left_today(self._journal, news.limits)

        def step(before: NoticeState) -> NoticeState:
            at = iso(now)
            state = of_host(before, self._host, refused, news.loaded, news.trouble, at)
            state = of_unanswered(state, self._host, silenced, at)
            state = of_lost(state, self._host, news.lost, at)
            if items is not None:
                state = of_items(state, masked, at)
            state = of_proposals(state, proposals, at)
            state = of_outages(state, outages, self._platform, at)
            state = of_lock_outs(state, lock_outs, self._platform, at)
            state = of_accounts(state, unaccounted, self._platform, at)
            state = of_sightings(state, sighted, self._platform, at)
            state = of_held(state, held, self._platform, at)
            waiting = [one for one in asked if is_open(one, now)]
            state = of_questions(state, waiting, news.second, at, page=section.page)
            state = of_posture(state, posture, self._platform, at)
            state = of_ending(state, news.ending, self._platform, at)
            state = of_budgets(state, left, news.limits, at)
            state = wanted(state, before, section.events, silenced, now)
            if not receivers:
                return state.model_copy(update={"waiting": ()})
            return due(state, section, receivers, self._platform, now)

        await self._change(step)
        self._read = digest

    async def _lock_outs(self) -> dict[str, str]:
        """By persona, why its last run was locked out."""
        prefix = f"{LEFT}{self._platform}:"
        rows = {key: json.loads(text) for key, text in (await self._journal.facts(prefix)).items()}
        return {
            key.removeprefix(prefix): str(row["reason"])
            for key, parts in rows.items()
            for row in parts
            if row["part"] == LOCK_OUT
        }

    async def _sighted(self) -> dict[str, str]:
        """By kind and place, what runs saw and where."""
        prefix = f"{SIGHTED}{self._platform}:"
        found = dict[str, str]()
        for key, text in (await self._journal.facts(prefix)).items():
            one, place = json.loads(text), key.removeprefix(prefix)
            found[place] = f"{place.partition(':')[2]}: {one['what']}" + f" (run {one['run']})" * bool(
                one["run"]
            )
        return found

    async def _held(self) -> list[FindingRow]:
        """What waits for a person before it is posted, masked."""
        rows = [row for row in await self._journal.findings(None, ["confirmed"]) if row.data.get(HOLD)]
        runs = {row.run_id: (await self._journal.run(row.run_id)).platform for row in rows}
        return [
            replace(row, title=self._redactor.text(row.title))
            for row in rows
            if runs[row.run_id] == self._platform
        ]

    async def _unaccounted(self) -> dict[str, str]:
        """By part of the platform, why the last runs could make no account."""
        found = (await self._journal.facts(f"{UNEXPLORED}{self._platform}:")).values()
        rows = [row for text in found for row in json.loads(text)]
        return {str(row["probe"]): str(row["reason"]) for row in rows if row["probe"].startswith(ACCOUNTS)}

    async def send(self, to: Receivers) -> None:
        """Send what is due, if it is this daemon's turn; each receiver is marked as soon as it has it."""
        state = await self._change(self._turn)
        if self._journal.shared and state.sender != self._host:
            return
        start = self._clock.monotonic()
        for message in state.messages:
            if message.again <= iso(self._clock.now()) and self._clock.monotonic() - start < SENDING_S:
                await self._deliver(message, to)

    async def _deliver(self, message: NoticeMessage, to: Receivers) -> None:
        for name in message.left:
            if name not in to.by_name:
                continue
            if why := await to.by_name[name](message):
                self._warn(why, receiver=name)
                continue
            reached = json.dumps({"title": message.title, "events": message.events, "made": message.at})
            await self._journal.put(f"{REACHED}{iso(self._clock.now())} {message.id} {name}", reached)
            await self._mark(message.id, (name,), tuple(to.by_name), is_last=False)
        await self._mark(message.id, (), tuple(to.by_name), is_last=True)

    async def _mark(
        self, ident: str, delivered: Sequence[str], known: Sequence[str], *, is_last: bool
    ) -> None:
        def step(state: NoticeState) -> NoticeState:
            return tried(state, ident, delivered, known, self._clock.now(), is_last=is_last)

        await self._change(step)

    def _turn(self, state: NoticeState) -> NoticeState:
        now = self._clock.now()
        if not self._journal.shared or (state.sender not in ("", self._host) and state.until > iso(now)):
            return state
        if state.sender == self._host and state.until > iso(now + LEASE / 2):
            return state
        return state.model_copy(update={"sender": self._host, "until": iso(now + LEASE)})

    async def _change(self, step: Callable[[NoticeState], NoticeState]) -> NoticeState:
        while True:
            text = await self._journal.get(self._key)
            before = read_state(text)
            after = step(before)
            if after == before or await self._journal.swap(self._key, text, after.model_dump_json()):
                return after


async def silences(journal: Journal) -> dict[str, str]:
    """The silenced events, with the end of each silence (ISO); ended ones included."""
    found = await journal.facts(SILENCE)
    return {key.removeprefix(SILENCE): until for key, until in found.items() if until}
