"""Reads the name registry: owners, ids and prices."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.chain.node import abi, codec
from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.hexes import as_bytes
from fleet.chain.node.rpc import Call, Rpc
from fleet.errors import RpcError, Unreachable

PAGE = 200
"""Names per request."""


class Names:
    """Reads the registry. Free names and unknown ids read as "" or 0."""

    def __init__(self, rpc: Rpc, diamond: str) -> None:
        self._rpc = rpc
        self._diamond = diamond

    async def owner_of_name(self, name: str) -> str:
        """Lower-case address, "" when the name is free."""
        return _owner(await self._rpc.view(self._diamond, "ownerOfName", name))

    async def owners_of_names(self, names: Sequence[str]) -> list[str]:
        """Owners of many names, with one request per `PAGE` names."""
        function = abi.FUNCTIONS["ownerOfName"]
        calls: list[Call] = [
            ("eth_call", [{"to": self._diamond, "data": "0x" + function.encode(name).hex()}, "latest"])
            for name in names
        ]
        owners = []
        for start in range(0, len(calls), PAGE):
            for answer in await self._rpc.batch(calls[start : start + PAGE]):
                if isinstance(answer, RpcError):
                    raise answer
                try:
                    owners.append(_owner(str(function.decode(as_bytes(answer))[0])))
                except codec.Malformed as error:
                    raise Unreachable(f"invalid answer to ownerOfName: {error}") from None
        return owners

    async def id_of_name(self, name: str) -> int:
        """Agent id, 0 when the name is free."""
        return int(await self._rpc.view(self._diamond, "idOfName", name))

    async def name_of_id(self, token_id: int) -> str:
        """Hostile text; "" for an id that was never minted or was released."""
        return str(await self._rpc.view(self._diamond, "nameOfId", token_id))

    async def next_id(self) -> int:
        """The id that the next registration gets; every id below it was minted once."""
        return int(await self._rpc.view(self._diamond, "nextId"))

    async def registration_cost(self) -> int:
        """Wei of the platform's token. An unreadable price is an error, never free (facts 1.6)."""
        return int(await self._rpc.view(self._diamond, "registrationCost"))


def _owner(address: str) -> str:
    return "" if address == ZERO_ADDRESS else address
