"""Publishes decisions of persons: records on the log, under the fleet's identity, once each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.app.journal import open_journal
from fleet.app.lock import only_one
from fleet.app.log_copy import entries_of
from fleet.app.wiring import fences
from fleet.chain.keys import load_key
from fleet.chain.log.choice import log_of
from fleet.chain.log.reputation_log import withdraw_dismissed
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import FeedbackPort
from fleet.chain.signing.never import NeverList
from fleet.chain.signing.signer import JournalledTx, Keys, Signer
from fleet.config import LiveConfig, key_file, load_fleet, load_platform
from fleet.errors import TryAgain
from fleet.findings.reader import read
from fleet.findings.records import read_record, write_record
from fleet.findings.redact import Redactor
from fleet.findings.withheld import withheld
from fleet.runs.settlement.settle import RESENT
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow
from fleet.triage.items.decisions import record_of


@dataclass(frozen=True, slots=True)
class Publisher:
    """`ours` are the addresses, in lower case, whose records count."""

    journal: Journal
    log: FeedbackPort
    signer: Signer
    ours: frozenset[str]
    redactor: Redactor

    async def settle(self) -> None:
        """Complete the posts of a process that was killed; TryAgain while one is in no block."""
        for effect in await self.journal.effects("", ["tx"], ["open"]):
            if effect.data.get("purpose") not in RESENT:
                continue
            settled = await self.signer.settle_raw(bytes.fromhex(effect.data["raw"]))
            if settled.state == "pending":
                raise TryAgain(f"transaction {settled.tx} is in no block yet", remedy="fleet items publish")
            found = settled.receipt
            mined = {"status": found.status, "block": found.block} if found else {}
            good = mined.get("status") == 1
            await self.journal.resolve(
                effect.effect_id, "done" if good else "failed", {"reason": settled.reason} | mined
            )
            self.log.seen(found.block if found else 0)

    async def published(self, names: Collection[str]) -> dict[str, int]:
        """Where these decisions are on the log: the first entry of ours for each name."""
        found: dict[str, int] = {}
        async for index, entry in entries_of(self.log):
            record = read_record(read(entry.text)) if entry.sender.lower() in self.ours else None
            if record is not None and record.name in names:
                found.setdefault(record.name, index)
        return found

    async def publish(
        self, decisions: Collection[DecisionRow], items: Mapping[str, tuple[str, str]]
    ) -> list[DecisionRow]:
        """Post those that are not on the log yet, each read back; `items` are (surface, title) by name."""
        await self.settle()
        known = await self.published({one.name for one in decisions})
        done = []
        for one in decisions:
            entry = known.get(one.name)
            if entry is None:
                surface, title = items.get(one.item, ("unknown", "unknown"))
                text = write_record(record_of(one), surface=surface, title=title, redactor=self.redactor)
                entry = (await self.log.post(text, charge="none")).index
            else:
                await withdraw_dismissed(self.log)
            done.append(replace(one, entry=entry))
            await self.journal.add_decision(done[-1])
        return done


@asynccontextmanager
async def open_publisher(state: Path, *, platform: str, log: str = "") -> AsyncIterator[Publisher]:
    """The log with the identity's key; holds the state directory's lock. `log` names another than the
    profile's, in its words.

    The signer asks dial, STOP and never-list at each signature. Raises ConfigError, UsageError, Unreachable,
    WrongTarget, TryAgain.
    """
    config = load_fleet()
    profile, _ = load_platform(platform, state)
    profile = profile.with_log(log) if log else profile
    with only_one(state):
        key = load_key(key_file(config, "identity", state)) if profile.signs else None
        async with Rpc(profile.chain.rpc) as rpc, await open_journal(state) as journal:
            await rpc.check_target(profile)
            limits = fences(state, NeverList(LiveConfig(config).never), profile)
            signer = Signer(rpc, profile.chain, JournalledTx(journal), keys=Keys(identity=key), fences=limits)
            ours = {signer.author.lower(), *(str(one).lower() for one in config.trusted)}
            secrets = [key.reveal()] if key else []
            to = log_of(profile, state, rpc, signer)
            yield Publisher(journal, to, signer, frozenset(ours), Redactor(secrets, hides=withheld(profile)))
