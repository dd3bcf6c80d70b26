"""Decides what may be signed: dial, never-list, stipend, payer, and the policy, by current facts."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fleet.chain.node import abi
from fleet.chain.node.hexes import as_bytes, as_dict, as_int
from fleet.chain.node.rpc import Call, Rpc
from fleet.chain.ports import Charge, PaymentRequest, Role, RunScope, TxRequest
from fleet.chain.signing import delegate, payment, policy
from fleet.chain.signing.tx import UnsignedTx
from fleet.config import ChainSection
from fleet.config.payments import NO_PAYMENTS, PaymentsSection
from fleet.errors import Refused, RpcError, WrongTarget

CLEANUP_SHARE = 5
"""1 / CLEANUP_SHARE of a run's stipend is kept for clean-up."""
PAYS: Mapping[Role, frozenset[Charge]] = MappingProxyType(
    {
        Role.THROWAWAY: frozenset({"writes"}),
        Role.IDENTITY: frozenset({"reports", "closing", "none"}),
        Role.SPONSOR: frozenset({"none"}),
        Role.OPERATOR: frozenset({"none"}),
    }
)
"""Charges permitted for each role. The identity's `none`: a report that was paid before a crash, and entries
posted outside a run."""

_CLEANUP = frozenset(abi.FUNCTIONS[name].selector for name in policy.CLEANUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningLimits:
    """Read at every signature. `rung` is the dial's word, or `stop` while STOP is set.

    `stipend_wei` is the most that the sponsor pays in one run; `may_sponsor`: keys may have a delegate or a
    payer; `token` the ERC-20 of the registration cost; `log` the contract that findings are posted to (None:
    the diamond), `agent` the id that they are about in a Reputation registry; `payments` bounds what the
    purse pays.
    """

    rung: Callable[[], str]
    never: Container[bytes] = frozenset()
    stipend_wei: int = 10**18
    may_sponsor: bool = False
    token: str = ""
    log: str | None = None
    agent: int | None = None
    payments: PaymentsSection = NO_PAYMENTS


def stipend_left(limits: SigningLimits, scope: RunScope, cleanup: bool) -> int:
    """Wei that the sponsor may still pay for this run; the last part only for clean-up."""
    most = limits.stipend_wei
    return (most if cleanup else most - most // CLEANUP_SHARE) - scope.stipend_wei


def check_charge(role: Role, charge: Charge, *, gives_back: bool = False) -> None:
    """Refused when the role does not permit the charge: an act of a throwaway key is never free.

    Clean-up, which gives something back, is never charged.
    """
    permitted = frozenset({"none"}) if gives_back else PAYS[role]
    if charge not in permitted:
        words = " or ".join(sorted(permitted))
        raise Refused(f"an act of the {role} key is charged to {words}, not to {charge}", rule="charge")


def is_refund(request: TxRequest) -> bool:
    """Whether this only releases or refunds what the run holds."""
    return request.cleanup and (not request.data or request.data[:4] in _CLEANUP)


async def pay(charge: Charge, run: str, scope: RunScope | None) -> None:
    """Charge one act to its run; raises BudgetExceeded when the budget is spent, or Refused."""
    if charge == "none":
        return
    if scope is None or scope.payer is None:
        raise Refused(f"run {run!r} has no budget that could pay", rule="charge")
    await scope.payer.spend(charge)


_APPROVE = abi.FUNCTIONS["approve"].selector


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The node's answers just before signing."""

    chain_id: int
    pending: int
    base_fee: int
    cost: int
    key: policy.KeyFacts | None = None


class Judge:
    """Applies configuration, dial, never-list and run scope to a request; holds no key."""

    def __init__(self, rpc: Rpc, chain: ChainSection, limits: SigningLimits, sponsor: str) -> None:
        self._rpc = rpc
        self._chain = chain
        self.limits = limits
        self._sponsor = sponsor
        self._fee_cap = chain.max_gas_price_gwei * 10**9
        self.scopes: dict[str, RunScope] = {}

    def scope(self, run: str) -> RunScope:
        """The scope of an open run; Refused when the run is not open."""
        scope = self.scopes.get(run)
        if scope is None:
            raise Refused(f"no run {run!r} is open", rule="run")
        return scope

    async def admit(self, request: TxRequest, sender: str) -> None:
        """Refuse what can be refused without the node, charge the payer, and look again: the dial may have
        turned meanwhile."""
        judged = request.data[:4] != _APPROVE  # its amount must match a price that only the node knows
        if judged:
            self.check(request, sender, None)
        check_charge(request.role, request.charge, gives_back=is_refund(request))
        await pay(request.charge, request.run, self.scopes.get(request.run))
        if judged:
            self.check(request, sender, None)

    async def admit_entry(self, text: str, *, run: str, charge: Charge) -> None:
        """The same for an entry of a log that takes no transaction."""
        check_charge(Role.IDENTITY, charge)
        policy.check_entry(text, self._rung(), self.limits.never)
        await pay(charge, run, self.scopes.get(run))
        policy.check_entry(text, self._rung(), self.limits.never)

    async def admit_payment(self, asked: PaymentRequest, purse: str) -> None:
        """The same for a payment, which is charged as a write."""
        self.check_payment(asked, purse)
        await pay("writes", asked.run, self.scope(asked.run))

    def check_payment(self, asked: PaymentRequest, purse: str, held: tuple[int, int] | None = None) -> None:
        """Refused when this may not be authorised now; `held` is the node's chain and what the purse
        holds."""
        limits = self.limits.payments
        facts = payment.PaymentFacts(
            rung=self._rung(),
            never=self.limits.never,
            limits=limits,
            chain_id=self._chain.id,
            purse=purse,
            left=limits.per_run - self.scope(asked.run).paid,
            node_chain_id=held[0] if held else None,
            held=held[1] if held else None,
        )
        payment.check(asked, facts)

    async def look_at_purse(self, purse: str) -> tuple[int, int]:
        """The node's chain, and what the purse holds there."""
        asked = payment.balance(self.limits.payments, purse)
        chain, held = await self._rpc.batch([("eth_chainId", []), asked])
        for answer in (chain, held):
            if isinstance(answer, RpcError):
                raise answer
        if len(word := as_bytes(held)) != 32:
            raise Refused("payments.asset says no balance: it is not a token", rule="asset")
        return as_int(chain), int.from_bytes(word)

    def check(self, request: TxRequest, sender: str, node: NodeFacts | None) -> None:
        """Check charge and policy against current facts; Refused names the rule."""
        policy.check(request, self._facts(request, sender, node))

    def check_sponsored(self, outer: UnsignedTx, request: TxRequest, key: str, node: NodeFacts) -> None:
        """The same of what the sponsor sends in the stead of `key`, with all that is in it."""
        if node.key is None:
            raise Refused("nothing is known of the key", rule="delegate")
        policy.check_sponsored(outer, request, self._facts(request, key, node), node.key)

    def check_fee_paid(self, unsigned: UnsignedTx, request: TxRequest, sender: str, node: NodeFacts) -> None:
        """The same of what a key sends, and the sponsor pays for."""
        policy.check_fee_paid(unsigned, request, self._facts(request, sender, node))

    def _facts(self, request: TxRequest, sender: str, node: NodeFacts | None) -> policy.SigningFacts:
        check_charge(request.role, request.charge, gives_back=is_refund(request))
        bound = request.role in (Role.THROWAWAY, Role.SPONSOR)
        scope = self.scope(request.run) if bound else None
        return policy.SigningFacts(
            chain_id=self._chain.id,
            node_chain_id=node.chain_id if node else self._chain.id,
            diamond=self._chain.diamond,
            log=self._chain.diamond if self.limits.log is None else self.limits.log,
            agent=self.limits.agent,
            rung=self._rung(),
            sender=sender,
            max_fee=self.fee(request, node.base_fee) if node else request.max_fee or request.tip,
            fee_cap=self._fee_cap,
            prefix=scope.prefix if scope else "",
            throwaways=frozenset(scope.keys.addresses().values()) if scope else frozenset(),
            minted=scope.minted if scope else {},
            sponsor=self._sponsor,
            token=self.limits.token,
            cost=node.cost if node else 0,
            stipend_left=stipend_left(self.limits, scope, request.cleanup) if scope else 0,
            may_sponsor=self.limits.may_sponsor,
            never=self.limits.never,
        )

    def ask(self) -> None:
        """Refused while STOP is set: asked again right before signed bytes are sent."""
        if self._rung() == "stop":
            raise policy.paused()

    def may_resend(self, unsigned: UnsignedTx) -> bool:
        """Whether bytes that were approved before a crash may be sent at today's dial."""
        clears = delegate.is_clearing(unsigned)
        unsigned, _ = delegate.acted(unsigned, "")
        function = abi.BY_SELECTOR.get(unsigned.data[:4])
        name = function.name if function else ""
        if unsigned.chain_id != self._chain.id or unsigned.data[:4] in self.limits.never:
            return False
        rung = self._rung()
        if rung == "stop":
            return False
        cleanup = clears or name in policy.CLEANUP or (not unsigned.data and unsigned.to == self._sponsor)
        return cleanup or unsigned.data[:4] in policy.POSTS or rung in ("exercise", "propose")

    def fee(self, request: TxRequest, base_fee: int) -> int:
        """Fee per gas: the request's own, else the going rate."""
        return self.going_rate(base_fee) if request.max_fee is None else request.max_fee

    def going_rate(self, base_fee: int) -> int:
        """Twice the base fee, at most the cap; Refused when the base fee is above the cap."""
        if base_fee > self._fee_cap:
            raise Refused(
                f"the node asks {base_fee} wei per gas; the cap is {self._fee_cap}",
                rule="fee",
                remedy="wait, or raise chain.max_gas_price_gwei in the platform profile",
            )
        return min(max(2 * base_fee, 1), self._fee_cap)

    async def base_fee(self) -> int:
        """Base fee of the newest block, wei per gas."""
        return _base_fee(await self._rpc.call("eth_getBlockByNumber", ["latest", False]))

    async def look(self, sender: str, requests: list[TxRequest], key: str = "") -> NodeFacts:
        """The node's facts for a signature, in one exchange; WrongTarget when the node changed chains.

        `key` is the throwaway key in whose stead the sponsor sends.
        """
        calls: list[Call] = [
            ("eth_chainId", []),
            ("eth_getTransactionCount", [sender, "pending"]),
            ("eth_getBlockByNumber", ["latest", False]),
        ]
        if any(request.data[:4] == _APPROVE for request in requests):
            data = "0x" + abi.FUNCTIONS["registrationCost"].selector.hex()
            calls.append(("eth_call", [{"to": self._chain.diamond, "data": data}, "latest"]))
        if key:
            calls += [
                ("eth_getTransactionCount", [key, "latest"]),
                ("eth_getCode", [key, "latest"]),
                ("eth_getStorageAt", [key, "0x0", "latest"]),
                ("eth_getCode", [delegate.delegate_of(sender), "latest"]),
            ]
        answers = await self._rpc.batch(calls)
        for answer in answers:
            if isinstance(answer, RpcError):
                raise answer
        chain_id = as_int(answers[0])
        if chain_id != self._chain.id:
            raise WrongTarget(
                f"{self._rpc.url} is chain {chain_id} now; the profile says chain.id = {self._chain.id}",
                remedy="check chain.rpc and chain.id in the platform profile; nothing was signed",
            )
        about_key = [answers.pop() for _ in range(4)][::-1] if key else ()
        cost = as_int(answers[3]) if len(answers) > 3 else 0
        return NodeFacts(chain_id, as_int(answers[1]), _base_fee(answers[2]), cost, _key_facts(*about_key))

    def _rung(self) -> str:
        try:
            return str(self.limits.rung())
        except Exception:  # fail closed, whatever the reason
            return "observe"


def _key_facts(*answers: object) -> policy.KeyFacts | None:
    if not answers:
        return None
    nonce, code, number, delegate_code = answers
    return policy.KeyFacts(
        nonce=as_int(nonce),
        code="0x" + as_bytes(code).hex(),
        next=int.from_bytes(as_bytes(number)[-32:]),
        delegate_code=as_bytes(delegate_code),
    )


def _base_fee(block: object) -> int:
    return as_int(as_dict(block).get("baseFeePerGas", "0x0"))
