"""The application: every route in one table, and the common parts of each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fleet.clock import Clock, SystemClock
from fleet.devnet.defects import ALL_IDS
from fleet.devnet.platform import api, faces, pages, proxy
from fleet.devnet.platform.chain import ChainPort
from fleet.devnet.platform.site import Settings, Site
from fleet.errors import ChainError, Unreachable

EVERY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE"]

ROUTES = [
    Route("/", pages.index),
    Route("/settings", pages.settings_page),
    Route("/llms.txt", pages.llms),
    Route("/skill.md", pages.skill),
    Route("/client.js", pages.client_js),
    Route("/mark.svg", pages.mark_svg),
    Route("/face/{name}/", faces.face),
    Route("/face/{name}/app.wasm", faces.app_wasm),
    Route("/face/{name}/greeting", faces.greeting),
    Route("/api/status", api.status),
    Route("/api/app", api.app),
    Route("/api/persona", api.persona),
    Route("/api/estimate", api.estimate),
    Route("/api/credit", api.credit),
    Route("/v1beta/{rest:path}", proxy.call, methods=EVERY_METHOD),
]


def create_app(
    chain: ChainPort, defects: frozenset[str], settings: Settings, *, clock: Clock | None = None
) -> Starlette:
    """The platform with these defects switched on; those of the compiler change nothing here.

    Raises ValueError for an id that no defect has.
    """
    if unknown := sorted(defects - ALL_IDS):
        raise ValueError(f"unknown defects: {', '.join(unknown)}; known: {', '.join(sorted(ALL_IDS))}")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await chain.aclose()

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        middleware=[Middleware(Cors)],
        exception_handlers={HTTPException: _http_error, Unreachable: _chain_down, ChainError: _chain_down},
    )
    app.state.site = Site(chain=chain, defects=defects, settings=settings, clock=clock or SystemClock())
    return app


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "method not allowed" if error.status_code == 405 else error.detail
    return JSONResponse({"error": text}, error.status_code, headers=error.headers)


async def _chain_down(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "the chain does not answer; nothing was charged"}, 503)


class Cors:
    """Echoes an allowed origin on every answer, and answers every preflight with 204."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        site: Site = scope["app"].state.site
        origin = request.headers.get("origin", "")
        allowed = origin if origin and site.allows_origin(origin) else ""

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("origin")
                if allowed:
                    headers["access-control-allow-origin"] = allowed
            await send(message)

        if request.method == "OPTIONS":
            headers = {
                "access-control-allow-methods": "GET, POST, OPTIONS",
                "access-control-allow-headers": "content-type, x-goog-api-key",
                "access-control-max-age": "600",
            }
            await Response(status_code=204, headers=headers)(scope, receive, send_with_origin)
            return
        await self._app(scope, receive, send_with_origin)
