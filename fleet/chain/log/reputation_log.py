"""A log in an ERC-8004 Reputation registry: entries are feedback about the platform's agent, read by events.

A finding is `giveFeedback` under the tag `qaFinding` and its fingerprint; a record that resolves it is
`appendResponse` to it; any other record, and a summary, is `giveFeedback` under `qaRecord`. A dismissal also
withdraws the finding by `revokeFeedback`, so that the registry's summary leaves it out; its entry stays.
Entries are those of the profile's clients, in the order of the chain: others' are neither asked for nor
counted (decision 83).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.log.kept_events import FinalEvents, RegistryEvent, keep_events, read_events
from fleet.chain.log.own_entries import RESOLVING
from fleet.chain.node import codec, reputation
from fleet.chain.node.codec import Entry
from fleet.chain.node.hexes import as_bytes, as_dict, as_int
from fleet.chain.node.rpc import Call, Rpc
from fleet.chain.ports import Charge, FeedbackPort, Role, SignerPort, TxRequest
from fleet.chain.signing.policy import check_text
from fleet.clock import Clock, SystemClock, iso_seconds
from fleet.config import ChainSection, GasSection
from fleet.config.erc8004 import Erc8004Section
from fleet.errors import FleetError, Refused, RpcError, Unreachable
from fleet.findings.reader import read
from fleet.findings.records import ItemRecord, read_record
from fleet.severity import META

SPAN = 1_000_000
"""Blocks that are asked for at once; halved for a node that takes less."""
BLOCKS = 100
"""Blocks whose time is asked for at once."""

WITHDRAW = "withdraw"
"""The purpose of a withdrawal in the journal."""
WORTH_KEEPING = 5_000
"""Blocks without an event after which it is written down anew how far was read."""


class ReputationLog(FeedbackLog):
    """FeedbackPort on one agent's feedback. Without a signer it can only be read."""

    def __init__(  # noqa: PLR0913  the parts of a profile
        self,
        rpc: Rpc,
        registry: str,
        agent: Erc8004Section,
        chain: ChainSection,
        gas: GasSection,
        signer: SignerPort | None = None,
        *,
        kept: Path,
        clock: Clock | None = None,
    ) -> None:
        """`kept` is the file for what was read and counts as final."""
        super().__init__(rpc, registry.lower(), gas, signer, confirmations=chain.confirmations)
        self._agent, self._chain = agent, chain
        self._clients = sorted({one.lower() for one in agent.clients})
        self._clock = clock or SystemClock()
        self._events: list[RegistryEvent] = []
        self._entries: list[Entry] = []
        self._tip = ""
        self._final = (-1, "")
        """Number and hash of a block so deep that it counts as final: what is above it is read again."""
        self._kept, self._read_kept, self._written = kept, False, (-1, 0)
        first = (chain.id, registry.lower(), agent.agent, agent.from_block)
        self._of = " ".join(map(str, (*first, *self._clients)))
        self._span = SPAN
        self._reading = anyio.Lock()

    async def _count(self, block: str) -> int:
        await self._read_on(block)
        return len(self._entries)

    async def _range(self, start: int, count: int, block: str) -> list[Entry]:
        await self._read_on(block)
        return self._entries[start : start + count]

    async def _requests(self, texts: Sequence[str], run: str, charge: Charge) -> list[list[TxRequest]]:
        for text in texts:
            check_text(text)
        assert self._signer is not None
        me = self._signer.address(Role.IDENTITY)
        await self._check_identity(me)
        await self._read_on(await self._block())
        return [self._acts(text, me, run, charge) for text in texts]

    async def _check_identity(self, me: str) -> None:
        """Refused when the registry would refuse its feedback, or no reader of this profile would see it."""
        agent, is_authorised = self._agent, reputation.IS_AUTHORISED
        if me not in self._clients:
            raise Refused(
                f"entries of {me}, the fleet's identity, are not read by this profile",
                rule="agent",
                remedy="add it to clients under [erc8004] in the platform profile",
            )
        answer = await self._rpc.eth_call(agent.identity, is_authorised.encode(me, agent.agent))
        try:
            (may_act,) = is_authorised.decode(answer)
        except codec.Malformed as error:
            raise Unreachable(f"invalid answer to isAuthorizedOrOwner: {error}") from None
        if may_act:
            raise Refused(
                f"{me}, the fleet's identity, may act for agent {agent.agent}: the registry takes no feedback"
                " about oneself",
                rule="agent",
                remedy="give the fleet an identity of its own: another keys/identity",
            )

    def _acts(self, text: str, me: str, run: str, charge: Charge) -> list[TxRequest]:
        """The transaction that posts this text, and those that withdraw what it dismisses."""
        agent, entry = self._agent, read(text)
        record = read_record(entry)
        mine = [one for one in self._events if one.client == me]
        tags = (reputation.FINDING, entry.fp)
        findings = [one.index for one in mine if entry.fp and one.sender == me and one.tags == tags]
        at = iso_seconds(self._clock.now().timestamp())
        place = f"eip155:{self._chain.id}:"
        file = {"agentRegistry": place + agent.identity.lower(), "agentId": agent.agent}
        file |= {"clientAddress": place + me, "createdAt": at}
        if record and record.kind in RESOLVING and findings:
            uri, digest = reputation.uri_of(text, file)
            data = reputation.RESPOND.encode(agent.agent, me, findings[-1], uri, digest)
        else:
            value = 0 if record else reputation.VALUES.get(entry.severity, 0)
            says = record or entry.severity == META
            tags = (reputation.RECORD if says else reputation.FINDING, entry.fp)
            file |= {"value": value, "valueDecimals": 0, "tag1": tags[0], "tag2": tags[1]}
            uri, digest = reputation.uri_of(text, file | {"endpoint": entry.surface})
            data = reputation.GIVE.encode(agent.agent, value, 0, *tags, entry.surface, uri, digest)
        post = replace(self.request(text, run=run, charge=charge), data=data)
        return [post, *(self._withdrawals(me, entry.fp, run) if _is_dismissal(record) else ())]

    def _withdrawals(self, me: str, fp: str, run: str) -> Iterator[TxRequest]:
        """What withdraws the findings of this fingerprint that are not withdrawn."""
        mine = [one for one in self._events if one.client == me]
        withdrawn = {one.index for one in mine if not one.text}
        for one in mine:
            if one.sender == me and one.tags == (reputation.FINDING, fp) and one.index not in withdrawn:
                yield TxRequest(
                    role=Role.IDENTITY,
                    to=self._contract,
                    data=reputation.REVOKE.encode(self._agent.agent, one.index),
                    gas=self._gas.small,
                    charge="none",
                    run=run,
                    purpose=WITHDRAW,
                )

    async def withdraw_again(self) -> int:
        """Withdraw what our last entry about it dismisses for good and what still stands, as after a
        reorganisation that dropped the withdrawal, or a kill before it was signed; return how many that are.
        FleetError of one that fails.
        """
        if self._signer is None:
            raise Refused("this log was opened without a signer", rule="key")
        await self._read_on(await self._block())
        me, last = self._signer.address(Role.IDENTITY), dict[str, bool]()
        for one in self._events:
            if one.client == me == one.sender and one.text and (entry := read(one.text)).fp:
                last[entry.fp] = _is_dismissal(read_record(entry))
        acts = [act for fp, dismissed in last.items() if dismissed for act in self._withdrawals(me, fp, "")]
        for outcome in await self._signer.submit_many(acts) if acts else ():
            if isinstance(outcome, FleetError):
                raise outcome
            outcome.check()
        return len(acts)

    async def _read_on(self, block: str) -> None:
        """Read the events up to this block that are not known yet, and those that are not final again."""
        number = await self.head() if block == "latest" else int(block, 16)
        async with self._reading:
            if not self._read_kept:
                self._read_kept = True
                if kept := await to_thread.run_sync(read_events, self._kept, self._of):
                    self._final, self._events = (kept.block, kept.hash), list(kept.events)
                    self._written = (kept.block, len(kept.events))
            deep, digest = self._final
            tip, still = await self._hashes(number, max(deep, 0))
            if tip == self._tip:
                return
            if deep < 0 or still != digest or number < deep:
                deep = self._agent.from_block - 1
            found = {(one.block, one.place): one for one in self._events if one.block <= deep}
            fresh = await self._between(deep + 1, number)
            deepest = max(number - self._chain.finality_blocks, self._agent.from_block - 1, 0)
            final = min(deepest, number)
            again, digest = await self._hashes(number, final)
            if again != tip:
                raise Unreachable(f"block {number} was replaced while the log was read")
            found |= {(one.block, one.place): one for one in await self._dated(fresh)}
            self._events = [found[place] for place in sorted(found)]
            self._entries = [Entry(one.sender, one.at, one.text) for one in self._events if one.text]
            self._tip, self._final = tip, (final, digest)
            await self._keep()

    async def _keep(self) -> None:
        """Write down what counts as final, when that is more than is written."""
        (block, digest), (upto, count) = self._final, self._written
        final = tuple(one for one in self._events if one.block <= block)
        if len(final) == count and 0 <= block - upto < WORTH_KEEPING:
            return
        self._written = (block, len(final))
        kept = FinalEvents(of=self._of, block=block, hash=digest, events=final)
        await to_thread.run_sync(keep_events, self._kept, kept)

    async def _hashes(self, *numbers: int) -> list[str]:
        return [str(block.get("hash", "")) for block in await self._blocks(numbers)]

    async def _blocks(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        asked: list[Call] = [("eth_getBlockByNumber", [hex(one), False]) for one in numbers]
        return [as_dict(_good(one)) for one in await self._rpc.batch(asked)]

    async def _between(self, start: int, end: int) -> list[RegistryEvent]:
        """The events of these blocks that count."""
        agent = "0x" + self._agent.agent.to_bytes(32, "big").hex()
        clients = ["0x" + "0" * 24 + one[2:] for one in self._clients]
        topics = (
            [reputation.GIVEN, agent, clients, reputation.TAG_TOPICS],
            [reputation.RESPONDED, agent, clients, clients],
            [reputation.REVOKED, agent, clients],
        )
        found: list[RegistryEvent] = []
        while start <= end:
            stop = min(start + self._span - 1, end)
            blocks = {"address": self._contract, "fromBlock": hex(start), "toBlock": hex(stop)}
            try:
                answers = await self._rpc.batch(
                    [("eth_getLogs", [blocks | {"topics": one}]) for one in topics]
                )
                found += self._counted(line for answer in answers for line in _good(answer))
            except (RpcError, Unreachable) as error:
                if error.retryable or start == stop:  # a node that does not answer has not hit a limit
                    raise
                self._span = max((stop - start + 1) // 2, 1)
                continue
            start = stop + 1
        return found

    def _counted(self, lines: Iterable[object]) -> list[RegistryEvent]:
        """The events that were asked for; a node may answer with others."""
        return [one for line in lines if (one := _event(as_dict(line), self._contract)) and self._asked(one)]

    def _asked(self, one: RegistryEvent) -> bool:
        return one.client in self._clients and one.sender in self._clients

    async def _dated(self, events: Sequence[RegistryEvent]) -> list[RegistryEvent]:
        """The same events with the time of their blocks."""
        numbers = sorted({one.block for one in events})
        times: dict[int, int] = {}
        for start in range(0, len(numbers), BLOCKS):
            part = numbers[start : start + BLOCKS]
            blocks = await self._blocks(part)
            times |= {number: as_int(one.get("timestamp")) for number, one in zip(part, blocks, strict=True)}
        return [replace(one, at=times[one.block]) for one in events]


async def withdraw_dismissed(log: FeedbackPort) -> None:
    """What a dismissal that is on the log may still lack; nothing where a log has no withdrawals."""
    if isinstance(log, ReputationLog):
        await log.withdraw_again()


def _is_dismissal(record: ItemRecord | None) -> bool:
    """Whether it takes a finding back for good."""
    return record is not None and record.kind == "dismiss" and not record.until


def _good(answer: Any) -> Any:  # noqa: ANN401  JSON of any shape
    if isinstance(answer, RpcError):
        raise answer
    return answer


def _event(line: dict[str, Any], registry: str) -> RegistryEvent | None:
    """An event of the registry; None for one that is not of this form, or that a reorganisation removed."""
    topics = line.get("topics")
    if str(line.get("address")).lower() != registry or not isinstance(topics, list) or line.get("removed"):
        return None
    data = as_bytes(line.get("data"))
    words = [as_bytes(one) for one in topics]
    if len(words) < 4 or any(len(one) != 32 for one in words):
        return None
    client = "0x" + words[2][12:].hex()
    sender, tags, text = client, ("", ""), None
    try:
        if topics[0] == reputation.GIVEN:
            index, _, _, tag1, tag2, _, uri, digest = codec.decode(reputation.GIVEN_DATA, data)
            tags, text = (tag1, tag2), reputation.text_in(uri, digest)
        elif topics[0] == reputation.RESPONDED:
            index, uri, digest = codec.decode(reputation.RESPONDED_DATA, data)
            sender, text = "0x" + words[3][12:].hex(), reputation.text_in(uri, digest)
        elif topics[0] == reputation.REVOKED:
            index, text = int.from_bytes(words[3], "big"), ""
        else:
            return None
    except codec.Malformed:
        return None
    block, place = as_int(line.get("blockNumber")), as_int(line.get("logIndex"))
    if text is None:
        return None
    return RegistryEvent(
        block=block, place=place, client=client, index=index, sender=sender, tags=tags, text=text
    )
