"""Our entries of the log until finality: what a reorganisation dropped is brought back, once.

A dropped entry is sent again as the same bytes from the journal, which cannot be on the chain twice; all that
is missing goes out in one batch, in order of nonce. Only when another transaction has used their nonce is a
finding's entry posted anew, and only if no entry of the fleet reports that finding now. Whoever posts
(outbox, triage, an operator) looks first: then nothing is signed for what is still on its way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fleet.chain.log.own_entries import OwnEntries, names_of
from fleet.chain.log.reputation_log import WITHDRAW, ReputationLog
from fleet.chain.node.reputation import entry_text
from fleet.chain.ports import FeedbackPort, Receipt, SignerPort
from fleet.chain.signing.recovery import NOT_SENT
from fleet.chain.signing.tx import parse
from fleet.clock import Clock, iso
from fleet.config import FleetConfig, Platform
from fleet.errors import LostRun
from fleet.findings.reader import read
from fleet.findings.records import read_record
from fleet.runs.context import FleetContext
from fleet.store.journal import Journal
from fleet.store.rows import MISSING, EffectRow, FindingRow
from fleet.text import counted

BACK = timedelta(days=1)
"""Longest watch on an entry: a node that mines on demand may never reach finality."""
CHUNK = 50
"""Receipts in one request."""
DROPPED = "dropped by a reorg"

Tell = Callable[[str, str], None]
"""Called with the run and the fate of its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostingSide:
    """What a look at our own entries needs; `signer` is None for a reader, `identity` the posting address."""

    config: FleetConfig
    platform: Platform
    journal: Journal
    clock: Clock
    log: FeedbackPort
    identity: str
    signer: SignerPort | None

    @classmethod
    def of(cls, context: FleetContext) -> PostingSide:
        """That of a run."""
        chain = context.chain
        return cls(
            config=context.config,
            platform=context.platform,
            journal=context.journal,
            clock=context.clock,
            log=chain.log,
            identity=chain.identity,
            signer=chain.signer,
        )


def _silent(run: str, why: str) -> None:
    """A look on behalf of a post: the sweep tells."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Entries that are not on the log now and may still come: nothing may be posted in their place.

    `findings` are fingerprints of reports, `others` counts triage's and operators' entries.
    """

    findings: frozenset[str] = frozenset()
    others: int = 0


async def look_at_posts(side: PostingSide, tell: Tell = _silent) -> Missing:
    """Look at recent entries, bring back what is missing, and note what is final."""
    mined = await side.journal.effects(None, ["tx"], ["done"], since=iso(side.clock.now() - BACK))
    recent = [one for one in mined if not one.data.get("final")]
    watched = [one for one in recent if one.data.get("purpose") in ("post", WITHDRAW)]
    if not watched or (signer := side.signer) is None:
        return Missing()
    look = _Look(side, signer, tell)
    for start in range(0, len(watched), CHUNK):
        await look.at(watched[start : start + CHUNK])
    missing = await look.bring_back()
    await look.withdraw_again()
    return missing


@dataclass(frozen=True, slots=True)
class _Post:
    """A journalled entry of ours: its `name` is the fingerprint of a report or of what resolves one, else
    its text."""

    effect: EffectRow
    raw: bytes
    nonce: int
    text: str
    name: str
    is_report: bool

    @classmethod
    def of(cls, effect: EffectRow) -> _Post:
        raw = bytes.fromhex(effect.data["raw"])
        unsigned, _ = parse(raw)
        text = entry_text(unsigned.data) or ""
        parsed = read(text)
        is_report = bool(parsed.fp) and read_record(parsed) is None
        return cls(effect, raw, unsigned.nonce, text, next(iter(names_of(text)), text), is_report)


@dataclass(slots=True)
class _Look:
    side: PostingSide
    signer: SignerPort
    tell: Tell
    head: int = 0
    gone: list[EffectRow] = field(default_factory=list)
    withdrawals: list[EffectRow] = field(default_factory=list)
    """What withdraws a finding from a registry, and is gone too."""

    async def at(self, watched: Sequence[EffectRow]) -> None:
        """Note what is final, and what is gone."""
        self.head, found = await self.signer.look_up([one.ref for one in watched])
        finality = self.side.platform.chain.finality_blocks
        for effect, receipt in zip(watched, found, strict=True):
            if receipt is None or receipt.status != 1:
                gone = self.withdrawals if effect.data.get("purpose") == WITHDRAW else self.gone
                gone.append(effect)
            elif effect.data.get("purpose") == WITHDRAW and receipt.block != effect.data.get("block"):
                await self._resolve(effect, block=receipt.block)
            elif receipt.block != effect.data.get("block"):
                await self._placed(_Post.of(effect), receipt)
            elif self.head >= receipt.block + finality:
                await self._resolve(effect, final=True)

    async def bring_back(self) -> Missing:
        """Send again what is gone, in order of nonce; what is missing afterwards."""
        if not self.gone:
            await self._note(0, "")
            return Missing()
        dropped = [one for one in self.gone if self.head >= int(one.data.get("block", 0))]
        await self._note(len(dropped), "")
        posts = sorted(map(_Post.of, self.gone), key=lambda one: (one.nonce, one.effect.effect_id))
        sent, waiting = await self._wanted(posts)
        ends = await self.signer.settle_all([one.raw for one in sent]) if sent else ()
        dead = []
        for post, end in zip(sent, ends, strict=True):
            if end.state == "pending" or end.reason == NOT_SENT:
                waiting.append(post)
            elif end.receipt is None or end.receipt.status != 1:
                dead.append(post)
            elif end.receipt.block != post.effect.data.get("block"):
                await self._placed(post, end.receipt)
        for post in dead:
            await self._post_again(post)
        held = any(one.reason == NOT_SENT for one in ends)
        fate = "and are not sent again now" if held else "and were sent again; no block has them yet"
        await self._note(len(waiting), fate)
        reports = [one.name for one in waiting if one.is_report]
        return Missing(frozenset(reports), len(waiting) - len(reports))

    async def withdraw_again(self) -> None:
        """Withdraw anew what is not withdrawn now: the same bytes could name another finding by then."""
        log, dropped = self.side.log, list[EffectRow]()
        for effect in self.withdrawals:
            end = await self.signer.settle_raw(bytes.fromhex(effect.data["raw"]), rebroadcast=False)
            if end.state == "failed" or (end.receipt and end.receipt.status != 1):
                dropped.append(effect)
        if not dropped or not isinstance(log, ReputationLog):
            return
        await log.withdraw_again()
        for effect in dropped:
            self.tell(effect.run_id, "a withdrawal was dropped by the chain, and was made again")
            await self._resolve(effect, state="failed", reason=DROPPED)

    async def _wanted(self, posts: Sequence[_Post]) -> tuple[list[_Post], list[_Post]]:
        """What is to be sent, and what waits since another one has its nonce.

        A report that the log has under another entry, or that is sent already, is closed instead.
        """
        own = await self._own()
        standing: dict[str, bool] = {}
        sent: list[_Post] = []
        waiting: list[_Post] = []
        for post in posts:
            if post.name not in standing:
                newest = await own.newest(self.side.log, [post.name])
                standing[post.name] = newest is not None and not newest.resolves
            if post.is_report and standing[post.name]:
                await self._closed(post, "the finding is on the log in another entry")
            elif sent and sent[-1].nonce == post.nonce:
                waiting.append(post)
            else:
                sent.append(post)
                standing[post.name] = post.is_report
        return sent, waiting

    async def _post_again(self, post: _Post) -> None:
        """Findings only: other entries are renewed by their own writers if they still hold."""
        side, row = self.side, await self._finding(post)
        if row is None:
            await self._closed(post, DROPPED)
            return
        if side.journal.shared and (await side.journal.run(row.run_id)).state != "ended":
            return  # a peer may settle it just now
        if not await claim(side, row.fingerprint):
            return
        try:
            rivals = await side.journal.findings(None, ["posting"])
            if any(one.fingerprint == row.fingerprint for one in rivals):
                return  # a run is about to post it
            newest = await (await self._own()).newest(side.log, [post.name])
            sent_at = datetime.fromisoformat(post.effect.at).timestamp()
            # what the log says last was said before this entry and resolved it: then it is news again
            if newest is not None and not (newest.resolves and newest.at < sent_at):
                await self._closed(post, DROPPED)
                return
            await side.journal.tend(row.run_id)
            posted = await side.log.post(row.envelope, charge="none")  # the run has paid for it
            await side.journal.set_finding(
                row.run_id, row.fingerprint, state="posted", tx=posted.tx, index=posted.index
            )
        finally:
            await release(side, row.fingerprint)
        fate = f"was dropped by the chain, and was posted again as {posted.index}"
        self.tell(row.run_id, f"entry {row.index} {fate}")
        await self._resolve(post.effect, state="failed", reason=DROPPED)

    async def _closed(self, post: _Post, why: str) -> None:
        """Give up its bytes; a finding's row gets the place of the entry that stands for it."""
        if (row := await self._finding(post)) is not None:
            newest = await (await self._own()).newest(self.side.log, [post.name])
            if newest is not None:
                await self.side.journal.move_entry(row.run_id, row.fingerprint, newest.index)
        await self._resolve(post.effect, state="failed", reason=why)

    async def _placed(self, post: _Post, receipt: Receipt) -> None:
        """Record the block, and for a finding the index, at which its entry is now."""
        if (row := await self._finding(post)) is not None:
            index = await self.side.log.find(row.envelope, self.side.identity)
            if index is None:
                return  # looked at again later
            await self.side.journal.move_entry(row.run_id, row.fingerprint, index)
            why = f"entry {row.index} was dropped by the chain, and is there again as {index}"
            self.tell(row.run_id, why)
        await self._resolve(post.effect, block=receipt.block)

    async def _resolve(self, effect: EffectRow, state: str = "done", **data: object) -> None:
        try:
            await self.side.journal.tend(effect.run_id)
            await self.side.journal.resolve(
                effect.effect_id, "done" if state == "done" else "failed", dict(data)
            )
        except LostRun:
            pass  # a run in progress at a peer, which looks too

    async def _finding(self, post: _Post) -> FindingRow | None:
        """The finding whose entry a transaction wrote, matched by text."""
        rows = await self.side.journal.findings(post.effect.run_id or None, ["posted"])
        return next((row for row in rows if row.envelope == post.text), None)

    async def _own(self) -> OwnEntries:
        """Read anew: after a reorganisation nothing that was read before holds."""
        trusted = (*self.side.config.trusted, self.side.identity)
        return OwnEntries(frozenset(address.lower() for address in trusted))

    async def _note(self, missing: int, fate: str) -> None:
        """Keep how many entries are missing, and tell it once."""
        key, journal = f"{MISSING}{self.side.platform.name}", self.side.journal
        before = await journal.get(key) or ""
        known = json.loads(before) if before else {}
        if not missing:
            if before:
                await journal.put(key, "")
            return
        now = known | {"count": missing, "fate": fate or known.get("fate", "")}
        now["since"] = known.get("since") or iso(self.side.clock.now())
        if now != known:
            await journal.put(key, json.dumps(now))
            if fate:
                self.tell("", in_words(now))


def in_words(missing: Mapping[str, Any]) -> str:
    """The fact MISSING in a line."""
    count = missing["count"]
    verb, fate = "is" if count == 1 else "are", missing["fate"]
    text = f"{counted(count, 'posted entry', 'posted entries')} {verb} no longer on the chain"
    return f"{text}, {fate}" if fate else text


async def claim(side: PostingSide, fingerprint: str) -> bool:
    """Claim the post of a dropped entry among sweeps and runs, of several daemons too.

    Another one takes over from one that died. A run that posts the same claims its row first and then looks
    for this claim, a sweep does it the other way round: one of them gives way.
    """
    key, now = _again(fingerprint), side.clock.now()
    before = await side.journal.get(key)
    if before and before > iso(now - timedelta(seconds=2 * side.config.store.stalled_s)):
        return False
    return await side.journal.swap(key, before, iso(now))


async def release(side: PostingSide, fingerprint: str) -> None:
    """Give the claim back."""
    await side.journal.put(_again(fingerprint), "")


async def claimed(side: PostingSide, fingerprint: str) -> bool:
    """Whether a sweep is about to post this finding's dropped entry anew."""
    before = await side.journal.get(_again(fingerprint))
    late = iso(side.clock.now() - timedelta(seconds=2 * side.config.store.stalled_s))
    return before is not None and before > late


def _again(fingerprint: str) -> str:
    return f"again.{fingerprint}"
