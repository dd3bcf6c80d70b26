"""The reference platform with some of its parts gone: `python -m tests.platforms.server PARTS [OPTION]...`.

The options are those of `fleet.devnet.platform`. What is gone answers 404 and is in no document.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Awaitable, Callable

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from fleet.chain.keys import load_key
from fleet.chain.node.rpc import Rpc
from fleet.devnet.platform import pages
from fleet.devnet.platform.__main__ import PlatformServer, arguments
from fleet.devnet.platform.app import create_app
from fleet.devnet.platform.rpc_chain import RpcChain
from fleet.devnet.platform.site import Settings

PATHS = {
    "site": ("/", "/settings", "/llms.txt", "/skill.md", "/mark.svg", "/api/persona", "/api/app"),
    "faces": ("/face/{name}/", "/face/{name}/app.wasm", "/face/{name}/greeting"),
    "proxy": ("/v1beta/{rest:path}", "/api/status", "/api/estimate", "/api/credit"),
    "credits": ("/api/credit",),
}
"""The routes of each part; `/client.js` belongs to every page."""

CLAUSES = {
    "faces": (", a public face for each name", ""),
    "proxy": (", and a proxy to talk to them", ""),
    "targets": ('{"agent": "docs"', '{"agent": "<name>"'),
    "credits": (" · 402 no credit", ""),
}
"""What the guide says of a part beside its routes."""

Endpoint = Callable[[Request], Awaitable[Response]]


class FreeChain(RpcChain):
    """Of a platform whose diamond has no credits: a message costs nothing."""

    async def credit_of(self, address: str) -> int:
        return 0

    async def meter(self, address: str, wei: int) -> None:
        """Nothing is debited."""


def guide(text: str, gone: frozenset[str]) -> str:
    """The guide without what is gone, and as true as before."""
    if "proxy" in gone:
        text = re.sub(r"## Talk to an agent\n.*?(?=## )", "", text, flags=re.DOTALL)
    if "credits" in gone:
        text = re.sub(r"A message costs 0 credits,.*\n", "A message is free.\n", text)
    for part, (old, new) in CLAUSES.items():
        if part in gone:
            text = text.replace(old, new)
    starts = [path.split("{")[0] for part in gone for path in PATHS.get(part, ()) if path != "/"]
    lines = text.splitlines(keepends=True)
    return "".join(one for one in lines if not any(f"GET {start}" in _bare(one) for start in starts))


def _bare(line: str) -> str:
    return re.sub(r"https?://[^/\s]+", "", line)


def reduced(app: Starlette, gone: frozenset[str]) -> Starlette:
    """The application without the routes of the parts that are gone."""
    paths = {path for part in gone for path in PATHS.get(part, ())}
    routes: list[BaseRoute] = [
        route for route in app.routes if not (isinstance(route, Route) and route.path in paths)
    ]
    told: dict[str, Endpoint] = {"/llms.txt": pages.llms, "/skill.md": pages.skill}
    app.router.routes = [
        Route(route.path, _guided(told[route.path], gone))
        if isinstance(route, Route) and route.path in told
        else route
        for route in routes
    ]
    return app


def _guided(endpoint: Endpoint, gone: frozenset[str]) -> Endpoint:
    async def answer(request: Request) -> Response:
        whole = await endpoint(request)
        return Response(guide(bytes(whole.body).decode(), gone), media_type=whole.media_type)

    return answer


def main(words: str, argv: list[str]) -> None:
    """Serves until it is ended."""
    gone, options = frozenset(filter(None, words.split(","))), arguments(argv)
    listener = socket.create_server((options.host, options.port))
    rpc, key = Rpc(options.rpc), load_key(options.meter_key_file)
    free = "credits" in gone
    settings = Settings(public_url=options.public_url)
    if free:
        settings = Settings(public_url=options.public_url, price_wei=0)
    chain = (FreeChain if free else RpcChain)(rpc, options.diamond, key)
    app = reduced(create_app(chain, frozenset(filter(None, options.defects.split(","))), settings), gone)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    PlatformServer(config, {"ready": True}).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
