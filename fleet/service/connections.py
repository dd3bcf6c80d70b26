"""Connections to the pages: limits per listener on their number and on their silence.

uvicorn counts the connections of all its sockets together and waits without limit for a first head: a silent
client on the port would close the unix socket too. Here each listener has its own limit, and a head has a
deadline. At the limit the address with most connections makes room: by the one that has been silent longest,
else by the oldest that does not read its answers, else, for a caller with fewer, by its oldest one at work. A
connection has a limited number of requests, so that pipelining keeps no place. A follower of the pages takes
none of these places: the page limits how many there are. Its connection closes with its stream, or once its
client has left it unread for the length of a life.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from fleet.service.follow import CHANGES

CONNECTIONS = 64
"""Most connections at a time, per listener."""
REQUESTS = 100
"""Most requests of one connection."""
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


@dataclass(slots=True)
class _Listener:
    """The connections of one listener; `silent` are those that owe a request head, the oldest first."""

    here: dict[PageConnection, None] = field(default_factory=dict)
    silent: dict[PageConnection, None] = field(default_factory=dict)

    def admit(self, new: PageConnection) -> bool:
        if len(self.here) >= CONNECTIONS:
            if (one := self._in_the_way(new)) is None:
                return False
            self.leave(one)
            one.transport.abort()
        self.here[new] = None
        return True

    def _in_the_way(self, new: PageConnection) -> PageConnection | None:
        """The connection that makes room for a new one; None if each is at work for a caller with no more."""
        held = Counter(one.address for one in self.here)
        most = max(held.values())
        silent = (one for one in self.silent if held[one.address] == most)
        unread = (one for one in self.here if held[one.address] == most and one.is_unread)
        at_work = (one for one in self.here if held[one.address] == most > held[new.address] + 1)
        return next(itertools.chain(silent, unread, at_work), None)

    def leave(self, one: PageConnection) -> None:
        self.here.pop(one, None)
        self.silent.pop(one, None)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one server, by the address connected to. Seconds."""

    head_s: float
    """Deadline for a head, from the connection or from the last answer."""
    life_s: float
    """Longest life of a connection, busy or not."""
    listeners: defaultdict[object, _Listener] = field(default_factory=lambda: defaultdict(_Listener))


class PageConnection(H11Protocol):
    """uvicorn's connection, counted by its listener."""

    def __init__(self, limits: ConnectionLimits, **given: Any) -> None:  # noqa: ANN401  uvicorn's own arguments
        super().__init__(**given)
        self._limits = limits
        self._life: asyncio.TimerHandle | None = None
        self._head: asyncio.TimerHandle | None = None
        self._answered = 0
        self._follows = False

    @property
    def address(self) -> str:
        """The caller's address; "" on the unix socket."""
        return self.client[0] if self.client else ""

    @property
    def is_unread(self) -> bool:
        """Whether its client leaves answers unread, so that no more can be written."""
        return self.flow is not None and self.flow.write_paused

    @property
    def _is_asked(self) -> bool:
        """Whether a request is being handled."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._listener = self._limits.listeners[self.server]
        if not self._listener.admit(self):
            transport.write(_FULL)
            transport.close()
            return
        self._life = self.loop.call_later(self._limits.life_s, transport.abort)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.leave(self)
        for timer in (self._life, self._head):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_asked and self.scope["path"] == CHANGES and not self._follows:
            self._follows = True
            self._listener.leave(self)
            self._live_on()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._follows:
            self._life = self.loop.call_later(self._limits.life_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._follows:
            self._live_on()

    def _live_on(self) -> None:
        """A follower that reads has no longest life."""
        if self._life is not None:
            self._life.cancel()

    def on_response_complete(self) -> None:
        self._answered = REQUESTS if self._follows else self._answered + 1
        if self._answered >= REQUESTS and not self.transport.is_closing():
            self.transport.close()  # what is written still goes out
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """The head's deadline runs while no request is handled; half a head does not reset it."""
        waits = not self._is_asked
        if waits and self._head is None and not self.transport.is_closing():
            self._listener.silent[self] = None
            self._head = self.loop.call_later(self._limits.head_s, self.transport.abort)
        elif not waits and self._head is not None:
            self._listener.silent.pop(self, None)
            self._head.cancel()
            self._head = None
