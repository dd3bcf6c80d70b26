"""Who pays for what throwaway keys do, in one of two ways behind SponsorPort (decision 90).

Stipends       a key gets the exact cost of its next transaction, and returns the rest
SponsoredKeys  a key never holds anything: the sponsor sends its calls, through a delegate (EIP-7702), or pays
               for them (Tempo)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from fleet.chain.keys import address_of, fresh
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.chain.node.rpc import Call, Rpc
from fleet.chain.ports import Receipt, Role, RunScope, Settlement, SignerPort, TxRequest
from fleet.chain.signing import delegate
from fleet.chain.signing.judge import is_refund
from fleet.chain.signing.tx import authorize, parse
from fleet.errors import RpcError, TryAgain

TRANSFER_GAS = 21_000
CLEAR_GAS = 80_000
"""Taking a delegate away: 21,000 and 25,000 for its authorisation, and what a chain may add."""
FEE_MANAGER = "0xfeec000000000000000000000000000000000000"
"""Where each chain of Tempo has the contract that takes fees, and no other chain has code."""
_AUTHORISATION_GAS = 12_500
"""What an authorisation costs at least (EIP-7702, PER_AUTH_BASE_COST)."""
_LOG = logging.getLogger("fleet")


class Stipends:
    """Implements SponsorPort: pays through the signer, so that each stipend passes policy and limit."""

    def __init__(self, rpc: Rpc, signer: SignerPort) -> None:
        self._rpc = rpc
        self._signer = signer

    async def act(self, scope: RunScope, request: TxRequest, *, check: bool = True) -> Receipt:
        """Fund the key for this transaction and submit it."""
        fee = await self.fund(
            scope, request.key, gas=request.gas, value=request.value, cleanup=request.cleanup
        )
        return await self._signer.submit(replace(request, max_fee=fee), check=check)

    async def act_again(self, scope: RunScope, label: str, raw: bytes) -> Settlement:
        """Replace the stipend that these bytes were paid with, and send them again.

        What took a delegate away is made anew: the sponsor signs it, and the key's word is in the bytes.
        """
        unsigned, _ = parse(raw)
        if unsigned.authorizations and not unsigned.data:
            scope.last_words[label] = raw
            receipt = await self.void(scope, label)
            return Settlement(state="mined", tx=receipt.tx, receipt=receipt)
        await self.fund(scope, label, gas=unsigned.gas, fee=unsigned.max_fee, cleanup=True)
        return await self._signer.settle_raw(raw)

    async def fund(
        self, scope: RunScope, label: str, *, gas: int, value: int = 0, fee: int = 0, cleanup: bool = False
    ) -> int:
        """Raise the key's balance to `gas * fee + value`; return that fee (wei per gas, 0: the going rate).

        Pass it as `max_fee` of the transaction that the stipend is for. The rest of an earlier stipend
        counts. Refused (rule `stipend`) when the run has used up its share.
        """
        address = scope.keys.addresses()[label]
        fee = fee or await self._signer.max_fee()
        missing = gas * fee + value - await self._rpc.balance(address)
        if missing > 0:
            request = TxRequest(
                role=Role.SPONSOR,
                to=address,
                value=missing,
                gas=TRANSFER_GAS,
                charge="none",
                run=scope.run,
                purpose=f"stipend {label}",
                cleanup=cleanup,
            )
            await self._signer.submit(request)
        return fee

    async def sweep(self, scope: RunScope, label: str) -> int:
        """Send the key's whole balance back to the sponsor; return the wei sent.

        Dust below the price of the transfer stays: moving it would cost more than it is worth. A delegate is
        taken away first, in either way: the profile may have been changed while the key was in use.
        """
        address = scope.keys.addresses()[label]
        if await self.delegated([address]):
            await self.void(scope, label)
            if await self.delegated([address]):
                raise TryAgain(f"{label} still has a delegate after it was cleared")
        fee = await self._signer.max_fee()
        rest = await self._rpc.balance(address) - TRANSFER_GAS * fee
        if rest <= 0:
            return 0
        # tip = fee: the whole fee is charged, so that none of it is returned as dust
        request = TxRequest(
            role=Role.THROWAWAY,
            to=self._signer.address(Role.SPONSOR),
            value=rest,
            gas=TRANSFER_GAS,
            charge="none",
            run=scope.run,
            key=label,
            purpose=f"sweep {label}",
            cleanup=True,
            max_fee=fee,
            tip=fee,
        )
        await self._signer.submit(request)
        return rest

    async def void(self, scope: RunScope, label: str) -> Receipt:
        """Authorise the zero address: the key has no delegate then, and its earlier words are used up."""
        return await self._signer.submit(replace(self._empty(scope, label, "clear"), sponsored=True))

    def _empty(self, scope: RunScope, label: str, verb: str) -> TxRequest:
        """A call of a key that does nothing but use up its number."""
        return TxRequest(
            role=Role.THROWAWAY,
            to=self._signer.address(Role.SPONSOR),
            gas=CLEAR_GAS,
            charge="none",
            run=scope.run,
            key=label,
            purpose=f"{verb} {label}",
            cleanup=True,
        )

    async def delegated(self, addresses: Sequence[str]) -> list[str]:
        """Those whose code is the designation of a delegate: no other can stand at a key's address."""
        codes = await self._rpc.batch([("eth_getCode", [one, "latest"]) for one in addresses])
        for code in codes:
            if isinstance(code, RpcError):
                raise code
        pointer = as_bytes(delegate.POINTER)
        return [one for one, code in zip(addresses, codes, strict=True) if as_bytes(code).startswith(pointer)]

    async def _code(self, address: str) -> bytes:
        return as_bytes(await self._rpc.call("eth_getCode", [address, "latest"]))


class SponsoredKeys(Stipends):
    """Implements SponsorPort on a chain of Tempo, or one that knows EIP-7702; on another it is Stipends, and
    logs why."""

    def __init__(self, rpc: Rpc, signer: SignerPort) -> None:
        super().__init__(rpc, signer)
        self._why_not: str | None = None
        self._tempo: bool | None = None

    async def act(self, scope: RunScope, request: TxRequest, *, check: bool = True) -> Receipt:
        """Pay for the key's call, or send it in the key's stead, through its delegate, which is deployed once
        for a sponsor."""
        if await self._is_tempo():
            return await self._signer.submit(replace(request, fee_paid=True), check=check)
        async with scope.acting:
            if not await self._is_ready(scope, request):
                return await super().act(scope, request, check=check)
            return await self._signer.submit(replace(request, sponsored=True), check=check)

    async def act_again(self, scope: RunScope, label: str, raw: bytes) -> Settlement:
        """The same call anew, where the key still has its delegate: it needs no signature of the key's. What
        was paid for is the key's own, with the payer's signature in it: the same bytes again."""
        unsigned, _ = parse(raw)
        if unsigned.payer:
            return await self._signer.settle_raw(raw)
        if (call := delegate.call_in(unsigned.data)) is None:
            return await super().act_again(scope, label, raw)
        request = TxRequest(
            role=Role.THROWAWAY,
            to=call.to,
            data=call.data,
            gas=unsigned.gas,
            charge="none",
            run=scope.run,
            key=label,
            purpose=f"release {label}",
            cleanup=True,
            sponsored=True,
        )
        if not is_refund(request):
            return Settlement(state="failed", tx="", reason="only clean-up is repeated")
        receipt = await self._signer.submit(request)
        return Settlement(state="mined", tx=receipt.tx, receipt=receipt)

    async def sweep(self, scope: RunScope, label: str) -> int:
        """Nothing, where no key was ever given anything."""
        return 0 if await self._is_tempo() else await super().sweep(scope, label)

    async def void(self, scope: RunScope, label: str) -> Receipt:
        """Where a key sends its own calls, an empty one, to the sponsor."""
        if not await self._is_tempo():
            return await super().void(scope, label)
        return await self._signer.submit(replace(self._empty(scope, label, "void"), fee_paid=True))

    async def _is_tempo(self) -> bool:
        if self._tempo is None:
            self._tempo = await is_tempo(self._rpc)
        return self._tempo

    async def _is_ready(self, scope: RunScope, request: TxRequest) -> bool:
        """Whether there is a delegate, deployed now if need be; False where the chain cannot have it.

        Whether it is ours the signer's policy decides, before each signature.
        """
        sponsor = self._signer.address(Role.SPONSOR)
        if self._why_not is None:
            self._why_not = await why_not_sponsored(self._rpc, sponsor)
            if self._why_not:
                _LOG.warning("throwaway keys are paid by stipends: %s", self._why_not)
        if self._why_not:
            return False
        place = delegate.delegate_of(sponsor)
        if await self._code(place) == b"":
            if request.cleanup:  # nothing was ever sponsored here
                return False
            deployment = TxRequest(
                role=Role.SPONSOR,
                to=delegate.DEPLOYER,
                data=delegate.deployment(sponsor),
                gas=delegate.DEPLOY_GAS,
                charge="none",
                run=scope.run,
                purpose="deploy the delegate",
            )
            await self._signer.submit(deployment)
        return True


async def in_force(rpc: Rpc, mode: str, sponsor: str = ZERO_ADDRESS) -> str:
    """Which way throwaway keys are paid on this chain, and why. Any address can stand for the sponsor's."""
    if mode != "sponsored":
        return "stipends, by [sponsor] mode: a key gets what its next transaction costs, and returns the rest"
    if await is_tempo(rpc):
        return "sponsored, by [sponsor] mode: on a chain of Tempo the sponsor pays, and keys hold nothing"
    if why := await why_not_sponsored(rpc, sponsor):
        return f"stipends, though [sponsor] mode is sponsored: {why}"
    return "sponsored, by [sponsor] mode: the chain knows EIP-7702, so keys hold nothing"


async def is_tempo(rpc: Rpc) -> bool:
    """Whether this is a chain of Tempo: it has no coin to send, and one may pay another's fee in a token."""
    return as_bytes(await rpc.call("eth_getCode", [FEE_MANAGER, "latest"])) != b""


async def why_not_sponsored(rpc: Rpc, sponsor: str) -> str:
    """Why this chain's keys cannot be sponsored, "" if they can, by asking what an authorisation costs."""
    key = fresh()
    word = authorize(key, chain_id=as_int(await rpc.call("eth_chainId")), address=ZERO_ADDRESS, nonce=0)
    numbers = {
        "chainId": word.chain_id,
        "nonce": word.nonce,
        "yParity": word.y_parity,
        "r": word.r,
        "s": word.s,
    }
    signed = {"address": word.address} | {name: hex(number) for name, number in numbers.items()}
    plain = {"from": sponsor, "to": address_of(key)}
    calls: list[Call] = [
        ("eth_getCode", [delegate.DEPLOYER, "latest"]),
        ("eth_getCode", [delegate.delegate_of(sponsor), "latest"]),
        ("eth_estimateGas", [plain]),
        ("eth_estimateGas", [{**plain, "authorizationList": [signed]}]),
    ]
    deployer, there, without, with_word = await rpc.batch(calls)
    for answer in (deployer, there, without):
        if isinstance(answer, RpcError):
            raise answer
    if isinstance(with_word, RpcError):
        return f"the chain knows no transactions of type 4 (EIP-7702): {with_word}"
    if as_int(with_word) - as_int(without) < _AUTHORISATION_GAS:
        return "the chain knows no transactions of type 4 (EIP-7702): it ignores an authorisation"
    if as_bytes(deployer) == as_bytes(there) == b"":
        return f"the deterministic deployer is not at {delegate.DEPLOYER}, so nothing can deploy the delegate"
    return ""
