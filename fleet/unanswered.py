"""How a remote party failed to answer, in words that both sides of a report share."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from typing import Any

REFUSED = "connection refused"
RESET = "connection reset"
TIMED_OUT = "no answer in time"
BAD_GATEWAY = "bad gateway"
NO_NAME = "the name does not resolve"
NO_ROUTE = "no route"
WORDS = (REFUSED, RESET, TIMED_OUT, BAD_GATEWAY, NO_NAME, NO_ROUTE)

_BY_NUMBER = {
    errno.ECONNREFUSED: REFUSED,
    errno.ECONNRESET: RESET,
    errno.ECONNABORTED: RESET,
    errno.EPIPE: RESET,
    errno.ETIMEDOUT: TIMED_OUT,
    errno.EHOSTUNREACH: NO_ROUTE,
    errno.ENETUNREACH: NO_ROUTE,
}


def unanswered(error: BaseException) -> str:
    """One of WORDS, from an exception of the operating system or from what led to it; "" for any other."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if word := _word(one):
            return word
        waiting += [*getattr(one, "exceptions", ()), one.__cause__, one.__context__]
    return ""


def said(result: Mapping[str, Any], word: str) -> bool:
    """Whether a tool's result says that its target could not be reached, in this way (one of WORDS)."""
    return result.get("error_class") == "unreachable" and word in str(result.get("error", ""))


def _word(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):  # it did answer; its errno is not the operating system's
        return ""
    if isinstance(error, socket.gaierror):
        return NO_NAME
    if isinstance(error, OSError) and error.errno in _BY_NUMBER:
        return _BY_NUMBER[error.errno]
    return TIMED_OUT if isinstance(error, TimeoutError) else ""
