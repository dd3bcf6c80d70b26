"""The platform's chain interface: a port of five calls, and its double in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from fleet.chain.node.digest import ZERO_ADDRESS, metadata_key
from fleet.errors import TxFailed

PERSONA = metadata_key("localharness.persona")
APP_WASM = metadata_key("localharness.app.wasm")
PUBLIC_FACE = metadata_key("localharness.public_face")
PUBLIC_HTML = metadata_key("localharness.public.html")


class ChainPort(Protocol):
    """The calls the platform makes; each raises Unreachable when the node cannot be asked."""

    async def owner_of_name(self, name: str) -> str:
        """Owner as a lower-case address, the zero address when the name is free."""

    async def id_of_name(self, name: str) -> int:
        """Agent id, 0 when the name is free."""

    async def metadata(self, agent_id: int, key: bytes) -> bytes:
        """Value under a 32-byte key, empty when unset."""

    async def credit_of(self, address: str) -> int:
        """Credit in wei."""

    async def meter(self, address: str, wei: int) -> None:
        """Debit, and return once it is on chain; TxFailed when it is not, and then nothing was debited."""

    async def aclose(self) -> None:
        """Let go of connections."""


@dataclass
class DiamondDouble:
    """The double: same answers as a diamond, from dictionaries. Ids start at 1, in order of registration."""

    credits: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    values: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    metered: list[tuple[str, int]] = field(default_factory=list)
    """Every debit in order, for tests about billing."""

    async def owner_of_name(self, name: str) -> str:
        return self.names.get(name, ZERO_ADDRESS).lower()

    async def id_of_name(self, name: str) -> int:
        return list(self.names).index(name) + 1 if name in self.names else 0

    async def metadata(self, agent_id: int, key: bytes) -> bytes:
        return self.values.get((agent_id, key), b"")

    async def credit_of(self, address: str) -> int:
        return self.credits.get(address.lower(), 0)

    async def meter(self, address: str, wei: int) -> None:
        have = self.credits.get(address.lower(), 0)
        if have < wei:
            raise TxFailed("InsufficientCredits()", kind="reverted")
        self.credits[address.lower()] = have - wei
        self.metered.append((address.lower(), wei))

    async def aclose(self) -> None:
        """Nothing is held."""
