"""The only place that signs: judge, spend, sign, journal, broadcast, wait, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import CLOCK_BOOTTIME, clock_gettime, time
from typing import Any

import anyio

from fleet.chain.keys import Secret, address_of
from fleet.chain.node import abi, codec
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import (
    Authorisation,
    Charge,
    PaymentRequest,
    Receipt,
    Role,
    RunScope,
    Settlement,
    TxJournal,
    TxRequest,
)
from fleet.chain.signing import delegate, payment
from fleet.chain.signing.broadcast import (
    Broadcast,
    NonceBook,
    Receipts,
    SenderNonces,
    is_taken,
    minted_id,
    refusal,
)
from fleet.chain.signing.judge import Judge, NodeFacts, SigningLimits
from fleet.chain.signing.recovery import Recovery
from fleet.chain.signing.tx import Authorization, SignedTx, UnsignedTx, authorize, parse, sign
from fleet.config import ChainSection
from fleet.errors import ChainError, FleetError, Refused, RpcError, TryAgain, TxFailed
from fleet.retry import NONCE_TAKEN
from fleet.store import failpoints
from fleet.store.journal import Journal

BATCH = 50
"""Transactions per broadcast request; larger batches gain nothing (performance.md 4)."""
FRESH_S = 2.0
"""Maximum age of an intent when its bytes are sent, including time in which the machine sleeps."""
FRESH_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The standing keys; throwaway keys come with each run's scope."""

    identity: Secret | None = None
    sponsor: Secret | None = None
    operator: Secret | None = None
    purse: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedTx:
    """A journalled transaction that the node has accepted."""

    effect: int
    hash: str
    unsigned: UnsignedTx
    sender: str
    request: TxRequest


@dataclass(frozen=True, slots=True)
class _Draft:
    place: int
    unsigned: UnsignedTx
    signed: SignedTx


class Signer:
    """Signs what the policy permits. One instance per chain: it owns the nonces of every key it holds.

    Raises Refused before anything is sent, WrongTarget when the node changed chains, RpcError when the
    node refused the transaction, TxFailed when it failed or was not mined in time, Unreachable or
    TryAgain when the outcome is unknown: then the intent stays open for `settle_raw`. LostRun when a
    peer owns the run: then the peer settles the intent.
    """

    def __init__(
        self,
        rpc: Rpc,
        chain: ChainSection,
        journal: TxJournal,
        *,
        keys: Keys,
        fences: SigningLimits,
        deadline_s: float = 60.0,
    ) -> None:
        self._chain_id = chain.id
        self._diamond = chain.diamond.lower()
        self._journal = journal
        self._standing = {
            Role.IDENTITY: keys.identity,
            Role.SPONSOR: keys.sponsor,
            Role.OPERATOR: keys.operator,
        }
        self._purse = keys.purse
        self._judge = Judge(rpc, chain, fences, self.address(Role.SPONSOR))
        self._receipts = Receipts(rpc, deadline_s=deadline_s, confirmations=chain.confirmations)
        self._sender = Broadcast(rpc, self._receipts)
        self._recovery = Recovery(rpc, self._judge, self._receipts, self._sender, journal)
        self._nonces = NonceBook(rpc)

    def open_run(self, scope: RunScope) -> None:
        """Judge requests that name this run against this scope."""
        self._judge.scopes[scope.run] = scope

    def close_run(self, run: str) -> None:
        """Forget the run: nothing more is signed for it."""
        self._judge.scopes.pop(run, None)

    def address(self, role: Role) -> str:
        """Address of a standing key, "" when this process holds none."""
        key = self._standing[role]
        return address_of(key) if key else ""

    @property
    def author(self) -> str:
        """The sender of this fleet's entries on a log; the zero address while nothing is signed here."""
        return self.address(Role.IDENTITY) or ZERO_ADDRESS

    async def max_fee(self) -> int:
        """Wei per gas that the next transaction offers: twice the base fee, within the cap."""
        return self._judge.going_rate(await self._judge.base_fee())

    async def check(self, request: TxRequest) -> None:
        """Refused when `submit` would refuse this now; nothing is charged or signed."""
        sender = address_of(self._key(request))
        actor = self._actor(request, sender)
        key = actor if request.sponsored else ""
        self._judge.check(request, actor, await self._judge.look(sender, [request], key))

    async def admit_entry(self, text: str, *, run: str, charge: Charge) -> str:
        """Judge and charge an entry of a log that takes no signature; return its sender."""
        await self._judge.admit_entry(text, run=run, charge=charge)
        return self.author

    async def pay(self, asked: PaymentRequest) -> tuple[Authorisation, str]:
        """An authorisation of the purse and its signature, recorded before they leave: whoever has them can
        take the payment once, and nothing else. What was signed counts as paid, taken or not."""
        if self._purse is None:
            raise Refused("this process holds no purse", rule="key")
        purse = address_of(self._purse)
        scope = self._judge.scope(asked.run)
        scope.paid = max(scope.paid, await self._journal.paid(asked.run))  # a run that was cut off goes on
        await self._judge.admit_payment(asked, purse)
        held = await self._judge.look_at_purse(purse)
        now, nonce = int(time()), payment.nonce_of(asked.quote)
        self._judge.check_payment(asked, purse, held)  # no await from here to the signature
        scope.paid += asked.value
        made = payment.authorisation(asked, purse, now, nonce)
        signature = self._purse.sign(payment.digest(made, self._judge.limits.payments, self._chain_id))
        told = {"payee": made.payee, "value": made.value, "valid_before": made.valid_before}
        await self._journal.note_payment(asked.run, f"0x{nonce.hex()}", told)
        self._judge.ask()
        return made, f"0x{signature[:64].hex()}{signature[64] + 27:02x}"

    async def submit(self, request: TxRequest, *, check: bool = True) -> Receipt:
        """Submit one transaction and await its receipt. With `check`, status 0 raises TxFailed."""
        outcome = (await self.submit_many([request]))[0]
        if isinstance(outcome, FleetError):
            raise outcome
        return outcome.check() if check else outcome

    async def submit_many(self, requests: Sequence[TxRequest]) -> list[Receipt | FleetError]:
        """Submit transactions of one key with consecutive nonces; a failed one is an error in its place."""
        return await self.collect(await self.broadcast(requests))

    async def broadcast(self, requests: Sequence[TxRequest]) -> list[AcceptedTx | FleetError]:
        """The first half of `submit_many`, up to acceptance by the node."""
        if len({(request.role, request.run, request.key) for request in requests}) != 1:
            raise ValueError("requests of one broadcast share one key")
        if len(requests) > 1 and any(request.sponsored for request in requests):
            raise ValueError("a sponsored key makes one call at a time")
        key = self._key(requests[0])
        sender = address_of(key)
        for request in requests:
            await self._judge.admit(request, self._actor(request, sender))
        nonces = self._nonces.of(sender)
        sent: list[AcceptedTx | FleetError] = []
        async with nonces.lock:
            for start in range(0, len(requests), BATCH):
                try:
                    sent += await self._chunk(nonces, requests[start : start + BATCH], key, sender)
                except FleetError as error:
                    if not start:
                        raise
                    sent.append(error)
                if any(isinstance(item, FleetError) for item in sent):
                    break  # a gap: later nonces could not be mined
        unsent = ChainError("not sent: an earlier transaction of the same batch was refused")
        return sent + [unsent for _ in requests[len(sent) :]]

    async def collect(self, sent: Sequence[AcceptedTx | FleetError]) -> list[Receipt | FleetError]:
        """The second half of `submit_many`, up to a receipt or the deadline."""
        hashes = [item.hash for item in sent if isinstance(item, AcceptedTx)]
        found = dict(zip(hashes, await self._receipts.wait(hashes), strict=True))
        done: list[Receipt | FleetError] = []
        for item in sent:
            done.append(await self._close(item, found[item.hash]) if isinstance(item, AcceptedTx) else item)
        return done

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool = True) -> Settlement:
        """Determine the state of journalled bytes; resend them if they never arrived.

        Resends only what today's dial permits, but entries of the log and clean-up always.
        """
        (settled,) = await self._recovery.settle_all([raw], rebroadcast=rebroadcast)
        return settled

    async def settle_all(self, raws: Sequence[bytes]) -> list[Settlement]:
        """The same of several of one key, in order of nonce: all that is missing is sent, or none."""
        return await self._recovery.settle_all(raws)

    async def look_up(self, hashes: Sequence[str]) -> tuple[int, list[Receipt | None]]:
        """The newest block, and receipts by hash (None without one that counts)."""
        return await self._receipts.look(hashes)

    async def is_dead(self, raw: bytes) -> bool:
        """Whether journalled bytes can no longer be mined."""
        return await self._recovery.is_dead(raw)

    def _key(self, request: TxRequest) -> Secret:
        """The key that signs the transaction."""
        if request.role is Role.THROWAWAY and not request.sponsored:
            return self._judge.scope(request.run).keys.get(request.key)
        role = Role.SPONSOR if request.sponsored else request.role
        key = self._standing[role]
        if key is None:
            raise Refused(f"this process holds no {role} key", rule="key")
        return key

    def _actor(self, request: TxRequest, sender: str) -> str:
        """Who makes the call: the sender, or the throwaway key in whose stead the sponsor sends."""
        if not request.sponsored:
            return sender
        address = self._judge.scope(request.run).keys.addresses().get(request.key)
        if address is None:
            raise Refused(f"this run has no key {request.key!r}", rule="key")
        return address

    async def _chunk(
        self, nonces: SenderNonces, requests: Sequence[TxRequest], key: Secret, sender: str
    ) -> list[AcceptedTx | FleetError]:
        """Send one batch. An element whose nonce another sender took is signed again, a few times.

        A repeated intent gets its earlier nonce: only one of the two can ever be mined.
        """
        done: dict[int, AcceptedTx | FleetError] = {}
        held = await self._recovery.held(requests, sender)
        for attempt in range(NONCE_TAKEN.attempts):
            left = [place for place in range(len(requests)) if place not in done]
            if not left:
                break
            if attempt:
                await anyio.sleep(NONCE_TAKEN.pause(attempt - 1))
            actor = self._actor(requests[0], sender) if requests[0].sponsored else ""
            node = await self._judge.look(sender, [requests[place] for place in left], actor)
            nonce = await nonces.first(node.pending) if held is None else held
            drafts = [
                self._draft(place, requests[place], key, sender, node, nonce + step)
                for step, place in enumerate(left)
            ]
            done.update(await self._launch(nonces, requests, drafts, sender))
        taken = RpcError("another sender keeps taking this key's nonces")
        return [done.get(place, taken) for place in range(len(requests))]

    def _draft(
        self, place: int, request: TxRequest, key: Secret, sender: str, node: NodeFacts, nonce: int
    ) -> _Draft:
        """Judge again and sign, without an await in between: the dial cannot change there."""
        self._judge.check(request, self._actor(request, sender), node)
        unsigned = UnsignedTx(
            chain_id=self._chain_id,
            nonce=nonce,
            tip=request.tip,
            max_fee=self._judge.fee(request, node.base_fee),
            gas=request.gas,
            to=request.to.lower(),
            value=request.value,
            data=request.data,
        )
        if request.sponsored:
            unsigned = self._sponsored(unsigned, request, sender, node)
        if request.fee_paid:
            unsigned = replace(unsigned, payer=self.address(Role.SPONSOR))
            self._judge.check_fee_paid(unsigned, request, sender, node)
        paid = request.sponsored or request.fee_paid
        if paid or request.role is Role.SPONSOR:
            cost = unsigned.gas * unsigned.max_fee if paid or request.data else 0
            self._judge.scope(request.run).stipend_wei += request.value + cost
        payer = self._standing[Role.SPONSOR] if request.fee_paid else None
        return _Draft(place, unsigned, sign(unsigned, key, payer))

    def _sponsored(self, direct: UnsignedTx, request: TxRequest, sponsor: str, node: NodeFacts) -> UnsignedTx:
        """What the sponsor sends in the stead of a key, judged with all that is in it; the key signs only an
        authorisation, and only if it needs one.
        """
        key, actor = node.key, self._actor(request, sponsor)
        assert key is not None
        if request.data:
            pinned, gas = delegate.delegate_of(sponsor), delegate.gas_of(direct.gas)
            data = delegate.call_data(key.next, direct.to, direct.data)
        else:
            pinned, gas, data = ZERO_ADDRESS, direct.gas, b""
        words: tuple[Authorization, ...] = ()
        if not request.data or key.code == "0x":
            scope = self._judge.scope(request.run)
            if earlier := scope.last_words.get(request.key):
                words = parse(earlier)[0].authorizations
            else:
                secret = scope.keys.get(request.key)
                words = (authorize(secret, chain_id=self._chain_id, address=pinned, nonce=key.nonce),)
        outer = replace(direct, to=actor, data=data, gas=gas, authorizations=words)
        self._judge.check_sponsored(outer, request, actor, node)
        return outer

    async def _launch(
        self, nonces: SenderNonces, requests: Sequence[TxRequest], drafts: Sequence[_Draft], sender: str
    ) -> dict[int, AcceptedTx | FleetError]:
        """Journal, then broadcast. The result lacks the places whose nonce was taken.

        Refused once STOP is set: the intents stay open, and settling finds that nothing was sent.
        """
        sents = {}
        since = clock_gettime(CLOCK_BOOTTIME)
        for draft in drafts:
            request = requests[draft.place]
            meta = {
                "sender": sender,
                "nonce": draft.unsigned.nonce,
                "gas": draft.unsigned.gas,
                "to": draft.unsigned.to,
                "role": str(request.role),
                "key": request.key,
            }
            effect = await self._journal.intend_tx(
                request.run, request.purpose, draft.signed.hash, draft.signed.raw, meta
            )
            sents[draft.place] = AcceptedTx(
                effect=effect, hash=draft.signed.hash, unsigned=draft.unsigned, sender=sender, request=request
            )
        await self._fresh(since, [sent.effect for sent in sents.values()])
        self._judge.ask()
        answers = await self._sender.send([draft.signed.raw for draft in drafts])
        failpoints.point("tx.sent")
        done: dict[int, AcceptedTx | FleetError] = {}
        for (place, sent), answer in zip(sents.items(), answers, strict=True):
            if await self._sender.accepted(answer, sent.hash):
                nonces.sent(sent.unsigned.nonce)
                done[place] = sent
                continue
            await self._journal.tx_done(sent.effect, "failed", {"reason": str(answer)})
            if not is_taken(answer):
                done[place] = refusal(
                    answer, sender, Role.SPONSOR if sent.request.sponsored else sent.request.role
                )
        return done

    async def _fresh(self, since: float, effects: Sequence[int]) -> None:
        """Check that the intents still belong to this process, unless they are fresh.

        LostRun when they do not; TryAgain, leaving the intents to be settled from the chain, when the journal
        is too slow to say. This only prevents late sends; the nonce makes them harmless.
        """
        failpoints.point("tx.send")
        for _ in range(FRESH_TRIES):
            if clock_gettime(CLOCK_BOOTTIME) - since < FRESH_S:
                return
            since = clock_gettime(CLOCK_BOOTTIME)
            for effect in effects:
                await self._journal.still_open(effect)
        raise TryAgain(
            "the journal is too slow for a signature", remedy="the fleet checks the chain and tries again"
        )

    async def _close(self, sent: AcceptedTx, receipt: Receipt | None) -> Receipt | FleetError:
        if receipt is None:
            return TxFailed(f"transaction {sent.hash} is in no block yet", kind="not_mined", tx=sent.hash)
        receipt = await self._receipts.explain(receipt, sent.unsigned, sent.sender)
        self._note_mint(sent, receipt)
        state = "done" if receipt.status == 1 else "failed"
        mined = {
            "status": receipt.status,
            "gas_used": receipt.gas_used,
            "block": receipt.block,
            "failure": receipt.failure,
            "reason": receipt.reason,
        }
        await self._journal.tx_done(sent.effect, state, mined)
        return receipt

    def _note_mint(self, sent: AcceptedTx, receipt: Receipt) -> None:
        """Record a minted id, only if the diamond itself says that this key registered this name."""
        unsigned, sender = delegate.acted(sent.unsigned, sent.sender)
        if sent.request.role is not Role.THROWAWAY or unsigned.data[:4] != _REGISTER.selector:
            return
        scope = self._judge.scopes.get(sent.request.run)
        token_id = minted_id(receipt, self._diamond, sender)
        if scope is not None and token_id:
            (scope.minted[token_id],) = codec.decode(_REGISTER.inputs, unsigned.data[4:])


_REGISTER = abi.FUNCTIONS["register"]


class JournalledTx:
    """Implements TxJournal on the fleet's journal: a transaction is an ordinary effect."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def intend_tx(self, run: str, purpose: str, tx_hash: str, raw: bytes, meta: dict[str, Any]) -> int:
        return await self._journal.intend(run, "tx", tx_hash, meta | {"purpose": purpose, "raw": raw.hex()})

    async def still_open(self, effect_id: int) -> None:
        await self._journal.still_open(effect_id)

    async def unmined(self, run: str) -> list[bytes]:
        tried = await self._journal.effects(run, ["tx"], ["open", "failed"])
        mine = [
            one.data for one in tried if one.data.get("role") == Role.IDENTITY and "status" not in one.data
        ]
        return [bytes.fromhex(data["raw"]) for data in mine]

    async def note_payment(self, run: str, nonce: str, data: dict[str, Any]) -> None:
        effect = await self._journal.intend(run, "payment", nonce, data)
        await self._journal.resolve(effect, "done", {})

    async def paid(self, run: str) -> int:
        return sum(one.data["value"] for one in await self._journal.effects(run, ["payment"]))

    async def tx_done(self, effect_id: int, status: str, data: dict[str, Any]) -> None:
        await self._journal.resolve(effect_id, "done" if status == "done" else "failed", data)
