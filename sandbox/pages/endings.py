"""Whether one request ends the server that it is sent to, as its other callers see it.

Silence after a request may be a lock-out of us: it is the server's end only where a witness, who never sent
the request, has no answer either, where a gateway says that its server is gone, or where the server is seen
to have started anew.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, replace
from http import HTTPStatus

from sandbox import http
from sandbox.errors import GATEWAY, Deadline, Failure
from sandbox.pages.latency import Measured, get
from sandbox.text import decode

BEFORE_S = 10.0
"""Time for a server to be there before it is asked: the call before may have ended it."""
PAUSE_S = 0.1
PAUSE_LOCKED_S = 1.0
"""Between two looks at a server that has locked us out."""
QUIET_S = 3.0
"""Without an answer to a page that answers fast, so long a wait is silence."""
WITNESS = "x-qa-witness"
"""Tells the broker to ask by another way: from an address that has not sent the request."""
_GONE = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
"""Statuses by which a gateway says that its server does not answer; 503 may be a limit on us."""
_SILENT = frozenset({"unreachable", "timeout"})
_UPTIME = re.compile(r"(?i)\buptime[\w-]{0,16}[\"']?\s?[:=]?\s?[\"']?(\d{1,12}(?:\.\d{1,9})?)")
_STARTED = re.compile(
    r"(?i)\b(?:process_start_time_seconds|(?:server|process)?[_-]?(?:start(?:ed|_time)|boot(?:ed|_time|_id)))"
    r"(?:[_-]?(?:at|time))?[\"']?\s?[:=]?\s?[\"']?([\w.:+-]{6,40})"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """No answer to the request, and none to another one right after it, until `silent_ms` later."""

    silent_ms: float


@dataclass(frozen=True, slots=True)
class LockedOut:
    """No answer to us for `silent_ms` after the request; `seen`: a witness had one meanwhile. `what` was seen
    of the request and of the silence: without a witness a person has to tell a ban from a crash by it."""

    silent_ms: float
    seen: bool
    what: str


def watched(
    page: http.HttpRequest, alive: http.HttpRequest, deadline: Deadline, longest_s: float = math.inf
) -> Measured | Ended | LockedOut:
    """Ask for `alive`, for `page` in at most `longest_s`, and, if that has no answer, for `alive` until it is
    back.

    A gateway's status counts as no answer. Failure as usual: of `page` if `alive` answers right after it,
    of `alive` if it is not there before, or not back in time.
    """
    before = _back(alive, deadline.within(BEFORE_S))
    reply = _answer(page, deadline.within(longest_s))
    if isinstance(reply, http.HttpReply):
        return Measured(reply, [reply.latency_ms], [])
    started, quiet = time.monotonic(), QUIET_S + before.latency_ms / 200
    silence = _answer(alive, deadline.within(quiet), quiet=True)
    if isinstance(silence, http.HttpReply):
        raise reply
    witness = None if silence.status in _GONE else _by_witness(alive, deadline.within(quiet))
    if silence.error_class == "unreachable" and (silence.status in _GONE or _is_silent(witness)):
        _back(alive, deadline)
        return Ended(_since(started))
    seen = isinstance(witness, http.HttpReply)
    brief = silence.error_class != "timeout"  # it may have been back before the witness asked
    if seen and brief and isinstance(_answer(alive, deadline.within(quiet), quiet=True), http.HttpReply):
        raise reply
    what = f"the request itself: {reply}; the next one: {silence}"
    try:
        after = _back(alive, deadline, PAUSE_LOCKED_S)
    except Failure:
        return LockedOut(_since(started), seen, f"{what}; it was not back in time")
    return Ended(_since(started)) if restarted(before, after) else LockedOut(_since(started), seen, what)


def restarted(before: http.HttpReply, after: http.HttpReply) -> bool:
    """Whether two answers of one page say that its server started between them."""
    first, second = _said(before), _said(after)
    up = [_UPTIME.search(one) for one in (first, second)]
    if up[0] and up[1] and float(up[1][1]) < float(up[0][1]):
        return True
    began = [_STARTED.search(one) for one in (first, second)]
    return bool(began[0] and began[1] and began[0][1] != began[1][1])


def _said(reply: http.HttpReply) -> str:
    heads = "\n".join(f"{name}: {value}" for name, value in reply.headers.items())
    return f"{heads}\n{decode(reply.body)[:20_000]}"


def _since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)


def _back(alive: http.HttpRequest, deadline: Deadline, pause_s: float = PAUSE_S) -> http.HttpReply:
    """Ask until there is an answer; the last Failure when time is up."""
    while isinstance(reply := _answer(alive, deadline, quiet=pause_s > PAUSE_S), Failure):
        time.sleep(pause_s)
        try:
            deadline.left()
        except Failure:
            raise reply from None
    return reply


def _by_witness(alive: http.HttpRequest, deadline: Deadline) -> http.HttpReply | Failure:
    """What another caller is answered; a Failure `refused` where there is no other way."""
    asked = replace(alive, headers=alive.headers | {WITNESS: "1"})
    try:
        return _answer(asked, deadline, quiet=True)
    except Failure as failure:
        return failure


def _is_silent(witness: http.HttpReply | Failure | None) -> bool:
    return isinstance(witness, Failure) and witness.error_class == "unreachable"


def _answer(
    request: http.HttpRequest, deadline: Deadline, *, quiet: bool = False
) -> http.HttpReply | Failure:
    """The answer, or that there is none, with `quiet` also not in time; any other Failure is raised."""
    try:
        reply = get(request, deadline)
    except Failure as failure:
        if failure.error_class not in (_SILENT if quiet else ("unreachable",)):
            raise
        return failure
    status = reply.status
    return Failure("unreachable", f"HTTP {status}", status=status) if status in GATEWAY else reply
