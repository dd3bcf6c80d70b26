"""The ways into the daemon's queue: signed deliveries of webhooks, and requests of a local person.

Every answer follows from the journal, so a request may be repeated: a key starts at most one run, ever.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from anyio import to_thread

from fleet.clock import Clock, iso, iso_ms
from fleet.config import FleetConfig
from fleet.errors import ConfigError, FleetError, Refused, UsageError
from fleet.gate.stop import stop
from fleet.personas.load import LoadedPersona
from fleet.runs.call.halt import HALTS, Halt, note_halt
from fleet.runs.call.sealed import TRAJECTORY
from fleet.runs.call.sightings import SIGHTED
from fleet.runs.queue import Queue
from fleet.store.rows import TRIAL, RunRow, SkipRow
from fleet.text import line
from fleet.triggers.hooks.secret import hook_secrets
from fleet.triggers.hooks.webhook import Delivery, head, verify
from fleet.triggers.model import EVERYONE, Firing, Skip, manual_key, replay_key, try_key
from sandbox import strict_json

ALARMS = "alarms:"
"""Prefix of the facts with the deliveries of a webhook that count towards a STOP, and their times."""
BY_HAND = 10
"""Priority of a person's request: ahead of clocks and events."""
REFUSED = {"hook-size": 413, "hook-header": 400, "hook-signature": 401, "hook-timestamp": 401}
"""Status of a refused delivery, by the rule it breaks."""

_LOG = logging.getLogger("fleet.hooks")
_IDENT = re.compile(r"[a-z0-9]{8,64}")


class FiringJournal(Protocol):
    """What the doors need of the journal."""

    async def run_of(self, key: str) -> str: ...
    async def run(self, run_id: str) -> RunRow: ...
    async def get(self, key: str) -> str | None: ...
    async def put(self, key: str, value: str) -> None: ...
    async def skips(self, limit: int = 50) -> list[SkipRow]: ...


@dataclass(frozen=True, slots=True)
class IngressReply:
    """An HTTP status and a JSON body."""

    status: int
    body: Mapping[str, Any]


AskForRun = Callable[[bytes], Awaitable[IngressReply]]
"""Queues the run that a person asks for (`Ingress.ask`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingress:
    """Both ways in. Only callers who can open the unix socket reach `ask`; that is enforced before.

    The status is the caller's next step:

        202  accepted: `runs` lists new and known ones. While STOP is set they wait for `fleet resume`.
             Of a webhook that stops the fleet: STOP is set.
        200  known before, nothing new starts
        400  a header or a field is missing, repeated or malformed: fix the sender
        401  the signature or the time does not match     404  no such webhook, persona, probe or run
        409  the daemon serves another platform           413  too large
        429  not all of it was accepted, usually because too many runs wait: retry later
        503  draining, or the journal or the secret cannot be read: retry later
    """

    queue: Queue
    book: FiringJournal
    platform: str
    personas: Mapping[str, LoadedPersona]
    config: Callable[[], FleetConfig]
    subscribers: Callable[[str], Collection[str]]
    state: Path
    clock: Clock
    pause: Callable[[str, str, str, Clock], Awaitable[int]]
    """Pauses every run of a platform at work: who, why; their number."""

    def unwanted(self, delivery: Delivery) -> IngressReply | None:
        """The refusal of a delivery by its name and headers, before its body is read; None if it passes."""
        if delivery.hook not in self.config().hooks:
            return _no(404, "no such webhook")
        try:
            head(delivery.headers, self.clock.now())
        except Refused as refusal:
            return _no(REFUSED[refusal.rule], str(refusal))
        return None

    async def deliver(self, delivery: Delivery) -> IngressReply:
        """Accept one delivery of a webhook, from any sender."""
        config, name = self.config(), delivery.hook
        if name not in config.hooks:
            return _no(404, "no such webhook")
        try:
            secrets = await to_thread.run_sync(hook_secrets, config, name, self.state)
        except ConfigError as error:
            _LOG.error("webhook %s is closed: %s", name, error)
            return _no(503, "this webhook's secret cannot be read")
        personas = self.subscribers(f"hook:{name}") or (EVERYONE,)
        try:
            firings = verify(delivery, secrets=secrets, personas=personas, now=self.clock.now())
        except Refused as refusal:
            return _no(REFUSED[refusal.rule], str(refusal))
        if config.hooks[name].stop:
            return await self._stop(name, firings[0].key)
        if config.hooks[name].monitors:
            return await self._monitored(name, delivery.body)
        if personas == (EVERYONE,):
            await self.queue.skip(Skip(EVERYONE, firings[0].key, "no persona uses this webhook now"))
            return IngressReply(202, {"runs": []})
        return await self._take(firings, priority=0)

    async def _stop(self, hook: str, key: str) -> IngressReply:
        """Set STOP, once for each delivery: a replay after the resume does nothing.

        Without a journal a replay cannot be told from a new delivery, and stopping is the safe side.
        """
        ident = key.rpartition(":")[2]
        halt = Halt("stop", f"webhook {hook}", f"delivery {ident}", iso_ms(self.clock.now()))
        known = f"{HALTS}{hook}:{ident}"
        try:
            if await self.book.get(known):
                return IngressReply(200, {"stopped": False, "runs": []})
        except FleetError as error:
            _LOG.error("webhook %s: it cannot be looked up whether %s is new: %s", hook, ident, error)
        if not await self._enough(hook, ident):
            return IngressReply(202, {"stopped": False, "runs": []})
        stop(self.state, halt.who, halt.why, self.clock)
        note_halt(self.state, self.clock, halt)
        await self.book.put(known, json.dumps(halt._asdict()))
        return IngressReply(202, {"stopped": True, "runs": []})

    async def _monitored(self, hook: str, body: bytes) -> IngressReply:
        """Tell what the platform's own monitoring sees, once an hour in the same words; `critical` pauses all
        runs."""
        try:
            level, what = (str(strict_json.loads(body)[key]) for key in ("level", "what"))
        except (ValueError, TypeError, KeyError):
            return _no(400, "not a JSON object with level and what")
        if level not in ("warning", "critical"):
            return _no(400, "level is warning or critical")
        at, seen = iso(self.clock.now()), f"{level}: {line(what, 200)}"
        note = {"run": "", "at": at, "what": seen}
        key = f"{SIGHTED}{self.platform}:strain:{hook} at {at[:13]}, {line(what, 60)}"
        if await self.book.get(key) is None:
            await self.book.put(key, json.dumps(note))
        paused = 0
        if level == "critical":
            paused = await self.pause(self.platform, f"webhook {hook}", seen, self.clock)
        return IngressReply(202, {"paused": paused, "runs": []})

    async def _enough(self, hook: str, ident: str) -> bool:
        """Whether so many deliveries came in the time that they count for; the count begins anew then. What
        cannot be counted is enough."""
        section, now = self.config().hooks[hook], self.clock.now().timestamp()
        if section.stop_after == 1:
            return True
        try:
            known: dict[str, float] = json.loads(await self.book.get(f"{ALARMS}{hook}") or "{}")
            since = now - 60 * section.stop_minutes
            counted = {one: at for one, at in known.items() if at > since} | {ident: now}
            enough = len(counted) >= section.stop_after
            await self.book.put(f"{ALARMS}{hook}", json.dumps({} if enough else counted))
        except FleetError as error:
            _LOG.error("webhook %s: its deliveries cannot be counted: %s", hook, error)
            return True
        return enough

    async def ask(self, body: bytes) -> IngressReply:
        """A person's request to run now: `{"persona", "ident", "platform"}`; `ident` makes the key.

        With `probe` only that one is tried: nothing is posted or counted. With `replay`, a run that is
        over, its persona asks the calls of that run again.
        """
        try:
            asked = strict_json.loads(body)
            words = ("persona", "ident", "platform", "probe", "replay")
            persona, ident, platform, probe, replay = (str(asked.get(word, "")) for word in words)
        except (ValueError, AttributeError):
            return _no(400, "not a JSON object")
        if not _IDENT.fullmatch(ident):
            return _no(400, "ident must be 8 to 64 of a-z and 0-9")
        if replay and (persona := await self._repeatable(replay)) == "":
            return _no(404, f"no run {replay[:40]!r} that is over and has its records here")
        if persona not in self.personas:
            return _no(404, f"no persona named {persona!r}; known: {', '.join(sorted(self.personas))}")
        try:
            self.personas[persona].only(probe)
        except UsageError as error:
            return _no(404, str(error))
        if platform not in ("", self.platform):
            return _no(409, f"the daemon runs against {self.platform}, not {platform}")
        key, why = manual_key(persona, ident), "manual"
        if probe:
            key, why = try_key(persona, probe, ident), TRIAL
        elif replay:
            key, why = replay_key(persona, replay, ident), f"replay:{replay}"
        firing = Firing(key, persona, why, self.clock.now())
        answer = await self._take([firing], priority=BY_HAND)
        if answer.status != 429:
            return answer
        reasons = (skip.reason for skip in await self.book.skips() if skip.key == firing.key)
        return _no(429, next(reasons, "it was not accepted"))

    async def _repeatable(self, run: str) -> str:
        """The persona of a run whose calls can be asked again; "" for any other."""
        try:
            row = await self.book.run(run)
        except UsageError:
            return ""
        whole = row.state == "ended" and (self.state / "runs" / row.run_id / TRAJECTORY).is_file()
        return row.persona if whole and row.run_id == run else ""

    async def _take(self, firings: Sequence[Firing], *, priority: int) -> IngressReply:
        runs, new = [], False
        for firing in firings:
            new |= await self.queue.fire(firing, priority=priority)
            if run := await self.book.run_of(firing.key):
                runs.append({"persona": firing.persona, "run": run, "key": firing.key})
        if len(runs) < len(firings):
            return IngressReply(
                429, {"error": "not all of it was accepted: `fleet status` shows why", "runs": runs}
            )
        return IngressReply(202 if new else 200, {"runs": runs})


def _no(status: int, why: str) -> IngressReply:
    return IngressReply(status, {"error": why})
