"""The only place that signs: judge, spend, sign, journal, broadcast, wait; in that order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from fleet.chain import abi, codec
from fleet.chain.hexes import as_int
from fleet.chain.judge import Fences, Judge, Node
from fleet.chain.keys import Secret, address_of
from fleet.chain.lane import Lane, Lanes
from fleet.chain.ports import Receipt, Role, RunScope, Settled, TxJournal, TxRequest
from fleet.chain.receipts import Receipts, minted_id
from fleet.chain.rpc import Rpc
from fleet.chain.tx import Signed, Unsigned, parse, sign, tx_hash
from fleet.config import ChainSection
from fleet.errors import ChainError, FleetError, Refused, RpcError, TxFailed, Unreachable

BATCH = 50
"""Transactions per broadcast request; larger batches win nothing (performance.md 4)."""
SEND_TRIES = 3
"""Attempts to reach the node with bytes that are journalled already."""
NONCE_TRIES = 6
"""Attempts to find a nonce that nobody else has taken meanwhile."""
JITTER_S = 0.05
"""Two senders in step would collide every time."""

NOT_SENT = "never reached the chain, not sent again"

_KNOWN = ("already known", "already imported", "already exists", "known transaction")
_TAKEN = ("nonce too low", "replacement transaction underpriced", "could not replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The standing keys; throwaway keys come with each run's scope."""

    identity: Secret | None = None
    sponsor: Secret | None = None
    operator: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A journalled transaction that the node has accepted."""

    effect: int
    hash: str
    unsigned: Unsigned
    sender: str
    request: TxRequest


@dataclass(frozen=True, slots=True)
class _Draft:
    place: int
    unsigned: Unsigned
    signed: Signed


class Signer:
    """Signs what the policy permits. One instance per chain: it owns the nonces of every key it holds.

    Raises Refused before anything left the process, WrongTarget when the node changed chains, RpcError
    when the node refused the transaction, TxFailed when it failed or no block took it in time,
    Unreachable when nobody knows: then the intent stays open for `settle_raw`.
    """

    def __init__(
        self, rpc: Rpc, chain: ChainSection, journal: TxJournal, *, keys: Keys, fences: Fences,
        deadline_s: float = 60.0,
    ) -> None:  # fmt: skip
        self._rpc = rpc
        self._chain_id = chain.id
        self._diamond = chain.diamond.lower()
        self._journal = journal
        self._standing = {
            Role.IDENTITY: keys.identity,
            Role.SPONSOR: keys.sponsor,
            Role.OPERATOR: keys.operator,
        }
        self._judge = Judge(rpc, chain, fences, self.address(Role.SPONSOR))
        self._receipts = Receipts(rpc, deadline_s=deadline_s, confirmations=chain.confirmations)
        self._lanes = Lanes(rpc)

    def open_run(self, scope: RunScope) -> None:
        """Let requests that name this run be judged against this scope."""
        self._judge.scopes[scope.run] = scope

    def close_run(self, run: str) -> None:
        """Forget the run: nothing more is signed for it."""
        self._judge.scopes.pop(run, None)

    def address(self, role: Role) -> str:
        """Address of a standing key, "" when this process holds none."""
        key = self._standing[role]
        return address_of(key) if key else ""

    async def max_fee(self) -> int:
        """Wei per gas that the next transaction offers: twice the base fee, within the cap."""
        return self._judge.going_rate(await self._judge.base_fee())

    async def check(self, request: TxRequest) -> None:
        """Refused when `submit` would refuse this now; nothing is charged or signed."""
        sender = address_of(self._key(request))
        self._judge.check(request, sender, await self._judge.look(sender, [request]))

    async def submit(self, request: TxRequest, *, check: bool = True) -> Receipt:
        """One transaction to its receipt. With `check`, a receipt of status 0 raises TxFailed."""
        outcome = (await self.submit_many([request]))[0]
        if isinstance(outcome, FleetError):
            raise outcome
        return outcome.check() if check else outcome

    async def submit_many(self, requests: Sequence[TxRequest]) -> list[Receipt | FleetError]:
        """Transactions of one key with consecutive nonces; a failed one is an error in its place."""
        return await self.collect(await self.broadcast(requests))

    async def broadcast(self, requests: Sequence[TxRequest]) -> list[Sent | FleetError]:
        """The first half of `submit_many`: until the node has accepted them."""
        if len({(request.role, request.run, request.key) for request in requests}) != 1:
            raise ValueError("requests of one broadcast share one key")
        key = self._key(requests[0])
        sender = address_of(key)
        for request in requests:
            await self._judge.admit(request, sender)
        lane = self._lanes.of(sender)
        sent: list[Sent | FleetError] = []
        async with lane.lock:
            for start in range(0, len(requests), BATCH):
                try:
                    sent += await self._chunk(lane, requests[start : start + BATCH], key, sender)
                except FleetError as error:
                    if not start:
                        raise
                    sent.append(error)
                if any(isinstance(item, FleetError) for item in sent):
                    break  # a gap: what came after it could not be mined
        return sent + [_unsent() for _ in requests[len(sent) :]]

    async def collect(self, sent: Sequence[Sent | FleetError]) -> list[Receipt | FleetError]:
        """The second half of `submit_many`: until there is a receipt, or the deadline."""
        hashes = [item.hash for item in sent if isinstance(item, Sent)]
        found = dict(zip(hashes, await self._receipts.wait(hashes), strict=True))
        done: list[Receipt | FleetError] = []
        for item in sent:
            done.append(await self._close(item, found[item.hash]) if isinstance(item, Sent) else item)
        return done

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool = True) -> Settled:
        """Find out what became of journalled bytes; send the same bytes again when they never arrived.

        Only what today's dial permits is sent again; `submitFeedback` and clean-up always are.
        """
        unsigned, sender = parse(raw)
        tx = tx_hash(raw)
        found = (await self._receipts.lookup([tx]))[0]
        if found is None and not await self._receipts.known(tx):
            used = as_int(await self._rpc.call("eth_getTransactionCount", [sender, "latest"]))
            if used > unsigned.nonce:
                return Settled(state="failed", tx=tx, reason="another transaction used its nonce")
            if not rebroadcast or not self._judge.may_resend(unsigned):
                return Settled(state="failed", tx=tx, reason=NOT_SENT)
            answer = (await self._push([raw]))[0]
            if not await self._accepted(answer, tx):
                return Settled(state="failed", tx=tx, reason=str(answer))
        found = found or (await self._receipts.wait([tx]))[0]
        if found is None:
            return Settled(state="pending", tx=tx, reason="the node has it, but no block does")
        return Settled(state="mined", tx=tx, receipt=await self._receipts.explain(found, unsigned, sender))

    def _key(self, request: TxRequest) -> Secret:
        if request.role is Role.THROWAWAY:
            return self._judge.scope(request.run).keys.get(request.key)
        key = self._standing[request.role]
        if key is None:
            raise Refused(f"this process holds no {request.role} key", rule="key")
        return key

    async def _chunk(
        self, lane: Lane, requests: Sequence[TxRequest], key: Secret, sender: str
    ) -> list[Sent | FleetError]:
        """One batch. An element whose nonce somebody else took meanwhile is signed again, a few times."""
        done: dict[int, Sent | FleetError] = {}
        for attempt in range(NONCE_TRIES):
            left = [place for place in range(len(requests)) if place not in done]
            if not left:
                break
            await anyio.sleep(random.uniform(0, JITTER_S * attempt))
            node = await self._judge.look(sender, [requests[place] for place in left])
            nonce = await lane.first(node.pending)
            drafts = [
                self._draft(place, requests[place], key, sender, node, nonce + step)
                for step, place in enumerate(left)
            ]
            done.update(await self._launch(lane, requests, drafts, sender))
        taken = RpcError("somebody else keeps taking this key's nonces")
        return [done.get(place, taken) for place in range(len(requests))]

    def _draft(
        self, place: int, request: TxRequest, key: Secret, sender: str, node: Node, nonce: int
    ) -> _Draft:
        """Judge again and sign. Nothing is awaited in between, so the dial cannot move in between."""
        self._judge.check(request, sender, node)
        if request.role is Role.SPONSOR:
            self._judge.scope(request.run).stipend_wei += request.value
        unsigned = Unsigned(
            chain_id=self._chain_id, nonce=nonce, tip=request.tip,
            max_fee=self._judge.fee(request, node.base_fee),
            gas=request.gas, to=request.to.lower(), value=request.value, data=request.data,
        )  # fmt: skip
        return _Draft(place, unsigned, sign(unsigned, key))

    async def _launch(
        self, lane: Lane, requests: Sequence[TxRequest], drafts: Sequence[_Draft], sender: str
    ) -> dict[int, Sent | FleetError]:
        """Journal, then broadcast. A place whose nonce was taken is missing from the answer."""
        sents = {}
        for draft in drafts:
            request = requests[draft.place]
            meta = {
                "sender": sender, "nonce": draft.unsigned.nonce, "gas": draft.unsigned.gas,
                "to": draft.unsigned.to, "role": str(request.role), "key": request.key,
            }  # fmt: skip
            effect = await self._journal.intend_tx(
                request.run, request.purpose, draft.signed.hash, draft.signed.raw, meta
            )
            sents[draft.place] = Sent(
                effect=effect, hash=draft.signed.hash, unsigned=draft.unsigned, sender=sender, request=request
            )
        answers = await self._push([draft.signed.raw for draft in drafts])
        done: dict[int, Sent | FleetError] = {}
        for (place, sent), answer in zip(sents.items(), answers, strict=True):
            if await self._accepted(answer, sent.hash):
                lane.sent(sent.unsigned.nonce)
                done[place] = sent
                continue
            await self._journal.tx_done(sent.effect, "failed", {"reason": str(answer)})
            if not _says(answer, _TAKEN):
                done[place] = (
                    answer if isinstance(answer, RpcError) else RpcError("the node took another hash")
                )
        return done

    async def _push(self, raws: Sequence[bytes]) -> list[object]:
        """Broadcast. The same bytes may be sent again safely, so a lost answer is no reason to give up."""
        calls = [("eth_sendRawTransaction", ["0x" + raw.hex()]) for raw in raws]
        for attempt in range(1, SEND_TRIES):
            try:
                return await self._rpc.batch(calls)
            except Unreachable as error:
                if not error.retryable:
                    raise
                await anyio.sleep(0.1 * attempt)
        return await self._rpc.batch(calls)

    async def _accepted(self, answer: object, tx: str) -> bool:
        """True when the node has these bytes, whatever it said about them."""
        if answer == tx or _says(answer, _KNOWN):
            return True
        return _says(answer, _TAKEN) and await self._receipts.known(tx)

    async def _close(self, sent: Sent, receipt: Receipt | None) -> Receipt | FleetError:
        if receipt is None:
            return TxFailed(f"transaction {sent.hash} is in no block yet", kind="not_mined", tx=sent.hash)
        receipt = await self._receipts.explain(receipt, sent.unsigned, sent.sender)
        self._note_mint(sent, receipt)
        data = {
            "status": receipt.status, "gas_used": receipt.gas_used, "block": receipt.block,
            "failure": receipt.failure, "reason": receipt.reason,
        }  # fmt: skip
        await self._journal.tx_done(sent.effect, "done" if receipt.status == 1 else "failed", data)
        return receipt

    def _note_mint(self, sent: Sent, receipt: Receipt) -> None:
        """An id belongs to the run only when the diamond itself says that this key registered this name."""
        if sent.request.role is not Role.THROWAWAY or sent.unsigned.data[:4] != _REGISTER.selector:
            return
        scope = self._judge.scopes.get(sent.request.run)
        token_id = minted_id(receipt, self._diamond, sent.sender)
        if scope is not None and token_id:
            (scope.minted[token_id],) = codec.decode(_REGISTER.inputs, sent.unsigned.data[4:])


_REGISTER = abi.FUNCTIONS["register"]


def _says(answer: object, phrases: Sequence[str]) -> bool:
    text = str(answer).lower()
    return isinstance(answer, RpcError) and any(phrase in text for phrase in phrases)


def _unsent() -> FleetError:
    return ChainError("not sent: an earlier transaction of the same batch was refused")
