"""The signing policy: pure, total, and unaware of prompts. It signs only what a rule permits.

It reads the transaction itself, not the caller's description of it. Facts come from the fleet's
configuration, the dial and the run's records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fleet.chain.node import abi, reputation
from fleet.chain.node.digest import ZERO_ADDRESS, is_address
from fleet.chain.ports import Role, TxRequest
from fleet.chain.signing import delegate
from fleet.chain.signing.never import NEVER, RELEASE
from fleet.chain.signing.tx import UnsignedTx
from fleet.errors import Refused

MAX_GAS = 50_000_000
"""Maximum gas limit to sign (platform-facts 1.5: declared upstream, but not enforced there)."""
MAX_TEXT = reputation.MAX_TEXT
"""Maximum bytes of one log entry."""
_SUBMIT = abi.FUNCTIONS["submitFeedback"].selector
POSTS: frozenset[bytes] = frozenset((_SUBMIT, *reputation.WRITES))
"""Selectors of what the identity writes to a log: signed at every rung."""

CLEANUP: frozenset[str] = frozenset((RELEASE, "clearMain"))
RUNGS = ("observe", "exercise", "propose")


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningFacts:
    """Facts for judging one transaction. Addresses lower-case; amounts in wei.

    `rung` is the dial's current word; `stop` means paused, anything unknown means observe.
    `log` is the contract that findings are posted to, "" for none; `agent` the id that they are about in a
    Reputation registry. `cost` is the registration cost, `token` the ERC-20 it is paid in ("" for none).
    `stipend_left` is what the sponsor may still pay for this run. `may_sponsor`: throwaway keys may have a
    delegate.
    """

    chain_id: int
    node_chain_id: int
    diamond: str
    log: str = ""
    agent: int | None = None
    rung: str
    sender: str
    max_fee: int
    fee_cap: int
    prefix: str = ""
    throwaways: frozenset[str] = frozenset()
    minted: Mapping[int, str] = field(default_factory=dict)
    sponsor: str = ""
    token: str = ""
    cost: int = 0
    stipend_left: int = 0
    may_sponsor: bool = False
    never: Container[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """The node's answers about a throwaway key that is sponsored, and the code at its delegate's address.

    `next` is the number of its next call through the delegate.
    """

    nonce: int
    code: str
    next: int
    delegate_code: bytes


def check(tx: TxRequest, facts: SigningFacts) -> None:
    """Return if this may be signed; raise Refused with the name of the rule if not."""
    if facts.node_chain_id != facts.chain_id:
        raise Refused(
            f"the node is on chain {facts.node_chain_id}, the profile says {facts.chain_id}", rule="chain"
        )
    if not is_address(tx.to) or not is_address(facts.sender):
        raise Refused("a transaction needs a recipient; contracts are never created", rule="to")
    if not 21_000 <= tx.gas <= MAX_GAS:
        raise Refused(f"gas limit {tx.gas} is outside 21000..{MAX_GAS}", rule="gas")
    if not 0 <= tx.tip <= facts.max_fee <= facts.fee_cap:
        raise Refused(f"fee of {facts.max_fee} wei per gas is above the cap of {facts.fee_cap}", rule="fee")
    if tx.value < 0:
        raise Refused("a negative value", rule="value")
    if tx.sponsored and not _may_sponsor(tx, facts):
        raise Refused("this platform's throwaway keys have no delegate", rule="sponsored")
    if tx.fee_paid and (tx.role is not Role.THROWAWAY or tx.value or tx.sponsored or not facts.may_sponsor):
        raise Refused("only calls of throwaway keys are paid for, where the profile says so", rule="payer")
    if tx.role is Role.SPONSOR and tx.to.lower() == delegate.DEPLOYER:
        return _deployment(tx, facts)
    name, args = _decode(tx, facts)
    if name == RELEASE and not is_disposable(facts.minted.get(args[0], ""), facts.prefix):
        raise Refused(f"id {args[0]} was not minted by this run", rule="never")
    _dial(tx, facts, name)
    _ALLOW[tx.role](tx, facts, name, args)


def check_sponsored(outer: UnsignedTx, tx: TxRequest, facts: SigningFacts, key: KeyFacts) -> None:
    """Return if the sponsor may sign this: it makes the key do what `tx` says, which the key may, and lets
    no one else act for it. Decodes the authorisations and the call in it; Refused with the name of the rule.
    """
    check(tx, facts)
    if (outer.chain_id, outer.to, outer.value) != (facts.chain_id, facts.sender, 0):
        raise Refused("the sponsor sends without value to the key itself, on the platform's chain", rule="to")
    if outer.gas > delegate.gas_of(MAX_GAS) or not 0 <= outer.tip <= outer.max_fee <= facts.fee_cap:
        raise Refused(f"gas limit {outer.gas} or fee {outer.max_fee} is above the cap", rule="gas")
    _bounded(outer, facts)
    pinned = delegate.delegate_of(facts.sponsor) if tx.data else ZERO_ADDRESS
    for one in outer.authorizations:
        exact = (one.chain_id, one.address, one.nonce) == (facts.chain_id, pinned, key.nonce)
        if not exact or one.authority != facts.sender:
            raise Refused(
                "an authorisation is only for this chain, the key's own nonce and the fleet's delegate",
                rule="authorization",
            )
    if not tx.data:
        if outer.data or len(outer.authorizations) != 1:
            raise Refused("what takes a delegate away does nothing else", rule="authorization")
        return
    if key.delegate_code != delegate.code_of(facts.sponsor):
        raise Refused(f"the code at {pinned} is not the fleet's delegate", rule="delegate")
    if key.code not in ("0x", delegate.POINTER + pinned[2:]):
        raise Refused(f"{facts.sender} has another delegate: {key.code[:48]}", rule="delegate")
    if len(outer.authorizations) != (key.code == "0x"):
        raise Refused("a key authorises its delegate once", rule="authorization")
    if delegate.call_in(outer.data) != delegate.SponsoredCall(key.next, tx.to.lower(), tx.data):
        raise Refused("the sponsor's transaction does not make the call that was judged", rule="call")


def check_fee_paid(unsigned: UnsignedTx, tx: TxRequest, facts: SigningFacts) -> None:
    """Return if the sponsor may pay for this: the key's own call, as it was judged, within what is left."""
    check(tx, facts)
    call = (unsigned.chain_id, unsigned.to, unsigned.value, unsigned.data, unsigned.payer)
    if call != (facts.chain_id, tx.to.lower(), 0, tx.data, facts.sponsor) or not facts.sponsor:
        raise Refused("the sponsor pays for the call that was judged, on the platform's chain", rule="payer")
    if unsigned.gas != tx.gas or not 0 <= unsigned.tip <= unsigned.max_fee <= facts.fee_cap:
        raise Refused(f"gas limit {unsigned.gas} or fee {unsigned.max_fee} was not judged", rule="gas")
    _bounded(unsigned, facts)


def _bounded(paid: UnsignedTx, facts: SigningFacts) -> None:
    """What the sponsor may have to pay is within what is left for the run."""
    if (most := paid.gas * paid.max_fee) > facts.stipend_left:
        raise Refused(
            f"this may cost {most} wei; {facts.stipend_left} are left for this run",
            rule="stipend",
            remedy="raise sponsor.max_wei in the platform profile",
        )


def _may_sponsor(tx: TxRequest, facts: SigningFacts) -> bool:
    """Taking a delegate away is always possible."""
    return tx.role is Role.THROWAWAY and (facts.may_sponsor or (tx.cleanup and not tx.data))


def _deployment(tx: TxRequest, facts: SigningFacts) -> None:
    """The one call of the sponsor's own: it deploys its delegate, and nothing else."""
    _dial(tx, facts, "a deployment")
    if tx.data != delegate.deployment(facts.sponsor) or not facts.may_sponsor or tx.value:
        raise Refused(
            "the sponsor pays throwaway keys and deploys their delegate; it calls nothing", rule="role"
        )
    if tx.gas * facts.max_fee > facts.stipend_left:
        raise Refused("the delegate costs more than is left for this run", rule="stipend")


def is_disposable(name: str, prefix: str) -> bool:
    """True for `<prefix><n>` with a prefix of the form `qa-<run>-`: the only names a run may act on."""
    if not re.fullmatch(r"qa-[a-z0-9]+(?:-[a-z0-9]+)*-", prefix) or not name.startswith(prefix):
        return False
    return re.fullmatch(r"[0-9]{1,6}", name[len(prefix) :], re.ASCII) is not None and len(name) <= 63


def check_text(text: str) -> bytes:
    """The bytes of a log entry; Refused when it is empty, too long or not encodable."""
    try:
        blob = text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("an entry must be text that UTF-8 can hold", rule="text") from None
    if not blob:
        raise Refused("an empty entry is never posted", rule="text")
    if len(blob) > MAX_TEXT:
        raise Refused(f"an entry of {len(blob)} bytes; the log takes {MAX_TEXT}", rule="text")
    return blob


def check_entry(text: str, rung: str, never: Container[bytes]) -> None:
    """Refused when a log that takes no transaction may not take this text now: the rules of one that does."""
    _may_post(never)
    if rung == "stop":
        raise paused()
    check_text(text)


def _may_post(never: Container[bytes]) -> None:
    """Refused when the never-list names submitFeedback, whatever a log's own function is called."""
    if _SUBMIT in never:
        raise Refused("submitFeedback is on the configured never-list: nothing is posted", rule="never")


def _decode(tx: TxRequest, facts: SigningFacts) -> tuple[str, tuple[Any, ...]]:
    """Name and arguments of the call; "" for a plain transfer. Refuses unknown selectors."""
    if not tx.data:
        return "", ()
    selector = tx.data[:4]
    if selector in facts.never:
        raise Refused(f"selector 0x{selector.hex()} is on the configured never-list", rule="never")
    ours = tx.role is Role.IDENTITY and facts.agent is not None
    function = reputation.WRITES.get(selector) if ours else abi.BY_SELECTOR.get(selector)
    if function is None or not function.writes:
        raise Refused(f"selector 0x{selector.hex()} is not on an allow-list", rule="selector")
    if function.name in NEVER and function.name != RELEASE:
        raise Refused(f"{function.name} is never signed", rule="never")
    try:
        return function.name, function.arguments(tx.data)
    except ValueError:
        raise Refused(f"arguments of {function.name} are not canonical", rule="args") from None


def _dial(tx: TxRequest, facts: SigningFacts, name: str) -> None:
    if facts.rung == "stop":
        raise paused()
    if _is_cleanup(tx, facts, name):
        return
    if tx.role is Role.IDENTITY and tx.data[:4] in POSTS:
        return
    rung = facts.rung if facts.rung in RUNGS else "observe"
    if rung == "observe":
        raise Refused(
            f"the dial is at observe: {name or 'a transfer'} is not signed",
            rule="dial",
            remedy="`fleet dial exercise` is a person's decision",
        )


def paused() -> Refused:
    """The refusal of everything while STOP is set."""
    return Refused("STOP is set: nothing is signed, clean-up waits", rule="stop", remedy="fleet resume")


def _is_cleanup(tx: TxRequest, facts: SigningFacts, name: str) -> bool:
    """True only for releases and refunds, and for the stipend that pays their gas."""
    if not tx.cleanup:
        return False
    if tx.role is Role.SPONSOR:
        return not name
    return tx.role is Role.THROWAWAY and (name in CLEANUP or (not name and tx.to.lower() == facts.sponsor))


def _to_diamond(tx: TxRequest, facts: SigningFacts) -> None:
    if not facts.diamond:
        raise Refused("this platform has no diamond", rule="to", remedy="set chain.diamond in its profile")
    if tx.to.lower() != facts.diamond.lower():
        raise Refused(f"{tx.to} is not the platform's diamond", rule="to")
    if tx.value:
        raise Refused("a call to the diamond carries no value", rule="value")


def _identity(tx: TxRequest, facts: SigningFacts, name: str, args: tuple[Any, ...]) -> None:
    if name not in EMITS[Role.IDENTITY]:
        raise Refused(f"the identity signs submitFeedback, not {name or 'a transfer'}", rule="role")
    _may_post(facts.never)
    if not facts.log:
        raise Refused("this platform has no log on chain", rule="to", remedy="set log in its profile")
    if tx.to.lower() != facts.log.lower():
        raise Refused(f"{tx.to} is not the platform's log", rule="to")
    if tx.value:
        raise Refused("an entry of the log carries no value", rule="value")
    if facts.agent is None:
        check_text(args[0])
        return
    if args[0] != facts.agent:
        raise Refused(f"agent {args[0]} is not the platform's, {facts.agent}", rule="agent")
    if tx.data[:4] == reputation.RESPOND.selector and args[1] != facts.sender:
        raise Refused("the identity answers only entries of its own", rule="agent")
    if tx.data[:4] == reputation.REVOKE.selector:
        return  # of the sender's own entries: the registry knows no others
    check_text(reputation.entry_text(tx.data) or "")


def _sponsor(tx: TxRequest, facts: SigningFacts, name: str, _args: tuple[Any, ...]) -> None:
    if name not in EMITS[Role.SPONSOR] or tx.to.lower() not in facts.throwaways:
        raise Refused("the sponsor pays only this run's throwaway keys", rule="role")
    if tx.value > facts.stipend_left:
        raise Refused(
            f"a stipend of {tx.value} wei; this run may still get {facts.stipend_left}",
            rule="stipend",
            remedy="raise sponsor.max_wei in the platform profile",
        )


def _throwaway(tx: TxRequest, facts: SigningFacts, name: str, args: tuple[Any, ...]) -> None:
    if facts.sender not in facts.throwaways:
        raise Refused("that key is not a throwaway key of this run", rule="key")
    if not name:
        if not tx.cleanup or tx.to.lower() != facts.sponsor or not facts.sponsor:
            raise Refused("a throwaway key sends value only back to the sponsor, at clean-up", rule="value")
        return
    if name == "approve":
        return _approve(tx, facts, args)
    _to_diamond(tx, facts)
    if name == "register":
        if not is_disposable(args[0], facts.prefix):
            raise Refused(f"only names {facts.prefix}<n> are minted by this run", rule="prefix")
    elif name in ("setMetadata", "releaseName"):
        if not is_disposable(facts.minted.get(args[0], ""), facts.prefix):
            raise Refused(f"id {args[0]} was not minted by this run", rule="minted")
    elif name not in EMITS[Role.THROWAWAY]:
        raise Refused(f"a throwaway key does not sign {name}", rule="role")


def _approve(tx: TxRequest, facts: SigningFacts, args: tuple[Any, ...]) -> None:
    exact = args == (facts.diamond.lower(), facts.cost)
    if not facts.token or tx.to.lower() != facts.token.lower() or tx.value or not exact:
        raise Refused(
            "approve is signed only for the exact registration cost, to the diamond", rule="approve"
        )


def _operator(tx: TxRequest, facts: SigningFacts, name: str, args: tuple[Any, ...]) -> None:
    if name == "approve":
        return _approve(tx, facts, args)
    _to_diamond(tx, facts)
    if name == "submitFeedback":
        check_text(args[0])
    elif name not in EMITS[Role.OPERATOR]:
        raise Refused(f"the operator does not sign {name or 'a transfer'} here", rule="role")


EMITS: Mapping[Role, frozenset[str]] = MappingProxyType(
    {
        Role.IDENTITY: frozenset({"submitFeedback", *(one.name for one in reputation.WRITES.values())}),
        Role.SPONSOR: frozenset({""}),
        Role.THROWAWAY: frozenset(
            {"", "approve", "register", "setMetadata", RELEASE, "claimDaily", "clearMain"}
        ),
        Role.OPERATOR: frozenset(
            {"approve", "submitFeedback", "register", "setMetadata", "registerMain", "clearMain"}
        ),
    }
)
"""Every call that the fleet can sign, by the key that makes it; "" is a transfer. The sponsor also deploys
its delegate, and sends a throwaway key's calls through it: each is judged as if the key signed it."""

_ALLOW: Mapping[Role, Callable[[TxRequest, SigningFacts, str, tuple[Any, ...]], None]] = {
    Role.IDENTITY: _identity,
    Role.SPONSOR: _sponsor,
    Role.THROWAWAY: _throwaway,
    Role.OPERATOR: _operator,
}
