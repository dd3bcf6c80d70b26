"""Stipends: a throwaway key gets the exact cost of its next transaction; what is left goes back."""

from __future__ import annotations

from fleet.chain.ports import Role, RunScope, SignerPort, TxRequest
from fleet.chain.rpc import Rpc

TRANSFER_GAS = 21_000


class Sponsor:
    """Pays through the signer, so every stipend passes the policy and the run's limit."""

    def __init__(self, rpc: Rpc, signer: SignerPort) -> None:
        self._rpc = rpc
        self._signer = signer

    async def fund(
        self, scope: RunScope, label: str, *, gas: int, value: int = 0, fee: int = 0, cleanup: bool = False
    ) -> int:
        """Bring the key's balance to `gas * fee + value`; returns that fee (wei per gas, 0: the going rate).

        Pass it as `max_fee` of the transaction that the stipend is for. What is left of an earlier
        stipend counts. Refused (rule `stipend`) when the run has had its share.
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
        """Send everything the key holds back to the sponsor, to a balance of 0; the wei sent back.

        Dust below the price of the transfer stays: moving it would cost more than it is.
        """
        address = scope.keys.addresses()[label]
        fee = await self._signer.max_fee()
        rest = await self._rpc.balance(address) - TRANSFER_GAS * fee
        if rest <= 0:
            return 0
        # tip = fee: the whole fee is charged, so that nothing of it comes back as dust
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
