"""The chain's ports in memory, for tests of the rooms above; one conformance suite covers both sides.

    chain = MemoryChain(SigningLimits(rung=lambda: "exercise"))
    chain.signer, chain.names, chain.log, chain.sponsor, chain.journal

The policy is real. Prices and reorgs do not exist, and a transaction is done when `submit` returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fleet.chain.keys import address_of, fresh
from fleet.chain.node import abi, codec
from fleet.chain.node.codec import Entry
from fleet.chain.node.digest import keccak256
from fleet.chain.ports import Charge, Log, PostedEntry, Receipt, Role, RunScope, Settlement, TxRequest
from fleet.chain.signing import policy
from fleet.chain.signing.judge import SigningLimits, check_charge, is_refund, pay, stipend_left
from fleet.errors import FleetError, Refused
from tests.doubles.chain_memory import MemoryJournal, MemoryNames, MemoryState

DIAMOND = "0x" + "d1" * 20
CHAIN_ID = 31337
FEE = 10**9


class MemoryChain:
    """One platform in memory with its signer, names and log; each part implements the port of its name."""

    def __init__(self, fences: SigningLimits) -> None:
        self.state = MemoryState()
        self.journal = MemoryJournal()
        self.signer = MemorySigner(self.state, self.journal, fences)
        self.names = MemoryNames(self.state)
        self.sponsor = MemorySponsor(self.state, self.signer)
        self.log = MemoryLog(self.state, self.signer)

    def clear_feedback(self) -> None:
        """Clear the log, as the diamond's owner may at any time: indices restart."""
        self.state.entries.clear()

    def foreign_entry(self, sender: str, text: str) -> None:
        """Post an entry, as any stranger may at any time."""
        self.state.now += 1
        self.state.entries.append(Entry(sender.lower(), self.state.now, text))


class MemorySigner:
    """The real signer's policy and journal, on a dictionary."""

    def __init__(self, state: MemoryState, journal: MemoryJournal, fences: SigningLimits) -> None:
        self._state = state
        self._journal = journal
        self._limits = fences
        self._standing = {Role.IDENTITY: fresh(), Role.SPONSOR: fresh()}
        self._scopes: dict[str, RunScope] = {}
        self._count = itertools.count(1)

    def open_run(self, scope: RunScope) -> None:
        self._scopes[scope.run] = scope

    def close_run(self, run: str) -> None:
        self._scopes.pop(run, None)

    def address(self, role: Role) -> str:
        key = self._standing.get(role)
        return address_of(key) if key else ""

    async def max_fee(self) -> int:
        return FEE

    async def check(self, request: TxRequest) -> None:
        self._judge(request)

    async def admit_entry(self, text: str, *, run: str, charge: Charge) -> str:
        check_charge(Role.IDENTITY, charge)
        policy.check_entry(text, self._limits.rung(), self._limits.never)
        await pay(charge, run, self._scopes.get(run))
        policy.check_entry(text, self._limits.rung(), self._limits.never)
        return self.address(Role.IDENTITY)

    async def submit(self, request: TxRequest, *, check: bool = True) -> Receipt:
        sender = self._judge(request)
        await pay(request.charge, request.run, self._scopes.get(request.run))
        self._judge(request)
        number = next(self._count)
        tx = "0x" + keccak256(number.to_bytes(32, "big")).hex()
        meta = {"sender": sender, "role": str(request.role), "key": request.key}
        effect = await self._journal.intend_tx(request.run, request.purpose, tx, b"", meta)
        failure, logs = self._execute(request, sender)
        receipt = Receipt(
            tx=tx,
            status=0 if failure else 1,
            gas_used=21_000,
            block=number,
            logs=logs,
            failure="reverted" if failure else "",
            reason=failure,
        )
        await self._journal.tx_done(effect, "failed" if failure else "done", {"status": receipt.status})
        return receipt.check() if check else receipt

    async def submit_many(self, requests: Sequence[TxRequest]) -> list[Receipt | FleetError]:
        return [await self.submit(request, check=False) for request in requests]

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool = True) -> Settlement:
        return Settlement(state="failed", tx="", reason="nothing is ever half done in memory")

    async def settle_all(self, raws: Sequence[bytes]) -> list[Settlement]:
        return [await self.settle_raw(raw) for raw in raws]

    async def look_up(self, hashes: Sequence[str]) -> tuple[int, list[Receipt | None]]:
        return 0, [None for _ in hashes]

    def _judge(self, request: TxRequest) -> str:
        check_charge(request.role, request.charge, gives_back=is_refund(request))
        scope = self._scopes.get(request.run)
        if request.role in (Role.THROWAWAY, Role.SPONSOR) and scope is None:
            raise Refused(f"no run {request.run!r} is open", rule="run")
        if request.role is Role.THROWAWAY and scope:
            key = scope.keys.get(request.key)
        elif request.role in self._standing:
            key = self._standing[request.role]
        else:
            raise Refused(f"this process holds no {request.role} key", rule="key")
        sender = address_of(key)
        facts = policy.SigningFacts(
            chain_id=CHAIN_ID,
            node_chain_id=CHAIN_ID,
            diamond=DIAMOND,
            log=DIAMOND,
            rung=self._limits.rung(),
            sender=sender,
            max_fee=FEE,
            fee_cap=50 * FEE,
            prefix=scope.prefix if scope else "",
            throwaways=frozenset(scope.keys.addresses().values()) if scope else frozenset(),
            minted=scope.minted if scope else {},
            sponsor=self.address(Role.SPONSOR),
            stipend_left=stipend_left(self._limits, scope, request.cleanup) if scope else 0,
            never=self._limits.never,
        )
        policy.check(request, facts)
        return sender

    def _execute(self, request: TxRequest, sender: str) -> tuple[str, tuple[Log, ...]]:
        """The revert reason ("" for success) and the events."""
        state = self._state
        state.now += 1
        if not request.data:
            state.balances[request.to] = state.balances.get(request.to, 0) + request.value
            if request.role is Role.SPONSOR:
                self._scopes[request.run].stipend_wei += request.value
            return "", ()
        function = abi.BY_SELECTOR[request.data[:4]]
        args = codec.decode(function.inputs, request.data[4:])
        match function.name:
            case "submitFeedback":
                state.entries.append(Entry(sender, state.now, args[0]))
            case "register":
                return self._register(request, sender, args[0])
            case "setMetadata" if state.owners.get(args[0]) == sender:
                state.metadata[args[0], args[1]] = args[2]
            case "releaseName":
                return self._release(sender, args[0]), ()
            case "clearMain" | "claimDaily":
                pass
            case _:
                return "not owner", ()
        return "", ()

    def _register(self, request: TxRequest, sender: str, name: str) -> tuple[str, tuple[Log, ...]]:
        state = self._state
        if name in state.names.values():
            return "name taken", ()
        state.minted += 1
        state.owners[state.minted], state.names[state.minted] = sender, name
        self._scopes[request.run].minted[state.minted] = name
        topics = (abi.REGISTERED, f"0x{state.minted:064x}", "0x" + "0" * 24 + sender[2:])
        return "", (Log(address=DIAMOND, topics=topics, data=codec.encode(("string",), (name,))),)

    def _release(self, sender: str, token_id: int) -> str:
        state = self._state
        if state.owners.get(token_id) != sender:
            return "NotOwner()"
        del state.owners[token_id], state.names[token_id]
        return ""


class MemorySponsor:
    """Implements SponsorPort: makes the same requests as Stipends; gas is free."""

    def __init__(self, state: MemoryState, signer: MemorySigner) -> None:
        self._state = state
        self._signer = signer

    async def act(self, scope: RunScope, request: TxRequest, *, check: bool = True) -> Receipt:
        await self.fund(scope, request.key, gas=request.gas, value=request.value, cleanup=request.cleanup)
        return await self._signer.submit(request, check=check)

    async def act_again(self, scope: RunScope, label: str, raw: bytes) -> Settlement:
        return await self._signer.settle_raw(raw)

    async def delegated(self, addresses: Sequence[str]) -> list[str]:
        return []

    async def void(self, scope: RunScope, label: str) -> None:
        """No effect: a key in memory has no delegate."""

    async def fund(
        self, scope: RunScope, label: str, *, gas: int, value: int = 0, fee: int = 0, cleanup: bool = False
    ) -> int:
        address = scope.keys.addresses()[label]
        fee = fee or FEE
        missing = gas * fee + value - self._state.balances.get(address, 0)
        if missing > 0:
            request = TxRequest(
                role=Role.SPONSOR,
                to=address,
                value=missing,
                gas=21_000,
                charge="none",
                run=scope.run,
                purpose=f"stipend {label}",
                cleanup=cleanup,
            )
            await self._signer.submit(request)
        return fee

    async def sweep(self, scope: RunScope, label: str) -> int:
        address = scope.keys.addresses()[label]
        rest = self._state.balances.get(address, 0)
        if rest:
            request = TxRequest(
                role=Role.THROWAWAY,
                to=self._signer.address(Role.SPONSOR),
                value=rest,
                gas=21_000,
                charge="none",
                run=scope.run,
                key=label,
                purpose=f"sweep {label}",
                cleanup=True,
                max_fee=FEE,
                tip=FEE,
            )
            await self._signer.submit(request)
            self._state.balances[address] = 0
        return rest


class MemoryLog:
    """FeedbackPort on the list."""

    def __init__(self, state: MemoryState, signer: MemorySigner) -> None:
        self._state = state
        self._signer = signer

    async def head(self) -> int:
        return self._state.now

    async def count(self) -> int:
        return len(self._state.entries)

    async def range(self, start: int, count: int) -> list[Entry]:
        return self._state.entries[start : start + count]

    def seen(self, block: int) -> None:
        """No effect: this log never lags."""

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        places = [
            index
            for index, entry in enumerate(self._state.entries)
            if index >= since and entry.text == text and entry.sender == sender.lower()
        ]
        return places[-1] if places else None

    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry:
        policy.check_text(text)
        request = TxRequest(
            role=Role.IDENTITY,
            to=DIAMOND,
            data=abi.FUNCTIONS["submitFeedback"].encode(text),
            gas=20_000_000,
            charge=charge if run else "none",
            run=run,
            purpose="post",
        )
        receipt = await self._signer.submit(request)
        return PostedEntry(tx=receipt.tx, index=len(self._state.entries) - 1, gas_used=receipt.gas_used)

    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]:
        for text in texts:
            policy.check_text(text)
        return [await self.post(text, run=run, charge=charge) for text in texts]
