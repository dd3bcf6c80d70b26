"""One page in a fresh browser context: opened, settled, looked at. Everything it says is bounded."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.browser.devtools import DevTools, NoReply, ProtocolError
from sandbox.browser.scripts import AXE, FACTS, FOCUS, PRESS, WCAG
from sandbox.browser.traffic import Traffic
from sandbox.errors import Deadline, DeadlinePassed, Failure
from sandbox.text import clean

LOAD_S = 12.0
SETTLE_S = 0.3
QUIET_S = 3.0
"""Longest wait for the requests that a loaded page still makes."""
AXE_S = 8.0
HEIGHT = 800
MAX_PICTURE = 192 << 10
MAX_SAID = 30
"""Console lines and exceptions that are kept, of each."""
TABS = 40
PRESSES, PRESS_MS = 24, 80
AXE_FILE = Path("/opt/axe-core/axe.min.js")

_HTML = ("text/html", "application/xhtml+xml")
_LEVELS = {"error": "error", "assert": "error", "warning": "warning"}


@dataclass(slots=True)
class Visit:
    """What one page did. `unjudged` are parts without a meaning: the page or this machine was too slow.

    With `origin`, the canary counts only where it runs with that origin: not in a sandboxed frame, and not in
    one of another host.
    """

    canary: str = ""
    origin: str = ""
    console: list[dict[str, Any]] = field(default_factory=list)
    exceptions: list[dict[str, Any]] = field(default_factory=list)
    ran_by: str = ""
    loaded: bool = False
    crashed: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    final_url: str = ""
    violations: list[dict[str, Any]] = field(default_factory=list)
    reached: int = 0
    trap: str = ""
    picture: bytes = b""
    unjudged: list[str] = field(default_factory=list)
    session: str = ""
    presses: bool = False
    _origins: dict[Any, Any] = field(default_factory=dict)
    _tools: DevTools | None = None

    def happens(self, method: str, params: Mapping[str, Any]) -> None:  # noqa: C901  one case for each event
        """One event of the page."""
        match method:
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.executionContextCreated":
                made = params.get("context")
                if isinstance(made, dict):
                    self._origins[made.get("id")] = made.get("origin")
            case "Runtime.bindingCalled" if self.canary and params.get("name") == self.canary:
                if not self.origin or self._origins.get(params.get("executionContextId")) == self.origin:
                    self.ran_by = self.ran_by or "binding"
            case "Page.javascriptDialogOpening":
                if self.canary and params.get("message") == self.canary:
                    self.ran_by = self.ran_by or "dialog"
                if self._tools:
                    self._tools.post("Page.handleJavaScriptDialog", self.session, accept=False)
            case "Runtime.consoleAPICalled" if params.get("type") in _LEVELS:
                self._said(self.console, _LEVELS[params["type"]], _words(params.get("args")), _frame(params))
            case "Log.entryAdded":
                entry = params.get("entry")
                if isinstance(entry, dict) and entry.get("source") in ("security", "javascript"):
                    self._said(self.console, "log", str(entry.get("text", "")), entry)
            case "Runtime.exceptionThrown":
                details = params.get("exceptionDetails")
                if isinstance(details, dict):
                    self._said(self.exceptions, "exception", _thrown(details), details)
            case "Inspector.targetCrashed":
                self.crashed = True

    def _said(self, kept: list[dict[str, Any]], kind: str, text: str, at: Mapping[str, Any]) -> None:
        if len(kept) < MAX_SAID:
            line = at.get("lineNumber")
            url = clean(str(at.get("url") or ""), 300)
            kept.append({"kind": kind, "text": clean(text, 300), "url": url, "line": _whole(line)})

    def open(self, tools: DevTools, traffic: Traffic, url: str, width: int, deadline: Deadline) -> None:
        """Open the page and wait until it is loaded and quiet, or for as long as is given."""
        self._tools = tools
        tools.ask("Fetch.enable", patterns=[{"urlPattern": "*"}], within=10)
        context = tools.ask("Target.createBrowserContext", within=10)["browserContextId"]
        tools.ask("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
        given = {"width": width, "height": HEIGHT, "browserContextId": context}
        traffic.main = str(
            tools.ask("Target.createTarget", url="about:blank", within=10, **given)["targetId"]
        )
        attached = tools.ask("Target.attachToTarget", targetId=traffic.main, flatten=True, within=10)
        self.session = str(attached["sessionId"])
        for method in ("Page.enable", "Runtime.enable", "Log.enable", "Inspector.enable"):
            tools.ask(method, self.session, within=10)
        tools.ask("Network.enable", self.session, maxTotalBufferSize=1 << 20, maxResourceBufferSize=1 << 18)
        tools.ask("Network.setCacheDisabled", self.session, cacheDisabled=True)
        tools.ask("Emulation.setFocusEmulationEnabled", self.session, enabled=True)
        if self.canary:
            tools.ask("Runtime.addBinding", self.session, name=self.canary)
        self.loaded = False  # that of about:blank does not count
        tools.post("Page.navigate", self.session, url=url)
        tools.listen(min(LOAD_S, deadline.left() * 0.4), lambda: self.loaded or self._lost(traffic))
        if self._lost(traffic):
            return
        if not self.loaded:
            self.unjudged.append("load")
        tools.listen(SETTLE_S)
        tools.listen(QUIET_S, lambda: traffic.quiet or self._lost(traffic))

    def _lost(self, traffic: Traffic) -> bool:
        return bool(self.crashed or traffic.broken or traffic.refused_document)

    def look(self, tools: DevTools, deadline: Deadline, *, html: bool) -> None:
        """Read the settled page; each part that it does not let us read is unjudged.

        The last part runs scripts of the page again, by keys and clicks, so it is last. What a page with a
        canary breaks is not judged, and costs most of a visit's time.
        """
        parts: dict[str, Callable[[], object]] = {
            "facts": lambda: self._facts(tools),
            "screenshot": lambda: self._picture(tools),
            "violations": lambda: self._axe(tools, min(AXE_S, deadline.left() * 0.5)) if html else None,
            "keyboard": lambda: self._keys(tools, deadline),
        }
        if self.canary:
            del parts["violations"]
            self.unjudged.append("violations")
        stuck = False
        for name, work in parts.items():
            try:
                if stuck:  # by an endless script: it would answer nothing else either
                    raise NoReply(name)
                work()
            except (NoReply, ProtocolError, KeyError, TypeError, ValueError, RecursionError) as error:
                self.unjudged.append(name)
                stuck = isinstance(error, NoReply)

    def _world(self, tools: DevTools) -> int:
        frame = tools.ask("Page.getFrameTree", self.session)["frameTree"]["frame"]
        self.final_url = clean(str(frame["url"]) + str(frame.get("urlFragment", "")), 500)
        made = tools.ask("Page.createIsolatedWorld", self.session, frameId=frame["id"], worldName="qa")
        return int(made["executionContextId"])

    def _run(self, tools: DevTools, world: int, script: str, within: float = 3.0) -> Any:  # noqa: ANN401  any JSON
        """The JSON that a script of ours returns."""
        reply = tools.ask(
            "Runtime.evaluate",
            self.session,
            within=within,
            expression=script,
            contextId=world,
            returnByValue=True,
            awaitPromise=True,
        )
        return json.loads(reply["result"]["value"])

    def _facts(self, tools: DevTools) -> None:
        found = self._run(tools, self._world(tools), FACTS % {"canary": json.dumps(self.canary)})
        self.facts = found if isinstance(found, dict) else {}

    def _picture(self, tools: DevTools) -> None:
        for scale in (1.0, 0.5):
            clip = {"x": 0, "y": 0, "width": 1280, "height": HEIGHT, "scale": scale}
            reply = tools.ask("Page.captureScreenshot", self.session, format="png", clip=clip)
            picture = base64.b64decode(reply["data"])
            if picture[:4] == b"\x89PNG" and len(picture) <= MAX_PICTURE:
                self.picture = picture
                return
        raise ValueError("too large")

    def _axe(self, tools: DevTools, within: float) -> None:
        try:
            source = AXE_FILE.read_text("utf-8")
        except OSError:
            raise ValueError("no axe-core here") from None
        world, end = self._world(tools), time.monotonic() + within
        tools.ask("Runtime.evaluate", self.session, expression=source, contextId=world, within=within)
        script = AXE % {"tags": json.dumps(WCAG)}
        found = self._run(tools, world, script, max(end - time.monotonic(), 0.5))
        self.violations = [
            {
                "id": clean(str(one["id"]), 60),
                "impact": clean(str(one["impact"]), 20),
                "nodes": _whole(one["nodes"]),
                "target": clean(str(one["target"]), 200),
            }
            for one in found[:40]
        ]

    def _keys(self, tools: DevTools, deadline: Deadline) -> None:
        """Walk through the page by Tab; a link that would run the canary is followed, as a visitor would."""
        world = self._world(tools)
        self._run(tools, world, FACTS % {"canary": "null"})
        script, last, end = FOCUS % {"canary": json.dumps(self.canary)}, -2, time.monotonic() + 4.0
        for _ in range(min(TABS, int(self.facts.get("focusable", 0)) + 1)):
            if time.monotonic() > end or deadline.left() < 3:
                self.unjudged.append("keyboard")
                return
            self._press(tools, "Tab", 9)
            now = self._run(tools, world, script)
            self.reached = _whole(now["reached"])
            if now["press"]:
                self._press(tools, "Enter", 13)
                tools.listen(SETTLE_S)
            if now["at"] == last and last >= 0 and self.reached < int(self.facts.get("focusable", 0)):
                self.trap = clean(str(now["name"]), 100)
                return
            last = now["at"]

    def _press(self, tools: DevTools, key: str, code: int) -> None:
        given: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        down = given | ({"text": "\r"} if key == "Enter" else {})
        tools.ask("Input.dispatchKeyEvent", self.session, type="keyDown", **down)
        tools.ask("Input.dispatchKeyEvent", self.session, type="keyUp", **given)

    def leave(self, traffic: Traffic) -> None:
        """Raise what made the visit worthless."""
        if traffic.broken:
            raise traffic.broken
        if self.crashed:
            raise Failure("internal", "the page ended its part of the browser")

    def press(self, tools: DevTools, traffic: Traffic, deadline: Deadline) -> None:
        """What its scripts ask when something is pressed is seen, and none of it is sent."""
        said = (
            list(self.console),
            list(self.exceptions),
        )  # what breaks for want of an answer is not the page's
        script, within = PRESS % {"most": PRESSES, "pause": PRESS_MS}, min(8.0, deadline.left() * 0.5)
        self.unjudged += ["violations", "keyboard", "screenshot"]
        try:
            self._facts(tools)
            traffic.held = True
            self._run(tools, self._world(tools), script, within)
            tools.listen(SETTLE_S)
        except (
            NoReply,
            ProtocolError,
            KeyError,
            TypeError,
            ValueError,
        ):  # it left, or one of them is endless
            self.unjudged.append("press")
        self.console, self.exceptions = said


def visited(url: str, visit: Visit, traffic: Traffic, width: int, deadline: Deadline) -> float:
    """Open and read one page in a browser of its own; when the browser was ready. Failure: it was not."""

    def happens(method: str, params: Mapping[str, Any]) -> None:
        if method == "Fetch.requestPaused":
            traffic.paused(params)
        else:
            visit.happens(method, params)

    tools = DevTools(happens)
    traffic.tools = tools
    try:
        tools.ready()
        began = time.monotonic()
        visit.open(tools, traffic, url, width, deadline)
        visit.leave(traffic)
        if not traffic.refused_document:
            kind = traffic.document.content_type
            if visit.presses:  # for what it asks only: its accessibility is looked at without that
                visit.press(tools, traffic, deadline)
            else:
                visit.look(tools, deadline, html=kind.partition(";")[0].strip().lower() in _HTML)
            visit.leave(traffic)
    except (DeadlinePassed, NoReply, ProtocolError, KeyError, TypeError) as error:
        raise Failure("busy", f"could not tell: the browser did not do its part ({error})") from None
    finally:
        traffic.close()
        tools.close()
    return began


def _words(given: object) -> str:
    """The arguments of one console call, as text."""
    words = []
    for one in given[:8] if isinstance(given, list) else ():
        if isinstance(one, dict):
            value = one.get("value", one.get("description", ""))
            words.append(value if isinstance(value, str) else json.dumps(value, default=str)[:300])
    return " ".join(words)


def _thrown(details: Mapping[str, Any]) -> str:
    """The first line of an exception; its stack differs between two looks."""
    thrown = details.get("exception")
    said = thrown.get("description", thrown.get("value", "")) if isinstance(thrown, dict) else ""
    return (str(said) or str(details.get("text", ""))).partition("\n")[0]


def _frame(params: Mapping[str, Any]) -> Mapping[str, Any]:
    trace = params.get("stackTrace")
    frames = trace.get("callFrames") if isinstance(trace, dict) else None
    return frames[0] if isinstance(frames, list) and frames and isinstance(frames[0], dict) else {}


def _whole(number: object) -> int:
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 31 else 0
