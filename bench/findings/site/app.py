"""The application: every route of a blueprint, and the faults that a switch puts in front of a handler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bench.findings.site import api, documents, pages, talk
from bench.findings.site.house import GeneratedSite
from bench.findings.site.pages import house_of
from fleet.errors import ChainError, Unreachable

Handler = Callable[[Request], Awaitable[Response]]
POLICY = "default-src 'self' 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
HANDLERS: dict[str, Handler] = {
    "search": pages.search,
    "prefs": pages.prefs,
    "gallery": pages.gallery,
    "about": pages.about,
    "handbook": documents.handbook,
    "session": pages.session,
    "jump": pages.jump,
    "shelf": pages.shelf,
    "script": documents.script,
    "map": documents.source_map,
    "llms": documents.llms,
    "guide": documents.guide,
    "status": api.status,
    "terms": api.terms,
    "entries": api.entries,
    "convert": api.convert,
    "render": api.render,
    "profile": api.profile,
    "credit": api.credit,
}


def routes(house: GeneratedSite) -> list[Route]:
    """All routes of this platform, each handler behind the switches of its role."""
    plan = house.blueprint
    made = [Route(plan.paths[role], _guarded(role, handler)) for role, handler in HANDLERS.items()]
    if plan.openapi:
        made.append(Route(plan.paths["openapi"], _guarded("openapi", documents.openapi)))
    return [
        *made,
        Route("/", _guarded("index", pages.index)),
        Route(plan.paths["entries"] + "/{id}", _guarded("entry", api.entry)),
        Route(plan.paths["folder"] + "{rest:path}", _guarded("folder", pages.folder)),
        Route(plan.face, _guarded("face", pages.face)),
        Route("/mark.svg", pages.mark),
        Route("/robots.txt", documents.robots),
        Route("/sitemap.xml", documents.sitemap),
        Route("/api/estimate", _guarded("estimate", api.estimate)),
        Route(plan.call_path(), talk.whole, methods=["POST"]),
        Route(plan.call_path(stream=True).partition("?")[0], talk.streamed, methods=["POST"]),
    ]


def _guarded(role: str, handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        house = house_of(request)
        await _late(house, role)
        if missing := house.on("route-missing", role):
            if missing.kind == "404":
                raise HTTPException(404, "not found")
            if missing.kind == "405":
                raise HTTPException(405, headers={"allow": "POST"})
        if _breaks(house, role, request):
            return JSONResponse({"error": "something went wrong on our side"}, 500)
        try:
            answer = await handler(request)
        except HTTPException as error:
            leak = house.on("trace-leak", role)
            if leak is None or error.status_code >= 500:
                raise
            return PlainTextResponse(str(leak.data["text"]), error.status_code)
        if house.on("route-missing", role):
            answer.headers["content-type"] = "text/html; charset=utf-8"
        return answer

    return handle


async def _late(house: GeneratedSite, role: str) -> None:
    slow = house.on("latency", role)
    if slow is None:
        return
    house.hits[role] += 1
    if slow.kind == "constant" or house.hits[role] % int(slow.data["every"]) == 0:
        await asyncio.sleep(float(slow.data["seconds"]))


def _breaks(house: GeneratedSite, role: str, request: Request) -> bool:
    """Whether the switch of server errors is on for this role, and the parameter is at its edge."""
    broken = house.on("server-error", role)
    if broken is None:
        return False
    name = str(broken.data["param"])
    values = [request.path_params["id"]] if name == "id" else request.query_params.getlist(name)
    return any(_at_edge(broken.kind, int(broken.data["over"]), value) for value in values)


def _at_edge(kind: str, over: int, value: str) -> bool:
    whole = value.lstrip("-").isascii() and value.lstrip("-").isdigit()
    return {
        "empty": value == "",
        "long": len(value) > over,
        "negative": whole and value.startswith("-"),
        "huge": whole and abs(int(value[:40] or "0")) >= 2**over if whole else False,
        "nul": "\0" in value,
        "foreign": not value.isascii(),
        "percent": "%" in value,
        "bracket": "[" in value or "{" in value,
    }[kind]


def create(house: GeneratedSite) -> Starlette:
    """The platform as an application."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await house.chain.aclose()

    app = Starlette(
        routes=routes(house),
        lifespan=lifespan,
        middleware=[Middleware(Frame)],
        exception_handlers={HTTPException: _refused, Unreachable: _chain_down, ChainError: _chain_down},
    )
    app.state.house = house
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "there is no such page", 405: "this method is not allowed here"}
    text = (
        words.get(error.status_code, "")
        if error.detail in ("Not Found", "Method Not Allowed", "not found")
        else ""
    )
    leak = house_of(request).on("trace-leak", "unknown-page")
    if leak and error.status_code == 404 and error.detail == "Not Found":
        return PlainTextResponse(str(leak.data["text"]), 404)
    return JSONResponse({"error": text or error.detail}, error.status_code, headers=error.headers)


async def _chain_down(request: Request, error: Exception) -> Response:  # noqa: ARG001  the framework's own signature
    return JSONResponse({"error": "the chain does not answer"}, 503)


class Frame:
    """Headers of every answer, and the rule of origins: our own alone, but for the switch."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        house: GeneratedSite = scope["app"].state.house
        allowed = _allowed(house, Request(scope))

        async def framed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers["x-frame-options"] = "DENY"
                headers["content-security-policy"] = POLICY
                headers.add_vary_header("origin")
                if allowed:
                    headers["access-control-allow-origin"] = allowed
            await send(message)

        await self._app(scope, receive, framed)


def _allowed(house: GeneratedSite, request: Request) -> str:
    origin = request.headers.get("origin", "")
    if not origin or origin == house.url:
        return origin
    loose = house.on("origin-rule")
    if not loose or request.url.path.rstrip("/") != house.blueprint.paths[loose.place].rstrip("/"):
        return ""
    host, own = urlsplit(origin).netloc, urlsplit(house.url).hostname or ""
    let = {
        "prefix": origin.startswith(house.url) or origin.startswith(f"http://{own}"),
        "suffix": host.endswith(own),
        "substring": own in origin,
        "null": origin == "null",
        "any": True,
    }
    return origin if let[loose.kind] else ""
