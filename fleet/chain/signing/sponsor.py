"""Stipends: a throwaway key gets the exact cost of its next transaction, and returns the rest."""

from __future__ import annotations

from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role, RunScope, SignerPort, TxRequest

TRANSFER_GAS = 21_000


class Sponsor:
    """Pays through the signer, so that every stipend passes the policy and the run's limit."""

    def __init__(self, rpc: Rpc, signer: SignerPort) -> None:
        self._rpc = rpc
        self._signer = signer

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

        Dust below the price of the transfer stays: moving it would cost more than it is worth.
        """
        address = scope.keys.addresses()[label]
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
