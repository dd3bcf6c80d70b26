"""What a run does with the chain's ports, end to end: fund, submit, release, sweep."""

from __future__ import annotations

from typing import Any

from fleet.chain.keys import auth_token
from fleet.chain.node import abi
from fleet.chain.node.digest import is_address
from fleet.chain.ports import NamesPort, Receipt, Role, RunScope, SignerPort, SponsorPort, TxRequest
from fleet.clock import Clock
from fleet.config import GasSection
from fleet.errors import Refused, TxFailed

_RELEASE = abi.FUNCTIONS["releaseName"]


class RunWallet:
    """Throwaway keys only; the same calls work on the real ports and on the doubles."""

    def __init__(
        self,
        scope: RunScope,
        signer: SignerPort,
        sponsor: SponsorPort,
        names: NamesPort,
        *,
        diamond: str,
        gas: GasSection,
        auth_scope: str,
        clock: Clock,
    ) -> None:
        self.scope = scope
        self._signer = signer
        self._sponsor = sponsor
        self._names = names
        self._diamond = diamond
        self._gas = gas
        self._auth_scope = auth_scope
        self._clock = clock
        signer.open_run(scope)

    async def submit(self, key: str, to: str, data: bytes, value: int, gas: int) -> dict[str, Any]:
        """Fund the key and send one transaction for a jail; a mined failure is an answer, not an exception.

        `{tx, status, gas_used, block, reverted, error_class}` with `error_class` "", `reverted` or `oog`.
        Raises Refused, BudgetExceeded, RpcError, Unreachable, TxFailed (kind `not_mined`).
        """
        request = TxRequest(
            role=Role.THROWAWAY,
            to=to,
            data=data,
            value=value,
            gas=gas,
            charge="writes",
            run=self.scope.run,
            key=key,
            purpose=f"tool {key}",
        )
        return _answer(await self._send(request, check=False))

    async def token(self, key: str, route: str, age: int = 0) -> dict[str, str]:
        """A fresh call token of one throwaway key; Refused when the run has no such key."""
        secret = self.scope.keys.get(key)
        stamp = int(self._clock.now().timestamp()) - age
        token = auth_token(self._auth_scope, secret, stamp, route)
        return {"token": token, "address": token.partition(":")[0]}

    async def release(self, token_id: int) -> Receipt | None:
        """Give one minted name back and prove it; None when it is free already.

        TxFailed (kind `read_back`) when the chain still shows an owner afterwards.
        """
        name = await self._names.name_of_id(token_id)
        owner = await self._names.owner_of_name(name) if name else ""
        if not owner:
            return None
        label = self._label(owner)
        receipt = await self._clean(label, _RELEASE.encode(token_id), self._gas.release_name)
        if await self._names.owner_of_name(name):
            raise TxFailed(f"id {token_id} still has an owner", kind="read_back", tx=receipt.tx)
        self.scope.minted.pop(token_id, None)
        return receipt

    async def recover_minted(self, names: list[str]) -> dict[int, str]:
        """Rebuild `scope.minted` after a crash from the names that the journal recorded.

        A name counts only when one of this run's own keys owns it on chain.
        """
        ours = set(self.scope.keys.addresses().values())
        for name in names:
            token_id = await self._names.id_of_name(name)
            if token_id and await self._names.owner_of_name(name) in ours:
                self.scope.minted[token_id] = name
        return dict(self.scope.minted)

    async def sweep(self) -> int:
        """Send what every key of the run still holds back to the sponsor; wei in total."""
        total = 0
        for label in self.scope.keys.addresses():
            total += await self._sponsor.sweep(self.scope, label)
        return total

    async def _clean(self, label: str, data: bytes, gas: int) -> Receipt:
        request = TxRequest(
            role=Role.THROWAWAY,
            to=self._diamond,
            data=data,
            gas=gas,
            charge="none",
            run=self.scope.run,
            key=label,
            purpose="clean-up",
            cleanup=True,
        )
        return await self._send(request, check=True)

    async def _send(self, request: TxRequest, *, check: bool) -> Receipt:
        if not is_address(request.to) or request.key not in self.scope.keys.addresses():
            raise Refused("a transaction needs a recipient and one of this run's keys", rule="key")
        await self._signer.check(request)  # before it is paid for
        return await self._sponsor.act(self.scope, request, check=check)

    def _label(self, owner: str) -> str:
        for label, address in self.scope.keys.addresses().items():
            if address == owner:
                return label
        raise Refused(f"{owner} is not a key of this run", rule="key")


def _answer(receipt: Receipt) -> dict[str, Any]:
    return {
        "tx": receipt.tx,
        "status": receipt.status,
        "gas_used": receipt.gas_used,
        "block": receipt.block,
        "reverted": receipt.reason or receipt.failure,
        "error_class": receipt.failure,
    }
