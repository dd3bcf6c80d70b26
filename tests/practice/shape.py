"""A practice application as the platform of a play: an ASGI application that is asked in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.accounts.base import Shape
from tests.sandbox.doubles import Got, http_answer


class Practice(Shape):
    """Answers what a guest asks."""

    profile: Mapping[str, Any] = {}

    def __init__(self, app: Starlette, *, at_once: bool = False) -> None:
        super().__init__(leaks=False)
        self.at_once = at_once
        self._client = TestClient(app, follow_redirects=False, raise_server_exceptions=False)

    def __call__(self, got: Got) -> bytes:
        headers = {name: value for name, value in got.headers.items() if name != "host"}
        reply = self._client.request(got.method, got.path, headers=headers, content=got.body)
        kept = [f"{name}: {value}" for name, value in reply.headers.items() if name != "content-length"]
        return http_answer(reply.status_code, reply.content, *kept)
