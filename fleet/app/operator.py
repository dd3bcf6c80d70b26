"""Operator commands that sign with the fleet's own key, besides reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fleet.app.journal import open_journal
from fleet.app.lock import only_one
from fleet.app.wiring import fences
from fleet.chain.keys import load_key
from fleet.chain.names import Names
from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.digest import metadata_key
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import Role, TxRequest
from fleet.chain.signing.never import NeverList
from fleet.chain.signing.signer import JournalledTx, Keys, Signer
from fleet.config import LiveConfig, Platform, key_file, load_fleet, load_platform
from fleet.errors import Refused, TxFailed, UsageError


@dataclass(frozen=True, slots=True)
class Operator:
    """Signs an operator's writes with the identity's key, and reads each one back."""

    rpc: Rpc
    platform: Platform
    signer: Signer

    async def own(self, name: str) -> int:
        """The id of a name that this key owns; registers a free name. Refused when another key owns it."""
        names = Names(self.rpc, self.platform.chain.diamond)
        owner, me = await names.owner_of_name(name), self.signer.address(Role.OPERATOR)
        if owner and owner != me:
            raise Refused(f"{name} belongs to {owner}", rule="owner", remedy="rename the persona")
        if not owner:
            if cost := await names.registration_cost():
                await self._sign(self.platform.chain.token, "approve", self.platform.chain.diamond, cost)
            gas = self.platform.gas.register_name
            await self._sign(self.platform.chain.diamond, "register", name, gas=gas)
        return await names.id_of_name(name)

    async def set_metadata(self, token_id: int, name: str, value: bytes) -> str:
        """Write one metadata key and read it back; return the transaction's hash."""
        diamond, key, gas = self.platform.chain.diamond, metadata_key(name), self.platform.gas
        limit = gas.publish_base + gas.publish_per_byte * len(value)
        tx = await self._sign(diamond, "setMetadata", token_id, key, value, gas=limit)
        if await self.rpc.view(diamond, "metadata", token_id, key) != value:
            raise TxFailed(f"{name} of agent {token_id} does not read back", kind="read_back", tx=tx)
        return tx

    async def _sign(self, to: str, function: str, *args: object, gas: int = 0) -> str:
        request = TxRequest(
            role=Role.OPERATOR,
            to=to,
            data=FUNCTIONS[function].encode(*args),
            gas=gas or self.platform.gas.small,
            charge="none",
            purpose=f"operator {function}",
        )
        return (await self.signer.submit(request)).tx


@asynccontextmanager
async def open_operator(state: Path, *, platform: str | None) -> AsyncIterator[Operator]:
    """The signer for an operator's command; holds the state directory's lock and uses the journal."""
    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state)
    if not profile.chain.diamond:
        raise UsageError(f"{path}: this platform has no diamond", remedy="set chain.diamond there")
    with only_one(state):
        key = load_key(key_file(config, "identity", state))
        async with Rpc(profile.chain.rpc) as rpc, await open_journal(state) as journal:
            await rpc.check_target(profile)
            signer = Signer(
                rpc,
                profile.chain,
                JournalledTx(journal),
                keys=Keys(operator=key),
                fences=fences(state, NeverList(LiveConfig(config).never), profile),
            )
            yield Operator(rpc, profile, signer)
