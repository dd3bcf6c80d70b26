"""The on-chain log: reads in pages that fit the node's gas, writes through the signer, and reads back."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from fleet.chain.node import abi, codec
from fleet.chain.node.codec import Entry
from fleet.chain.node.errors import Meaning, NodePatience
from fleet.chain.node.rpc import Rpc, is_too_much
from fleet.chain.ports import Charge, PostedEntry, Receipt, Role, SignerPort, TxRequest
from fleet.chain.signing.policy import check_text
from fleet.config import GasSection
from fleet.errors import FleetError, Refused, RpcError, TxFailed, Unreachable
from fleet.retry import NODE_BEHIND

START = 200
"""Initial page: 150 to 260 of the longest entries fit a usual gas cap (performance.md 2)."""
LARGER_AFTER = 64
"""Full pages after which a size that failed is tried once more: the next entries may be shorter."""


@dataclass(slots=True)
class PageSize:
    """How many entries to ask for, found by trying: four times the last while pages come whole, a middle once
    one has failed, and more again after some time."""

    entries: int = START
    _whole: int = 0
    """The largest page that came whole since the last one that failed."""
    _failed: int = 0
    """The smallest size that failed; 0 for none."""
    _pages: int = 0

    def failed(self, entries: int) -> None:
        """A page of this size was too much for the node; ask for `self.entries` now."""
        smaller = self._whole if 0 < self._whole < entries else max(1, entries // 2)
        self.entries, self._failed, self._whole, self._pages = smaller, entries, 0, 0

    def came_whole(self, entries: int) -> None:
        """A page brought as many entries as were asked for."""
        if entries < self.entries:
            return
        self._whole = entries
        self._pages += 1
        if not self._failed:
            self.entries = 4 * entries
        elif self._failed - entries > max(1, self._failed // 16):
            self.entries = (entries + self._failed) // 2
        elif self._pages >= LARGER_AFTER:
            self.entries, self._failed = entries + max(1, entries // 4), 0


PAGE = 200
"""Entries that a reader asks for at once; the node's own cap may be smaller."""
PAGES = 20_000
"""Maximum pages per search: bounds a node whose log never ends."""

STEP_BACK_S = 30.0
"""Seconds that a node must stay at one block, below a block seen before, until its chain is believed.

A lagging replica moves on in this time. Even if one stalls for longer, nothing is posted twice: a transaction
signed by its count reuses the nonce of the one that it has not seen."""

_LAG = {Meaning.FAULTY: NODE_BEHIND}
"""Another answer may come from a replica that does not lag."""
_SUBMIT = abi.FUNCTIONS["submitFeedback"]
_RANGE = abi.FUNCTIONS["feedbackRange"]


class FeedbackLog:
    """The log of one contract that has `submitFeedback`. Without a signer it can only be read.

    Entries are hostile: anyone can write them. Only blocks with `confirmations` blocks on top are read.
    """

    def __init__(
        self,
        rpc: Rpc,
        contract: str,
        gas: GasSection,
        signer: SignerPort | None = None,
        *,
        confirmations: int = 0,
        step_back_s: float = STEP_BACK_S,
    ) -> None:
        self._rpc = rpc
        self._contract = contract
        self._gas = gas
        self._signer = signer
        self._size = PageSize()
        self._confirmations = confirmations
        self._head = 0
        self._floor = 0
        self._gone = 0
        self._low = (0, 0.0)
        self._step_back_s = step_back_s

    @property
    def url(self) -> str:
        """The node that is asked."""
        return self._rpc.url

    def seen(self, block: int) -> None:
        """Note that our entry was mined in this block: a node below it is not believed."""
        if block > self._gone:
            self._floor = max(self._floor, block)

    async def head(self) -> int:
        """Number of the node's newest block."""
        return await self._rpc.head()

    async def count(self) -> int:
        """Number of entries in the log now."""
        return await self._count(await self._block())

    async def range(self, start: int, count: int) -> list[Entry]:
        """At most `count` entries from `start`; fewer at the end of the log, none past it."""
        return await self._range(start, count, await self._block())

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        """Index of the newest entry with exactly this text from this sender at or after `since`."""
        found, start = None, since
        for _ in range(PAGES):
            entries = await self.range(start, PAGE)
            for index, entry in enumerate(entries, start):
                if entry.text == text and entry.sender == sender.lower():
                    found = index
            start += len(entries)
            if not entries:
                return found
        raise Unreachable(f"the log has no end within {PAGES} pages")

    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry:
        """Write one entry (1 to 2048 bytes) under the fleet's identity and read it back.

        A run pays for its entries; an entry outside a run is free.
        """
        outcome = (await self.post_many([text], run=run, charge=charge))[0]
        if isinstance(outcome, FleetError):
            raise outcome
        return outcome

    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]:
        """Write entries with consecutive nonces; a failed entry is an error in its place.

        If one of the texts is empty or too long, nothing is sent (Refused, rule `text`).
        """
        if self._signer is None:
            raise Refused("this log was opened without a signer", rule="key")
        groups = await self._requests(texts, run, charge)
        before = await self.count()
        outcomes = []
        done = await self._signer.submit_many([one for group in groups for one in group])
        for group in groups:
            outcomes.append(done[0])
            done = done[len(group) :]
            self.seen(outcomes[-1].block if isinstance(outcomes[-1], Receipt) else 0)
        # indices at or after `since` of our own entries, by text, oldest first
        sender = self._signer.address(Role.IDENTITY) if self._signer else ""
        total = await self.count()
        start = before if before <= total else 0  # the log was cleared: indices restarted
        places: defaultdict[bytes, deque[int]] = defaultdict(deque)
        while start < total and (entries := await self.range(start, PAGE)):
            for index, entry in enumerate(entries, start):
                if entry.sender == sender:
                    places[entry.text.encode()].append(index)
            start += len(entries)
        return [
            _posted(outcome, places[text.encode()]) for text, outcome in zip(texts, outcomes, strict=True)
        ]

    def request(self, text: str, *, run: str = "", charge: Charge = "reports") -> TxRequest:
        """The transaction that would post this text; Refused (rule `text`) when no log takes it."""
        size = len(check_text(text))
        return TxRequest(
            role=Role.IDENTITY,
            to=self._contract,
            data=_SUBMIT.encode(text),
            gas=self._gas.feedback_base + self._gas.feedback_per_byte * size,
            charge=charge if run else "none",
            run=run,
            purpose="post",
        )

    async def _requests(self, texts: Sequence[str], run: str, charge: Charge) -> list[list[TxRequest]]:
        """The transactions of each text: first the one that posts it."""
        return [[self.request(text, run=run, charge=charge)] for text in texts]

    async def _count(self, block: str) -> int:
        return int(await self._rpc.view(self._contract, "feedbackCount", block=block))

    async def _block(self) -> str:
        """The newest block that counts; a node behind a known block is waited for, then Unreachable."""
        patience = NodePatience(_LAG if self._step_back_s > NODE_BEHIND.total_s else {})
        while True:
            try:
                if not self._confirmations and not self._floor:
                    return "latest"
                head = await self.head()
                if self._confirmations and head + self._confirmations < self._head:
                    self._below(head, f"the node is at block {head}, but has been at {self._head} before")
                self._head = max(head, self._head)
                block = max(head - self._confirmations, 0)
                if block < self._floor:
                    self._below(
                        head, f"the node is at block {block}, an entry of ours was mined in {self._floor}"
                    )
                return hex(block)
            except Unreachable as error:
                if not await patience.wait(error):
                    raise

    def _below(self, head: int, why: str) -> None:
        """Unreachable, until the node has stayed at `head` so long that its chain has stepped back."""
        now = time.monotonic()
        if self._low[0] != head:
            self._low = (head, now)
        if now - self._low[1] < self._step_back_s:
            raise Unreachable(why)
        self._gone = max(self._gone, self._floor, self._head)
        self._head, self._floor = head, 0

    async def _range(self, start: int, count: int, block: str) -> list[Entry]:
        """Read one page of at most the size that this node can return."""
        while True:
            asked = min(count, self._size.entries)
            try:
                # the answer as bytes: web3's formatters take longer than everything else here (mark B7)
                call = {"to": self._contract, "data": "0x" + _RANGE.encode(start, asked).hex()}
                answer = await self._rpc.call_bytes("eth_call", [call, block])
                break
            except (RpcError, Unreachable) as error:
                if not is_too_much(error):
                    raise
                self._size.failed(asked)
                if (
                    asked == 1 or error.retryable
                ):  # it was silent for its whole time: the next try asks for less
                    raise
        try:
            entries = codec.decode_feedback_range(answer)
        except codec.Malformed as error:
            raise Unreachable(f"invalid answer to feedbackRange: {error}") from None
        if len(entries) > asked:
            raise Unreachable("feedbackRange returned more entries than requested")
        if len(entries) == asked:
            self._size.came_whole(asked)
        return entries


def _posted(outcome: Receipt | FleetError, places: deque[int]) -> PostedEntry | FleetError:
    if isinstance(outcome, FleetError):
        return outcome
    try:
        outcome.check()
    except TxFailed as error:
        return error
    if places:  # a text posted twice makes two entries
        return PostedEntry(tx=outcome.tx, index=places.popleft(), gas_used=outcome.gas_used)
    return TxFailed(
        f"transaction {outcome.tx} succeeded, but the log does not hold the entry",
        kind="read_back",
        tx=outcome.tx,
        gas_used=outcome.gas_used,
    )
