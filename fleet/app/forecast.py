"""When a daemon that started now would start each persona first, by the daemon's own schedule."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from fleet.chain.node.digest import ZERO_ADDRESS
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock
from fleet.config import Platform, load_fleet
from fleet.events.daemon_events import DaemonEvent
from fleet.personas.load import LoadedPersona
from fleet.service.triggers import Triggers
from fleet.store.journal import MEMORY, Journal
from fleet.store.location import store_place
from fleet.triggers.model import Firing, Skip


class _Unwritten(Journal):
    """A journal that is only read: a persona's first start is not kept."""

    async def swap(self, key: str, old: str | None, value: str) -> bool:  # noqa: ARG002  the journal's own
        return True


class _Nothing:
    """A sink that starts nothing."""

    async def fire(self, firing: Firing) -> bool:  # noqa: ARG002  the port's
        return False

    async def skip(self, skip: Skip) -> None: ...


async def forecast(
    state: Path, profile: Platform, personas: Collection[LoadedPersona]
) -> dict[str, datetime]:
    """The next start of each persona that the clock or its own pace starts; nothing is written.

    Raises what the journal raises.
    """
    place = store_place(load_fleet().store, state)
    missing = isinstance(place, Path) and not place.exists()

    def unheard(_: DaemonEvent) -> None: ...

    async with await _Unwritten.open(MEMORY if missing else place) as journal:
        triggers = Triggers(
            _Nothing(),
            journal,
            Rpc(profile.chain.rpc),
            profile,
            ZERO_ADDRESS,
            state,
            SystemClock(),
            emit=unheard,
        )
        await triggers.start(personas)
        return triggers.upcoming()
