"""`/healthz`, `/readyz`, `/metrics` on a unix socket of the state directory, and optionally on loopback.

Beside these, and the pages for people (fleet/web), `POST /hooks/<name>` takes signed deliveries, and
`POST /runs` (on the unix socket alone) a person's request for a run: ingress_http.py, ingress.py.
`GET /runs/<id>/events` there follows a run: follow.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from fleet.service.follow import Followers
from fleet.service.ingress import Ingress
from fleet.service.ingress_http import Intake
from fleet.service.listeners import SOCKET
from fleet.service.snapshot import DaemonSnapshot

STALE_S = 30.0
"""Seconds without a turn after which the work loop counts as hung."""
HEAD_S = 5.0
"""Deadline in seconds for a request head."""
LIFE_S = 30.0
"""Longest life of a connection, in seconds."""
LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]", "fleet"})
"""Permitted Host headers: a web page that reaches us by DNS rebinding has another one."""


class Health(Protocol):
    """What these pages need of the daemon."""

    @property
    def is_ready(self) -> bool:
        """Whether it accepts new work."""

    @property
    def beat_age_s(self) -> float:
        """Seconds since the work loop turned."""

    async def snapshot(self) -> DaemonSnapshot:
        """The current state."""

    async def metrics(self) -> bytes:
        """Prometheus's text format."""


def application(
    health: Health,
    doors: Ingress | None = None,
    followers: Followers | None = None,
    pages: Sequence[Route] = (),
    page: str = "",
) -> Starlette:
    """The three health pages, the queue's entrances if `doors` is given, and `pages` for people, whose
    address is `page`."""

    def answer(good: bool, **facts: Any) -> Response:  # noqa: ANN401  members of a JSON answer
        return JSONResponse({"ok": good, **facts}, status_code=200 if good else 503)

    async def healthz(request: Request) -> Response:
        age = health.beat_age_s
        return _guarded(request) or answer(age < STALE_S, beat_age_s=round(age, 3))

    async def readyz(request: Request) -> Response:
        if refusal := _guarded(request):
            return refusal
        return answer(health.is_ready, **facts(await health.snapshot(), page))

    async def metrics(request: Request) -> Response:
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return _guarded(request) or Response(await health.metrics(), headers={"content-type": kind})

    told = (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics))
    routes = [Route(path, answers, methods=["GET"]) for path, answers in told]
    if doors is not None:
        # separate, so that a crowd of senders does not block other requests
        outside, inside = (Intake(doors, lambda: health.is_ready) for _ in range(2))

        async def hook(request: Request) -> Response:
            return _guarded(request) or await outside.hook(request)

        async def runs(request: Request) -> Response:
            return _guarded(request) or await inside.runs(request)

        routes += [Route("/hooks/{name}", hook, methods=["POST"]), Route("/runs", runs, methods=["POST"])]
    if followers is not None:
        watch = followers

        async def events(request: Request) -> Response:
            return _guarded(request) or await watch.events(request)

        routes.append(Route("/runs/{run}/events", events, methods=["GET"]))
    return Starlette(routes=[*routes, *pages])


def facts(now: DaemonSnapshot, page: str = "") -> dict[str, Any]:
    """What /readyz says of a daemon; `page` is the address of its pages."""
    found: dict[str, Any] = {
        "waiting": sum(now.journal.waiting.values()),
        "rung": now.rung,
        "paused": now.paused,
        "degraded": now.degraded,
        "runs": now.live,
        "personas": len(now.personas),
        "loaded": [asdict(one) for one in now.personas],
        "refused": dict(now.refused),
        "platform": asdict(now.journal.reachable),
        "next": dict(now.upcoming),
        "log": {"entries": now.log_entries, "read": now.log_mirrored},
    }
    optional = {"subscription": now.subscription, "page": page, "draining": now.draining}
    return found | {name: word for name, word in optional.items() if word}


def host_of(request: Request) -> str:
    """The Host header without its port."""
    host = request.headers.get("host", "")
    return re.sub(r":[0-9]{1,5}$", "", host)


def _guarded(request: Request) -> Response | None:
    return None if host_of(request) in LOCAL else PlainTextResponse("unknown host\n", status_code=421)


async def serve(  # noqa: PLR0913  the composition root's call
    health: Health,
    state: Path,
    sockets: list[socket.socket],
    doors: Ingress | None = None,
    *,
    followers: Followers | None = None,
    pages: Sequence[Route] = (),
    page: str = "",
    head_s: float = HEAD_S,
    life_s: float = LIFE_S,
) -> None:
    """Serve until cancelled, then remove the unix socket."""
    try:
        await listen(
            application(health, doors, followers, pages, page), sockets, head_s=head_s, life_s=life_s
        )
    finally:
        with contextlib.suppress(OSError):
            (state / SOCKET).unlink()


async def listen(
    pages: Starlette, sockets: list[socket.socket], *, head_s: float = HEAD_S, life_s: float = LIFE_S
) -> None:
    """Answer on these sockets until cancelled, then close them."""
    import uvicorn  # a tenth of a second, while runs may begin already

    from fleet.service.connections import ConnectionLimits, PageConnection

    class PageServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the daemon handles signals

        async def main_loop(self) -> None:
            """uvicorn's own wakes ten times a second, for a date header and a limit not used here."""
            await anyio.sleep_forever()

    connection = partial(PageConnection, ConnectionLimits(head_s, life_s))
    config = uvicorn.Config(
        pages,
        http=cast("type[asyncio.Protocol]", connection),
        ws="none",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        lifespan="off",
        date_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16_384,
    )
    server = PageServer(config)
    try:
        await server.serve(sockets=sockets)
    finally:
        with anyio.CancelScope(shield=True):
            if server.started:
                server.force_exit = True
                await server.shutdown(sockets=sockets)
        for line in sockets:
            line.close()
