"""HTTP in front of the doors: how much is read, for how long, and of how many at a time."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from fleet.errors import FleetError
from fleet.service.doors import Answer, Doors
from fleet.triggers.hook import LARGEST, Delivery

CROWD = 8
"""Requests that are read and judged at a time: 2 MiB of bodies at most."""
DEADLINE_S = 10.0
"""From the headers to the answer."""

_LOG = logging.getLogger("fleet.hooks")


class Intake:
    """Requests to the doors. `POST /runs` is there only on the unix socket: a file mode is its fence."""

    def __init__(self, doors: Doors, is_ready: Callable[[], bool], *, deadline_s: float = DEADLINE_S) -> None:
        self._doors, self._is_ready, self._deadline_s = doors, is_ready, deadline_s
        self._busy = 0

    async def hook(self, request: Request) -> Response:
        """`POST /hooks/{name}`."""

        async def judge(body: bytes) -> Answer:
            pairs = tuple(request.headers.items())
            return await self._doors.deliver(Delivery(request.path_params["name"], pairs, body))

        return await self._answer(request, judge)

    async def runs(self, request: Request) -> Response:
        """`POST /runs`."""
        if not _by_socket(request):
            return _no(404, "not here")
        return await self._answer(request, self._doors.ask)

    async def _answer(self, request: Request, judge: Callable[[bytes], Awaitable[Answer]]) -> Response:
        if not self._is_ready():
            return _no(503, "the daemon takes no new work", again_s=5)
        if self._busy >= CROWD:
            return _no(429, "too many requests at a time", again_s=1)
        self._busy += 1
        try:
            with anyio.fail_after(self._deadline_s):
                body = await _read(request)
                if body is None:
                    return _no(413, f"larger than {LARGEST} bytes")
                answer = await judge(body)
        except TimeoutError:
            return _no(408, f"not done within {self._deadline_s:.0f} s", again_s=5)
        except ClientDisconnect:
            return _no(400, "the body ended early")
        except FleetError as error:
            _LOG.warning("a request waits for better times: %s", error)
            return _no(503, "it cannot be recorded now", again_s=5)
        finally:
            self._busy -= 1
        again = {"retry-after": "60"} if answer.status in (429, 503) else {}
        return JSONResponse(dict(answer.body), status_code=answer.status, headers=again)


async def _read(request: Request) -> bytes | None:
    """The body; None as soon as it is known to be too large."""
    if int(request.headers.get("content-length", "0")) > LARGEST:
        return None
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            return None
    return bytes(body)


def _by_socket(request: Request) -> bool:
    """Whether it came by the unix socket: its address is a path and has no port."""
    server = request.scope.get("server")
    return server is not None and server[1] is None


def _no(status: int, why: str, *, again_s: int = 0) -> Response:
    headers = {"retry-after": str(again_s)} if again_s else {}
    return JSONResponse({"error": why}, status_code=status, headers=headers)
