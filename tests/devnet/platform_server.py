"""The platform over real HTTP on loopback, in a thread of the test process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from fleet.chain.keys import Secret, address_of, auth_token
from fleet.clock import Clock
from fleet.devnet.platform.app import create_app
from fleet.devnet.platform.chain import ChainPort, DiamondDouble
from fleet.devnet.platform.site import CREDIT, Settings

CALLER = Secret(bytes.fromhex("11" * 32))
OTHER = Secret(bytes.fromhex("22" * 32))
OWNER = "0x" + "ab" * 20
GENERATE = "/v1beta/models/gemini-flash:generateContent"
STREAM = "/v1beta/models/gemini-flash:streamGenerateContent?alt=sse"


class FixedClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: float = 1_800_000_000.0) -> None:
        self.at = at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return self.at


def memory_chain(credit: int = 10 * CREDIT) -> DiamondDouble:
    """Two standing agents, and credit for the caller."""
    return DiamondDouble(credits={address_of(CALLER): credit}, names={"claude": OWNER, "docs": OWNER})


@contextmanager
def serve(app: ASGIApp) -> Iterator[str]:
    """Base URL of an application that a uvicorn of its own serves; stopped and joined at the end."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended before it served"
            time.sleep(0.002)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class Client:
    """One visitor: plain GETs, and signed calls."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.url, self._clock = url, clock
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=60.0)

    def token(self, key: Secret = CALLER, *, age: int = 0, route: str = "gemini") -> str:
        now = self._clock.now().timestamp() if self._clock else time.time()
        return auth_token("localharness-proxy", key, int(now) - age, route)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers=headers)

    def post(self, body: Any, path: str = GENERATE, *, token: str | None = None) -> httpx.Response:
        """A call; `body` as JSON unless it is bytes, signed by the caller unless a token is given."""
        headers = {"x-goog-api-key": self.token() if token is None else token}
        if isinstance(body, bytes):
            return self.http.post(path, content=body, headers=headers)
        return self.http.post(path, json=body, headers=headers)

    def say(self, message: str, agent: str = "claude", path: str = GENERATE, **more: Any) -> httpx.Response:
        return self.post(saying(message, agent) | more, path)


def saying(message: str, agent: str = "claude") -> dict[str, Any]:
    return {"agent": agent, "contents": [{"role": "user", "parts": [{"text": message}]}]}


@contextmanager
def platform(
    *defects: str,
    chain: ChainPort | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Iterator[Client]:
    """A platform with these defects; a memory chain and the default terms unless others are given."""
    app = create_app(
        memory_chain() if chain is None else chain, frozenset(defects), settings or Settings(), clock=clock
    )
    with serve(app) as url:
        client = Client(url, clock)
        with client.http:
            yield client
