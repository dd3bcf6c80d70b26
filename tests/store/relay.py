"""A relay before a server's socket that can end a connection around a COMMIT, exactly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
import anyio.lowlevel
from anyio.abc import SocketStream

Fate = Literal["lost before", "lost after", "late"]
"""What becomes of a COMMIT whose connection ends: never sent, done and unanswered, or done in a while."""
LATE_S = 0.5
_ENDS = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


@dataclass
class Relay:
    """Passes everything on, but for the next COMMITs, each of which meets one of `fates`."""

    server: Path
    word: bytes = b"COMMIT"
    """What a message holds that meets its fate."""
    fates: list[Fate] = field(default_factory=list)

    async def serve(self, client: SocketStream) -> None:
        async with client, await anyio.connect_unix(str(self.server)) as server:
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_pass_on, server, client)
                    async for said in client:
                        if self.word in said and self.fates:
                            tasks.cancel_scope.cancel()
                            await self._end(client, server, said, self.fates.pop(0))
                        await server.send(said)
                    tasks.cancel_scope.cancel()
            except* _ENDS:
                pass

    async def _end(self, client: SocketStream, server: SocketStream, commit: bytes, fate: Fate) -> None:
        with anyio.CancelScope(shield=True):
            if fate == "late":
                await client.aclose()
                await anyio.sleep(LATE_S)
            if fate != "lost before":
                await server.send(commit)
                await server.receive()
        await anyio.lowlevel.checkpoint()


async def _pass_on(source: SocketStream, target: SocketStream) -> None:
    async for said in source:
        await target.send(said)
    await target.aclose()


@asynccontextmanager
async def relayed(server: Path, folder: Path) -> AsyncIterator[Relay]:
    """A relay that listens in `folder` under the name that the server's socket has."""
    relay = Relay(server)
    async with (
        await anyio.create_unix_listener(folder / server.name) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, relay.serve)
        yield relay
        tasks.cancel_scope.cancel()
