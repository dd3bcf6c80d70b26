"""The chain's interface to the rooms above: requests, receipts, and ports with a real and a memory side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

import anyio

from fleet.chain.keys import Secret
from fleet.chain.node.codec import Entry
from fleet.errors import FleetError, TxFailed

Paid = Literal["writes", "reports", "closing"]
Charge = Literal[Paid, "none"]
"""What a signature is charged to, in the units of a run's budget; `none` is free (charge.py)."""


class Role(StrEnum):
    """Whose key signs; the policy has one allow-list per role."""

    IDENTITY = "identity"  # the fleet's own voice: entries of the log, nothing else
    SPONSOR = "sponsor"  # pays this run's throwaway keys, nothing else
    THROWAWAY = "throwaway"  # acts on what this run minted
    OPERATOR = "operator"  # a person at a terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class TxRequest:
    """A request to sign one transaction. Wei; `max_fee` and `tip` per gas, None for the going rate.

    `charge` names the unit charged to the budget of `run` right before the signature; `none` is free.
    `sponsored`: the sponsor sends it in the throwaway key's stead (EIP-7702); without calldata it only takes
    the key's delegate away. `fee_paid`: the key sends it, and the sponsor pays its fee (Tempo). Only the
    janitor path sets `cleanup`: releasing and sweeping what a run recorded is permitted at every rung; STOP
    pauses it too.
    """

    role: Role
    to: str
    gas: int
    charge: Charge
    data: bytes = b""
    value: int = 0
    run: str = ""
    key: str = ""  # label of the throwaway key
    purpose: str = ""
    cleanup: bool = False
    max_fee: int | None = None
    tip: int = 0
    sponsored: bool = False
    fee_paid: bool = False


@dataclass(frozen=True, slots=True)
class PaymentQuote:
    """What a platform asks for a resource (x402), as the broker saw it. `amount` in units of the token
    `asset`."""

    scheme: str
    network: str
    asset: str
    payee: str
    amount: int
    bound: str = ""
    """Text whose keccak256 the nonce must be; "" for any nonce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRequest:
    """A request to authorise one payment: `value` units for what was quoted, for `seconds` from now; below 0,
    one that has ended. `own`: back to the purse itself, which a payee should refuse."""

    run: str
    quote: PaymentQuote
    value: int
    seconds: int
    own: bool = False


@dataclass(frozen=True, slots=True)
class Authorisation:
    """TransferWithAuthorization of EIP-3009; addresses lower-case, times in Unix seconds."""

    payer: str
    payee: str
    value: int
    valid_after: int
    valid_before: int
    nonce: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One event of a receipt."""

    address: str
    topics: tuple[str, ...]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A mined transaction. `failure` is "" when status is 1, else `reverted` or `oog`, with the reason."""

    tx: str
    status: int
    gas_used: int
    block: int
    logs: tuple[Log, ...] = ()
    failure: Literal["", "reverted", "oog"] = ""
    reason: str = ""

    def check(self) -> Receipt:
        """Return this receipt, or raise TxFailed if the transaction failed: a hash is not success."""
        if self.status == 1:
            return self
        kind = self.failure or "reverted"
        text = "ran out of gas" if kind == "oog" else f"reverted{': ' + self.reason if self.reason else ''}"
        raise TxFailed(f"transaction {self.tx} {text}", kind=kind, tx=self.tx, gas_used=self.gas_used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The state of journalled bytes as recovery found it on chain.

    `mined`: there is a receipt (maybe of a failure). `failed`: not on chain, and another transaction used its
    nonce for good, or it may not be sent again, or the node refuses it. `pending`: the node has it, or
    another transaction with its nonce, but in no block that counts yet; look again.
    """

    state: Literal["mined", "failed", "pending"]
    tx: str
    receipt: Receipt | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedEntry:
    """A log entry that was read back after its transaction."""

    tx: str
    index: int
    gas_used: int = 0


class KeyRing(Protocol):
    """The throwaway keys of one run, by label."""

    def get(self, label: str) -> Secret: ...
    def addresses(self) -> dict[str, str]: ...


class Payer(Protocol):
    """A run's budget."""

    async def spend(self, unit: Paid, /) -> int:
        """Charge one signature durably and return what is left; on BudgetExceeded nothing is charged."""


@dataclass(slots=True, kw_only=True)
class RunScope:
    """What one run may act on, as the signer itself knows it, not as the caller claims.

    `payer` is charged for the run's signatures; without a payer only free ones are signed.
    `prefix` is `qa-<run>-`. `minted` maps id to name; the signer adds an id when its
    `Registered` event names a throwaway key of this run. `stipend_wei` is what the sponsor has paid, or may
    have to pay for what it has sent. `last_words` has, by label, journalled bytes in which a key that is
    destroyed by now authorises that it has no delegate. `paid` are the units of a token that were signed for.
    """

    run: str
    prefix: str
    keys: KeyRing
    payer: Payer | None = None
    minted: dict[int, str] = field(default_factory=dict)
    stipend_wei: int = 0
    paid: int = 0
    last_words: dict[str, bytes] = field(default_factory=dict)
    acting: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a key acts at the sponsor's cost: the next call's number follows from the last one's."""


class TxJournal(Protocol):
    """Intent before act: a record is durable when its call returns.

    All raise LostRun once another daemon owns the run: then this process may send nothing for it.
    """

    async def intend_tx(self, run: str, purpose: str, tx_hash: str, raw: bytes, meta: dict[str, Any]) -> int:
        """Record signed bytes before their broadcast; return an id for `tx_done`."""

    async def still_open(self, effect_id: int) -> None:
        """LostRun once another daemon owns or has settled this intent."""

    async def unmined(self, run: str) -> list[bytes]:
        """Bytes that this run has signed for the log and that were not seen in a block."""

    async def note_payment(self, run: str, nonce: str, data: dict[str, Any]) -> None:
        """Record an authorisation before its signature leaves this process."""

    async def paid(self, run: str) -> int:
        """Units of the authorisations that are recorded for this run."""

    async def tx_done(self, effect_id: int, status: str, data: dict[str, Any]) -> None:
        """Close an intent: `done` (status 1), or `failed` (status 0, refused by the node, or replaced)."""


class SignerPort(Protocol):
    """The only way to a signature."""

    def open_run(self, scope: RunScope) -> None:
        """Judge requests that name this run against this scope."""

    def close_run(self, run: str) -> None:
        """Forget the run: nothing more is signed for it."""

    async def check(self, request: TxRequest) -> None:
        """Refused when `submit` would refuse this now; nothing is charged or signed."""

    async def admit_entry(self, text: str, *, run: str, charge: Charge) -> str:
        """Judge, charge, judge again an entry that takes no signature; return its sender. Refused,
        BudgetExceeded."""

    async def submit(self, request: TxRequest, *, check: bool = True) -> Receipt:
        """Judge, sign, journal, broadcast, wait; Refused, TxFailed, RpcError, Unreachable."""

    async def submit_many(self, requests: Sequence[TxRequest]) -> list[Receipt | FleetError]:
        """Submit several transactions of one key at once; a failed one is an error in its place."""

    async def max_fee(self) -> int:
        """Wei per gas that the next transaction offers; Refused above the cap."""

    def address(self, role: Role) -> str:
        """Address of a standing key, "" when this process holds none."""

    async def settle_raw(self, raw: bytes, *, rebroadcast: bool = True) -> Settlement:
        """Determine the state of journalled bytes after a crash."""

    async def settle_all(self, raws: Sequence[bytes]) -> list[Settlement]:
        """The same of several of one key, in order of nonce: all that is missing is sent, or none."""

    async def look_up(self, hashes: Sequence[str]) -> tuple[int, list[Receipt | None]]:
        """The newest block, and receipts by hash (None without one that counts)."""


class SponsorPort(Protocol):
    """Pays for what the throwaway keys of runs do."""

    async def act(self, scope: RunScope, request: TxRequest, *, check: bool = True) -> Receipt:
        """Submit a throwaway key's transaction at the sponsor's cost, as `SignerPort.submit` does."""

    async def act_again(self, scope: RunScope, label: str, raw: bytes) -> Settlement:
        """Repeat clean-up whose bytes could not be sent again, when its key is destroyed."""

    async def delegated(self, addresses: Sequence[str]) -> list[str]:
        """Those that have a delegate now."""

    async def sweep(self, scope: RunScope, label: str) -> int:
        """Take a key's delegate away, and send its whole balance back; return the wei sent."""

    async def void(self, scope: RunScope, label: str) -> Receipt | None:
        """Use up the key's nonce: what it has authorised and was not sent comes to nothing."""


class NamesPort(Protocol):
    """The name registry, read-only. Free names and unknown ids read as "" or 0."""

    async def owner_of_name(self, name: str) -> str: ...
    async def owners_of_names(self, names: Sequence[str]) -> list[str]: ...
    async def id_of_name(self, name: str) -> int: ...
    async def name_of_id(self, token_id: int) -> str: ...
    async def next_id(self) -> int: ...
    async def registration_cost(self) -> int: ...


class FeedbackPort(Protocol):
    """The log that findings are posted to: on chain, or a file."""

    def seen(self, block: int) -> None: ...
    async def head(self) -> int: ...
    async def count(self) -> int: ...
    async def range(self, start: int, count: int) -> list[Entry]: ...
    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None: ...
    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry: ...
    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]: ...
