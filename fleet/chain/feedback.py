"""The on-chain log: read in pages that fit the node's gas, written through the signer, always read back."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Sequence

from fleet.chain import abi, codec
from fleet.chain.codec import Entry
from fleet.chain.policy import check_text
from fleet.chain.ports import Charge, PostedEntry, Receipt, Role, SignerPort, TxRequest
from fleet.chain.rpc import Rpc, is_oog
from fleet.config import GasSection
from fleet.errors import FleetError, Refused, RpcError, TxFailed, Unreachable

PAGE = 200
"""Entries asked for at first: 150 to 260 of the longest fit a usual gas cap (performance.md 2)."""
PAGES = 20_000
"""Read at most in search of an entry: a node that never stops answering is left alone after them."""

STEP_BACK_S = 30.0
"""How long a node must stand still, below a block that was seen before, until its chain is what counts.

A replica that lags moves on meanwhile. Should one stand still that long, believing it posts nothing twice:
what is signed by its count has the nonce of what it has not seen."""

_SUBMIT = abi.FUNCTIONS["submitFeedback"]
_RANGE = abi.FUNCTIONS["feedbackRange"]


class FeedbackLog:
    """One diamond's log. Without a signer it can only be read.

    Entries are hostile: anybody can write them. `confirmations` blocks must be on top of what is read.
    """

    def __init__(
        self,
        rpc: Rpc,
        diamond: str,
        gas: GasSection,
        signer: SignerPort | None = None,
        *,
        page: int = PAGE,
        confirmations: int = 0,
        step_back_s: float = STEP_BACK_S,
    ) -> None:
        self._rpc = rpc
        self._diamond = diamond
        self._gas = gas
        self._signer = signer
        self._page = page
        self._confirmations = confirmations
        self._head = 0
        self._floor = 0
        self._gone = 0
        self._low = (0, 0.0)
        self._step_back_s = step_back_s

    def seen(self, block: int) -> None:
        """An entry of ours was mined in this block: a node that has not heard of it is not believed."""
        if block > self._gone:
            self._floor = max(self._floor, block)

    async def head(self) -> int:
        """Number of the node's newest block."""
        return await self._rpc.head()

    async def count(self) -> int:
        """Entries in the log now."""
        return int(await self._rpc.view(self._diamond, "feedbackCount", block=await self._block()))

    async def range(self, start: int, count: int) -> list[Entry]:
        """Entries from `start`, at most `count`; fewer at the end of the log, none behind it."""
        return await self._range(start, count, await self._block())

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        """Index of the newest entry with exactly this text from this sender at or after `since`."""
        found, start = None, since
        for _ in range(PAGES):
            entries = await self.range(start, self._page)
            for index, entry in enumerate(entries, start):
                if entry.text == text and entry.sender == sender.lower():
                    found = index
            start += len(entries)
            if not entries:
                return found
        raise Unreachable(f"the log has no end within {PAGES} pages")

    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry:
        """Write one entry (1 to 2048 bytes) under the fleet's identity and read it back.

        A run's entry is charged to it; what is said outside a run, to nobody.
        """
        outcome = (await self.post_many([text], run=run, charge=charge))[0]
        if isinstance(outcome, FleetError):
            raise outcome
        return outcome

    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]:
        """Write entries with consecutive nonces; one that failed is an error in its place.

        Nothing is sent when one of the texts is empty or too long (Refused, rule `text`).
        """
        if self._signer is None:
            raise Refused("this log was opened without a signer", rule="key")
        requests = [self.request(text, run=run, charge=charge) for text in texts]
        before = await self.count()
        outcomes = await self._signer.submit_many(requests)
        for outcome in outcomes:
            self.seen(outcome.block if isinstance(outcome, Receipt) else 0)
        places = await self._places(before)
        return [
            _posted(outcome, places[text.encode()]) for text, outcome in zip(texts, outcomes, strict=True)
        ]

    def request(self, text: str, *, run: str = "", charge: Charge = "reports") -> TxRequest:
        """The transaction that would post this text."""
        size = len(check_text(text))
        gas = self._gas.feedback_base + self._gas.feedback_per_byte * size
        return TxRequest(
            role=Role.IDENTITY,
            to=self._diamond,
            data=_SUBMIT.encode(text),
            gas=gas,
            charge=charge if run else "none",
            run=run,
            purpose="post",
        )

    async def _places(self, since: int) -> defaultdict[bytes, deque[int]]:
        """Indices at or after `since` of our own entries, by text, oldest first."""
        sender = self._signer.address(Role.IDENTITY) if self._signer else ""
        total = await self.count()
        start = since if since <= total else 0  # cleared meanwhile: indices restarted
        places: defaultdict[bytes, deque[int]] = defaultdict(deque)
        while start < total and (entries := await self.range(start, self._page)):
            for index, entry in enumerate(entries, start):
                if entry.sender == sender:
                    places[entry.text.encode()].append(index)
            start += len(entries)
        return places

    async def _block(self) -> str:
        """The newest block that counts; Unreachable when the node is behind what is known to have been."""
        if not self._confirmations and not self._floor:
            return "latest"
        head = await self.head()
        if self._confirmations and head + self._confirmations < self._head:
            self._below(head, f"the node is at block {head}, but has been at {self._head} before")
        self._head = max(head, self._head)
        block = max(head - self._confirmations, 0)
        if block < self._floor:
            self._below(head, f"the node is at block {block}, an entry of ours was mined in {self._floor}")
        return hex(block)

    def _below(self, head: int, why: str) -> None:
        """Unreachable, until the node has stood still for so long that its chain must have stepped back."""
        now = time.monotonic()
        if self._low[0] != head:
            self._low = (head, now)
        if now - self._low[1] < self._step_back_s:
            raise Unreachable(why)
        self._gone = max(self._gone, self._floor, self._head)
        self._head, self._floor = head, 0

    async def _range(self, start: int, count: int, block: str) -> list[Entry]:
        """One page; half of it, and half again, while the node has not enough gas for it."""
        while True:
            try:
                answer = await self._rpc.eth_call(self._diamond, _RANGE.encode(start, count), block=block)
                break
            except RpcError as error:
                # A facet that runs dry under its diamond looks like a revert without a reason.
                silent = "revert" in str(error).lower() and error.data in ("", "0x")
                if count == 1 or not (silent or is_oog(error)):
                    raise
                count = (count + 1) // 2
                self._page = count
        self._page += self._page < PAGE  # grows back: the next entries may be shorter
        try:
            entries = codec.decode_feedback_range(answer)
        except codec.Malformed as error:
            raise Unreachable(f"feedbackRange answered nonsense: {error}") from None
        if len(entries) > count:
            raise Unreachable("feedbackRange answered more entries than were asked for")
        return entries


def _posted(outcome: Receipt | FleetError, places: deque[int]) -> PostedEntry | FleetError:
    if isinstance(outcome, FleetError):
        return outcome
    try:
        outcome.check()
    except TxFailed as error:
        return error
    if places:  # the same text twice is two entries
        return PostedEntry(tx=outcome.tx, index=places.popleft(), gas_used=outcome.gas_used)
    return TxFailed(
        f"transaction {outcome.tx} succeeded, but the log does not hold the entry",
        kind="read_back",
        tx=outcome.tx,
        gas_used=outcome.gas_used,
    )
