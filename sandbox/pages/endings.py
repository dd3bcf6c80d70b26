"""Whether one request ends the server that it is sent to, as its other callers see it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sandbox import http
from sandbox.errors import GATEWAY, Deadline, Failure
from sandbox.pages.latency import Measured, get

BEFORE_S = 10.0
"""Time for a server to be there before it is asked: the call before may have ended it."""
PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Ended:
    """No answer to the request, and none to another one right after it, until `silent_ms` later."""

    silent_ms: float


def watched(page: http.HttpRequest, alive: http.HttpRequest, deadline: Deadline) -> Measured | Ended:
    """Ask for `alive`, for `page`, and, if that has no answer, for `alive` until it is back.

    A gateway's status counts as no answer. Failure as usual: of `page` if `alive` answers right after it,
    of `alive` if it is not there before, or not back in time.
    """
    _back(alive, deadline.within(BEFORE_S))
    reply = _answer(page, deadline)
    if isinstance(reply, http.HttpReply):
        return Measured(reply, [reply.latency_ms], [])
    started = time.monotonic()
    if isinstance(_answer(alive, deadline), http.HttpReply):
        raise reply
    _back(alive, deadline)
    return Ended(round((time.monotonic() - started) * 1000, 3))


def _back(alive: http.HttpRequest, deadline: Deadline) -> None:
    """Ask until there is an answer; the last Failure when time is up."""
    while isinstance(reply := _answer(alive, deadline), Failure):
        time.sleep(PAUSE_S)
        try:
            deadline.left()
        except Failure:
            raise reply from None


def _answer(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply | Failure:
    """The answer, or that there is none; any other Failure is raised."""
    try:
        reply = get(request, deadline)
    except Failure as failure:
        if failure.error_class != "unreachable":
            raise
        return failure
    return Failure("unreachable", f"HTTP {reply.status}") if reply.status in GATEWAY else reply
