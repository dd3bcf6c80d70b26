"""`GET /runs/<id>/events`: a run as server-sent events: the recorded ones, then live ones.

The `id` of an event is the number of its record in the trajectory, so a client that reconnects with
`Last-Event-ID` misses no record; pieces of messages, which are not recorded, have none. A connection ends
after STAY_S, or when the client falls behind, and the client reconnects. 204 means that the run is complete.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fleet.events.live import Hub, Lagged, LiveReader
from fleet.events.model import LIVE, Event
from fleet.events.recorded import BATCH, Recording, UnknownRecord, kind_of, lines

CHANGES = "/changes"
"""Where the pages' followers are notified of changes (fleet/web); their connections have their own places."""
STAY_S = 20.0
"""Shorter than the longest life of a connection."""
CROWD = 16
AGAIN_MS = 500
_RUN = re.compile(r"[a-z0-9]{1,64}")


@dataclass(slots=True)
class Followers:
    """The followers of this daemon's runs. Only the unix socket has this page."""

    hub: Hub
    state: Path
    stay_s: float = STAY_S
    _busy: int = 0

    async def events(self, request: Request) -> Response:
        server = request.scope.get("server")
        run = request.path_params["run"]
        if (server is not None and server[1] is not None) or not _RUN.fullmatch(run):
            return _no(404, "not here")
        path = self.state / "runs" / run / "trajectory.jsonl"
        if not path.is_file():
            return _no(404, "no such run")
        last = request.headers.get("last-event-id", "")
        seen = int(last) if re.fullmatch(r"[0-9]{1,9}", last, re.ASCII) else 0
        # in one step: what is on disk now, and everything emitted from now on
        live, size = self.hub.follow(run), path.stat().st_size
        if live is None and seen and await to_thread.run_sync(_is_over, path, seen):
            return Response(status_code=204)
        if self._busy >= CROWD:
            if live is not None:
                live.close()
            return _no(429, "too many followers already")
        self._busy += 1
        return EventStream(
            _events(path, size, live, seen, self.stay_s),
            partial(self._leave, live),
            {"cache-control": "no-store"},
        )

    def _leave(self, live: LiveReader | None) -> None:
        self._busy -= 1
        if live is not None:
            live.close()


class EventStream(StreamingResponse):
    """Server-sent events: releases its place however it ends, even before its first event."""

    def __init__(
        self, events: AsyncGenerator[str, None], leave: Callable[[], None], headers: Mapping[str, str]
    ) -> None:
        super().__init__(events, media_type="text/event-stream", headers=dict(headers))
        self._events, self._leave = events, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()
            with anyio.CancelScope(shield=True):
                await self._events.aclose()


async def _events(
    path: Path, size: int, live: LiveReader | None, seen: int, stay_s: float
) -> AsyncGenerator[str, None]:
    try:
        yield f"retry: {AGAIN_MS}\n\n"
        count, recording = 0, Recording(path, end=size)  # later records are sent live
        while batch := await to_thread.run_sync(recording.new, BATCH):
            for record in batch:
                count += 1
                if count > seen:
                    yield _sse(record, count)
        if live is None:
            return
        async with aclosing(live.events()) as events:
            until = anyio.current_time() + stay_s
            while True:
                event: Event | Lagged | None = None
                with anyio.move_on_at(until):
                    event = await anext(events, None)
                if event is None or isinstance(event, Lagged):
                    return
                count += not isinstance(event, LIVE)
                yield _sse(event, 0 if isinstance(event, LIVE) else count)
    finally:
        if live is not None:
            live.close()


def _sse(record: Event | UnknownRecord, number: int) -> str:
    ident = f"id: {number}\n" if number else ""
    if isinstance(record, UnknownRecord):
        return f"{ident}event: unknown\ndata: {{}}\n\n"
    return f"{ident}event: {record.type}\ndata: {record.model_dump_json()}\n\n"


def _is_over(path: Path, seen: int) -> bool:
    """Whether the footer is among the records that were seen."""
    count = 0
    for line in lines(path):
        count += bool(line.text.strip()) and not line.torn
        if kind_of(line.text) == "footer":
            return count <= seen
    return False


def _no(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status_code=status)
