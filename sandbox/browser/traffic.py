"""Every request of a page, answered through the broker by our own client.

The browser asks before each request, from any of its pages, frames and workers (`Fetch.requestPaused`), and
gets an answer that we fetched: so the broker's refusals are known by their mark, https works although the
broker has no tunnels, and no request can change anything. What goes past this (a WebSocket, say) meets the
same broker as the browser's proxy.
"""

from __future__ import annotations

import base64
import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox import http
from sandbox.browser.devtools import DevTools
from sandbox.chain.rpc import denial
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.pages.cookies import SPLIT
from sandbox.spec import Mistake
from sandbox.text import clean

AT_ONCE = 4
REQUEST_S = 10.0
MAX_REQUESTS = 200
MAX_BYTES = 24 << 20
MAX_URL, MAX_BODY = 500, 2_000
KEPT = 100
"""Most requests that are reported, of each kind."""

_OPENED = re.compile(rb"\bwindow\.opener\.\w")
_SAFE = ("GET", "HEAD", "OPTIONS")
_PASSED_ON = ("accept", "accept-language", "content-type", "cookie", "origin", "referer", "range")
_NOT_PASSED_BACK = frozenset(
    (
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "alt-svc",
        http.MARK,
    )
)
_BLOCKED = "BlockedByClient"


@dataclass(frozen=True, slots=True)
class Request:
    """One request and how it ended: `status` of the platform's answer, else `error` in a few words.

    `ours`: it was refused or cut by the broker or by us, which is nothing of the platform's.
    """

    url: str
    kind: str
    method: str
    status: int = 0
    error: str = ""
    ours: bool = False
    body: str = ""
    body_type: str = ""
    """Its Content-Type."""

    @property
    def is_call(self) -> bool:
        """Whether a script made it, or a form that sends something: not what loads a page."""
        return self.kind in ("XHR", "Fetch") or self.method not in _SAFE


@dataclass(slots=True)
class Document:
    """The answer that became the page."""

    url: str = ""
    status: int = 0
    content_type: str = ""
    whole: bool = False
    """Whether its markup is a document, not a fragment that the browser completed."""


def is_whole(body: bytes) -> bool:
    """Whether a page is a document that stands by itself: neither a fragment, nor one whose script reads the
    page that opens it, as that of a log-in at another site does."""
    start = body[:65_536]
    return b"<html" in start.lower() and not _OPENED.search(start)


@dataclass(slots=True)
class Traffic:
    """Answers the requests of one browser. `main` is the frame whose documents are the page's; `cookies`
    gives the Cookie field of a session for a URL, "" for none. `held`: nothing more is sent."""

    deadline: Deadline
    main: str = ""
    cookies: Callable[[str], str] | None = None
    document: Document = field(default_factory=Document)
    refused_document: str = ""
    broken: JailBroken | None = None
    done: deque[Request] = field(default_factory=lambda: deque(maxlen=2 * MAX_REQUESTS))
    tools: DevTools | None = None
    held: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE))
    _asked: int = 0
    _under_way: int = 0
    _bytes: int = 0

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way

    def paused(self, params: Mapping[str, Any]) -> None:
        """Take one `Fetch.requestPaused`."""
        self._asked += 1
        self._under_way += 1
        work: Callable[[Mapping[str, Any]], None] = self._answer
        self._pool.submit(self._guarded, work, params)

    def close(self) -> None:
        """Begin nothing new; requests under way end with their deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _guarded(self, work: Callable[[Mapping[str, Any]], None], params: Mapping[str, Any]) -> None:
        try:
            work(params)
        except JailBroken as broken:
            self.broken = broken
        except (Failure, KeyError, TypeError, ValueError, OSError):  # the browser ended, or speaks nonsense
            pass
        finally:
            with self._lock:
                self._under_way -= 1

    def _answer(self, params: Mapping[str, Any]) -> None:
        request, paused = params["request"], str(params["requestId"])
        kind, method = str(params.get("resourceType", "")), str(request["method"]).upper()
        url = str(request["url"]).partition("#")[0]
        sent = {str(name).lower(): str(value) for name, value in (request.get("headers") or {}).items()}
        seen = Request(
            clean(url, MAX_URL),
            clean(kind, 20),
            clean(method, 10),
            body=clean(str(request.get("postData") or ""), MAX_BODY),
            body_type=clean(sent.get("content-type", ""), 100),
        )
        page = kind == "Document" and params.get("frameId") == self.main
        try:
            reply = self._fetched(method, url, sent)
        except (Failure, Mistake) as failure:
            return self._failed(seen, paused, page, failure)
        with self._lock:
            self.done.append(_with(seen, status=reply.status))
            if page and not 300 <= reply.status < 400:
                self.document = Document(seen.url, reply.status, reply.content_type, is_whole(reply.body))
        headers = [
            {"name": name, "value": one}
            for name, value in reply.headers.items()
            if name not in _NOT_PASSED_BACK
            for one in (SPLIT.split(value) if name == "set-cookie" else (value,))
        ]
        assert self.tools
        self.tools.post(
            "Fetch.fulfillRequest",
            requestId=paused,
            responseCode=reply.status,
            responseHeaders=headers,
            body=base64.b64encode(reply.body).decode(),
        )

    def _fetched(self, method: str, url: str, given: Mapping[str, str]) -> http.HttpReply:
        if self.held:
            raise Failure("refused", "nothing is sent while its buttons are pressed")
        if method not in _SAFE:
            raise Failure("refused", f"{method[:10]} is not a look: a page may only read")
        if self._asked > MAX_REQUESTS or self._bytes > MAX_BYTES:
            raise Failure("refused", f"more than {MAX_REQUESTS} requests or {MAX_BYTES} bytes of one page")
        kept = {name: given[name] for name in _PASSED_ON if given.get(name, "\n").isprintable()}
        if self.cookies and (sent := self.cookies(url)):
            kept["cookie"] = sent
        reply = http.send(http.HttpRequest(method, http.absolute(url), kept), self.deadline.within(REQUEST_S))
        if reply.by_broker:
            raise denial(reply)
        self._bytes += len(reply.body)
        return reply

    def _failed(self, seen: Request, paused: str, page: bool, failure: Failure | Mistake) -> None:
        """What did not come; of that only garbage is certainly the platform's own."""
        kind = failure.error_class if isinstance(failure, Failure) else "refused"
        ended = _with(seen, error=clean(f"{kind}: {failure}", 200), ours=kind != "garbage")
        with self._lock:
            self.done.append(ended)
            there = page and bool(self.document.status)
            if page and not there:
                self.refused_document = ended.error
        assert self.tools
        if there:  # a page that leaves for where it may not go stays
            self.tools.post("Fetch.fulfillRequest", requestId=paused, responseCode=204)
        else:
            self.tools.post("Fetch.failRequest", requestId=paused, errorReason=_BLOCKED)


def _with(seen: Request, *, status: int = 0, error: str = "", ours: bool = False) -> Request:
    return replace(seen, status=status, error=error, ours=ours)
