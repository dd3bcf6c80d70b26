"""HTTP in front of the doors: limits on size, time and number of requests.

A delivery's head is checked before its body is read. A slow body takes a place only from other deliveries of
the same webhook, and loses it to the next one of them: only a whole body shows whether it is signed. The
sender with most slow bodies loses its oldest, so that no crowd of one ends a delivery of another.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from fleet.errors import FleetError
from fleet.service.ingress import Ingress, IngressReply
from fleet.triggers.hooks.webhook import LARGEST, Delivery

CROWD = 8
"""Requests of one webhook in flight at a time: at most 2 MiB of bodies."""
DEADLINE_S = 10.0
"""Seconds from the headers to the answer."""

_CLOSE = {"connection": "close"}
"""Header of an answer sent before the whole request was read; the rest is not read."""
_LOG = logging.getLogger("fleet.hooks")


class Intake:
    """Requests to the doors. Only the unix socket has `POST /runs`: its file mode is the fence."""

    def __init__(
        self, doors: Ingress, is_ready: Callable[[], bool], *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._doors, self._is_ready, self._deadline_s = doors, is_ready, deadline_s
        self._busy: Counter[str] = Counter()
        self._reading: defaultdict[str, dict[anyio.CancelScope, str]] = defaultdict(dict)
        """By webhook: the senders of those whose body is not there yet, the oldest first."""

    async def hook(self, request: Request) -> Response:
        """`POST /hooks/{name}`."""
        claimed = Delivery(request.path_params["name"], tuple(request.headers.items()), b"")
        if self._is_ready() and (refusal := self._doors.unwanted(claimed)):
            return JSONResponse(dict(refusal.body), status_code=refusal.status, headers=_CLOSE)

        async def judge(body: bytes) -> IngressReply:
            return await self._doors.deliver(replace(claimed, body=body))

        return await self._answer(request, claimed.hook, judge)

    def _make_room(self, hook: str) -> bool:
        """End a request that waits for its body: the oldest of the sender that has most of them. False if the
        bodies of all are there."""
        reading = self._reading[hook]
        held = Counter(reading.values())
        oldest = next((one for one, sender in reading.items() if held[sender] == max(held.values())), None)
        if oldest is None:
            return False
        reading.pop(oldest)
        oldest.cancel()
        self._busy[hook] -= 1
        return True

    async def runs(self, request: Request) -> Response:
        """`POST /runs`."""
        server = request.scope.get("server")
        if server is None or server[1] is not None:  # the address of the unix socket has no port
            return _no(404, "not here")
        return await self._answer(request, "", self._doors.ask)

    async def _answer(
        self, request: Request, hook: str, judge: Callable[[bytes], Awaitable[IngressReply]]
    ) -> Response:
        if not self._is_ready():
            return _no(503, "the daemon accepts no new work", again_s=5)
        if int(request.headers.get("content-length", "0")) > LARGEST:
            return _no(413, f"larger than {LARGEST} bytes")
        if self._busy[hook] >= CROWD and not self._make_room(hook):
            return _no(429, "too many requests at a time", again_s=1)
        self._busy[hook] += 1
        body, reading = None, anyio.CancelScope()
        try:
            with anyio.fail_after(self._deadline_s):
                self._reading[hook][reading] = _sender(request, self._doors.config().sender_header)
                with reading:
                    body = await _read(request)
                if reading.cancelled_caught:
                    return _no(429, "its body was too slow: a newer request has its place", again_s=1)
                self._reading[hook].pop(reading)
                if body is None:
                    return _no(413, f"larger than {LARGEST} bytes")
                answer = await judge(body)
        except TimeoutError:
            return _no(408, f"not complete within {self._deadline_s:.0f} s", again_s=5)
        except ClientDisconnect:
            return _no(400, "the body ended early")
        except FleetError as error:
            _LOG.warning("a request cannot be recorded now: %s", error)
            return _no(503, "it cannot be recorded now", again_s=5)
        finally:
            self._reading[hook].pop(reading, None)
            if not reading.cancel_called:  # else the newer request has its place
                self._busy[hook] -= 1
        again = {"retry-after": "60"} if answer.status in (429, 503) else {}
        return JSONResponse(dict(answer.body), status_code=answer.status, headers=again)


def _sender(request: Request, header: str) -> str:
    """The sender's address: the last one in the header, by the operator's own proxy, or the connection's."""
    given = request.headers.getlist(header) if header else []
    last = given[-1].rpartition(",")[2].strip() if given else ""
    return last or (request.client.host if request.client else "")


async def _read(request: Request) -> bytes | None:
    """Read the body; None as soon as it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            return None
    return bytes(body)


def _no(status: int, why: str, *, again_s: int = 0) -> Response:
    headers = {"retry-after": str(again_s)} if again_s else {}
    return JSONResponse({"error": why}, status_code=status, headers=_CLOSE | headers)
