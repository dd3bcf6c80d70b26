"""The pages in a real browser: a server in a thread, and a browser whose every request ends there."""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sandbox.browser.devtools import DevTools
from tests.triage.test_hostile_browser import Visited, started


@contextmanager
def serving(app: ASGIApp, others: Mapping[str, str]) -> Iterator[str]:
    """The address of this application; as a browser's proxy it answers for itself, for any name that leads
    to it, and with the pages of `others` by their URLs."""

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in others:
            await HTMLResponse(others[scope["path"]].replace("OURS", url))(scope, receive, send)
            return
        if scope["type"] == "http":
            path = re.sub(r"^http://[^/]+", "", scope["path"])
            scope = {**scope, "path": path or "/", "raw_path": path.encode()}
        await app(scope, receive, send)

    line = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{line.getsockname()[1]}"
    config = uvicorn.Config(own, log_config=None, lifespan="off", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [line]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield url
    finally:
        server.should_exit = True
        thread.join()
        line.close()


class Tab:
    """One page of a browser."""

    def __init__(self, tools: DevTools, visited: Visited, url: str) -> None:
        self._tools, self.visited, self.url = tools, visited, url
        target = str(tools.ask("Target.createTarget", url="about:blank", within=10)["targetId"])
        attached = tools.ask("Target.attachToTarget", targetId=target, flatten=True, within=10)
        self._session = str(attached["sessionId"])
        for method in ("Page.enable", "Runtime.enable", "Log.enable"):
            self.ask(method)

    def ask(self, method: str, **params: Any) -> Mapping[str, Any]:
        return self._tools.ask(method, self._session, within=15, **params)

    def shape(self, width: int, *, dark: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)

    def open(self, path: str) -> None:
        self.visit(self.url + path)

    def visit(self, url: str) -> None:
        self.visited.loaded = False
        self._tools.post("Page.navigate", self._session, url=url)
        self.settle()

    def settle(self, seconds: float = 15) -> None:
        """Wait for the page that is on its way."""
        self._tools.listen(seconds, lambda: self.visited.loaded)
        assert self.visited.loaded, "no page within the time"

    def fill(self, field: str, value: str) -> None:
        self.run(f"document.querySelector({json.dumps(field)}).value = {json.dumps(value)}")

    def leave(self, button: str) -> None:
        """Click what leads to another page, and wait for that."""
        self.visited.loaded = False
        self.run(f"document.querySelector({json.dumps(button)}).click()")
        self.settle()

    def run(self, script: str) -> Any:
        """The value of an expression, or of its promise."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 5) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, script
            self._tools.listen(0.05)

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" and key != "Tab" else {}
            code = {"Enter": 13, "Tab": 9}.get(key, 0)
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def type(self, text: str) -> None:
        for char in text:
            self.press(char)

    def reach(self, what: str) -> None:
        """Tab until the focus is on what this selector names."""
        for _ in range(300):
            self.press("Tab")
            if self.run(f"document.activeElement.matches({json.dumps(what)})"):
                return
        raise AssertionError(f"the keyboard does not reach {what}")

    def enter(self) -> None:
        """Enter, which leads to another page, and wait for that."""
        self.visited.loaded = False
        self.press("Enter")
        self.settle()

    def picture(self, path: Path, most: int = 6_000) -> None:
        """The page from its top, as PNG or WebP; `most` pixels high."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], most), "scale": 1}
        form: dict[str, Any] = (
            {"format": "webp", "quality": 75} if path.suffix == ".webp" else {"format": "png"}
        )
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip, **form)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browsing(url: str) -> Iterator[Tab]:
    """A browser at these pages; QA_BROKER must be their address."""
    visited = Visited()
    with closing(started(visited)) as tools:
        yield Tab(tools, visited, url)
