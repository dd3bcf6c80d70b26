"""A small API on a real HTTP server, with an OpenAPI description and a switch for each of its defects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

DEFECTS = frozenset({"long-text", "wrong-type", "missing-required"})

_TREE = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
}
_JSON = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}}
_BAD = {"description": "no"}
DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "orchard", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/trees/{id}": {
            "get": {
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "a tree", **_JSON}, "400": _BAD},
            }
        },
        "/search": {
            "get": {
                "parameters": [{"name": "q", "in": "query", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "a tree", **_JSON}, "400": _BAD},
            }
        },
        "/trees": {
            "post": {
                "requestBody": {"required": True, **_JSON},
                "responses": {"201": {"description": "made", **_JSON}, "400": _BAD},
            }
        },
    },
    "components": {"schemas": {"Tree": _TREE}},
}


def answer(method: str, target: str, body: bytes, defects: frozenset[str]) -> tuple[int, Any]:
    """Status and JSON of one request."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.path == "/openapi.json":
        return 200, DESCRIPTION
    if method == "POST" and parts.path == "/v1/trees":
        return _made(body, defects)
    if method == "GET" and parts.path == "/v1/search":
        if "q" not in query and "missing-required" not in defects:
            return 400, {"error": "q is required"}
        if len(query.get("q", [""])[0]) > 100 and "long-text" in defects:
            return 500, {"error": "it broke"}
        return 200, {"id": 1, "name": "found"}
    if method == "GET" and parts.path.startswith("/v1/trees/"):
        ident = parts.path.rpartition("/")[2]
        if not ident.isascii() or not ident.isdigit():
            return 400, {"error": "not a number"}
        return 200, {"id": ident if "wrong-type" in defects else int(ident), "name": "pear"}
    return 404, {"error": "not here"}


def _made(body: bytes, defects: frozenset[str]) -> tuple[int, Any]:
    try:
        tree = json.loads(body)
    except ValueError:
        return 400, {"error": "not JSON"}
    typed = isinstance(tree, dict) and type(tree.get("id")) is int and isinstance(tree.get("name"), str)
    if not typed and not (isinstance(tree, dict) and "missing-required" in defects):
        return 400, {"error": "not a tree"}
    if len(str(tree.get("name", ""))) > 1_000 and "long-text" in defects:
        return 500, {"error": "it broke"}
    return 201, {"id": 1, "name": "new"}


@contextmanager
def orchard(defects: frozenset[str]) -> Iterator[str]:
    """The API on a port of this machine; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", "0"))
            status, said = answer(self.command, self.path, self.rfile.read(size), defects)
            raw = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:  # the base class names it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
