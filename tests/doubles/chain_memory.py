"""The state of a platform in memory, and those parts of the chain's doubles that only read or record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.chain.keys import Secret, address_of, fresh
from fleet.chain.node.codec import Entry
from fleet.errors import Refused


@dataclass
class MemoryJournal:
    """A TxJournal in memory: `intents` by id, and `ends` with their status."""

    intents: dict[int, dict[str, Any]] = field(default_factory=dict)
    ends: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    payments: list[dict[str, Any]] = field(default_factory=list)

    async def intend_tx(self, run: str, purpose: str, tx_hash: str, raw: bytes, meta: dict[str, Any]) -> int:
        effect = len(self.intents) + 1
        self.intents[effect] = {"run": run, "purpose": purpose, "tx": tx_hash, "raw": raw, **meta}
        return effect

    async def still_open(self, effect_id: int) -> None:
        pass  # no other daemon exists

    async def unmined(self, run: str) -> list[bytes]:
        seen = {effect for effect, (_, data) in self.ends.items() if "status" in data}
        mine = {effect: one for effect, one in self.intents.items() if one["run"] == run}
        return [
            one["raw"] for effect, one in mine.items() if one["role"] == "identity" and effect not in seen
        ]

    async def note_payment(self, run: str, nonce: str, data: dict[str, Any]) -> None:
        self.payments.append({"run": run, "nonce": nonce, **data})

    async def paid(self, run: str) -> int:
        return sum(one["value"] for one in self.payments if one["run"] == run)

    async def tx_done(self, effect_id: int, status: str, data: dict[str, Any]) -> None:
        self.ends[effect_id] = (status, data)

    def open(self) -> list[dict[str, Any]]:
        """Intents without an end, for recovery."""
        return [intent for effect, intent in self.intents.items() if effect not in self.ends]


class MemoryKeys:
    """A KeyRing without files."""

    def __init__(self) -> None:
        self._keys: dict[str, Secret] = {}

    def new(self, label: str) -> str:
        """Create a key; return its address."""
        self._keys[label] = fresh()
        return address_of(self._keys[label])

    def get(self, label: str) -> Secret:
        if label not in self._keys:
            raise Refused(f"this run has no key {label!r}", rule="key")
        return self._keys[label]

    def addresses(self) -> dict[str, str]:
        return {label: address_of(key) for label, key in self._keys.items()}


@dataclass
class MemoryState:
    """State of the contracts; addresses lower-case, `now` in Unix seconds."""

    entries: list[Entry] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    metadata: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    balances: dict[str, int] = field(default_factory=dict)
    minted: int = 0
    now: int = 1_700_000_000


class MemoryNames:
    """NamesPort on the dictionary."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def owner_of_name(self, name: str) -> str:
        return self._state.owners.get(await self.id_of_name(name), "")

    async def owners_of_names(self, names: Sequence[str]) -> list[str]:
        return [await self.owner_of_name(name) for name in names]

    async def id_of_name(self, name: str) -> int:
        return next((token_id for token_id, taken in self._state.names.items() if taken == name), 0)

    async def name_of_id(self, token_id: int) -> str:
        return self._state.names.get(token_id, "")

    async def next_id(self) -> int:
        return self._state.minted + 1

    async def registration_cost(self) -> int:
        return 0
