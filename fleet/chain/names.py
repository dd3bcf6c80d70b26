"""The name registry: who owns what, and what of it is ours to release."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.chain import abi, codec
from fleet.chain.digest import ZERO_ADDRESS
from fleet.chain.hexes import as_bytes
from fleet.chain.rpc import Call, Rpc
from fleet.errors import RpcError, Unreachable

SCAN_PAGE = 200
"""Ids asked about in one request."""


class Names:
    """Reads of the registry. Free names and unknown ids read as "" or 0."""

    def __init__(self, rpc: Rpc, diamond: str) -> None:
        self._rpc = rpc
        self._diamond = diamond

    async def owner_of_name(self, name: str) -> str:
        """Lower-case address, "" when the name is free."""
        return _owner(await self._rpc.view(self._diamond, "ownerOfName", name))

    async def id_of_name(self, name: str) -> int:
        """Agent id, 0 when the name is free."""
        return int(await self._rpc.view(self._diamond, "idOfName", name))

    async def name_of_id(self, token_id: int) -> str:
        """Hostile text; "" for an id that was never minted or is released."""
        return str(await self._rpc.view(self._diamond, "nameOfId", token_id))

    async def owner_of_id(self, token_id: int) -> str:
        """Lower-case address, "" when nobody owns the id."""
        return _owner(await self._rpc.view(self._diamond, "ownerOfId", token_id))

    async def main_of(self, address: str) -> int:
        """Id of the address's MAIN identity, 0 when unset."""
        return int(await self._rpc.view(self._diamond, "mainOf", address))

    async def next_id(self) -> int:
        """The id that the next registration gets; every id below it was minted once."""
        return int(await self._rpc.view(self._diamond, "nextId"))

    async def registration_cost(self) -> int:
        """Wei of the platform's token. An unreadable price is an error, never free (facts 1.6)."""
        return int(await self._rpc.view(self._diamond, "registrationCost"))

    async def names_owned_by(self, addresses: Sequence[str], prefix: str) -> dict[int, str]:
        """Id to name, for ids that one of these keys owns and whose name starts with the prefix.

        The janitor's scan of the whole registry. `addresses` are recorded throwaway keys: a
        name with our prefix under anybody else's key is not ours to release.
        """
        ours = {address.lower() for address in addresses}
        end = await self.next_id() if ours and prefix else 1
        found: dict[int, str] = {}
        for start in range(1, end, SCAN_PAGE):
            page = range(start, min(start + SCAN_PAGE, end))
            owners = await self._each("ownerOfId", page)
            held = [token_id for token_id, owner in zip(page, owners, strict=True) if owner in ours]
            for token_id, name in zip(held, await self._each("nameOfId", held), strict=True):
                if name.startswith(prefix):
                    found[token_id] = name
        return found

    async def _each(self, view: str, ids: Sequence[int]) -> list[str]:
        function = abi.FUNCTIONS[view]
        calls: list[Call] = [
            ("eth_call", [{"to": self._diamond, "data": "0x" + function.encode(token_id).hex()}, "latest"])
            for token_id in ids
        ]
        values = []
        for answer in await self._rpc.batch(calls):
            if isinstance(answer, RpcError):
                raise answer
            try:
                values.append(str(function.decode(as_bytes(answer))[0]))
            except codec.Malformed as error:
                raise Unreachable(f"{view} answered nonsense: {error}") from None
        return values


def _owner(address: str) -> str:
    return "" if address == ZERO_ADDRESS else address
