"""Who may change something: a token of the state directory, a session made with it, and whence a form came.

The token is entered once. The browser keeps a session that the token signs, not the token itself: a new
token ends every session. A form carries a second signature of its session (CSRF), and its Origin must be the
page's own.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from pathlib import Path
from urllib.parse import urlsplit

from starlette.requests import Request

from fleet.errors import ConfigError, Refused
from fleet.files import UnfitFile, read_owned, write_atomic

TOKEN = "page.token"
COOKIE = "fleet_page"
LIFE_S = 12 * 3_600
"""Seconds that a session lasts."""
_BYTES = 256
"""Most bytes of the token's file."""


def token(state: Path) -> str:
    """The token of this state directory, made (mode 0600) when there is none. ConfigError, if others can
    read or write it."""
    path = state / TOKEN
    try:
        text = read_owned(path, _BYTES, mode=0o077, mark="refuse").decode("ascii", "replace").strip()
    except FileNotFoundError:
        text = secrets.token_urlsafe(24)
        write_atomic(path, f"{text}\n".encode(), mode=0o600)
    except (UnfitFile, OSError) as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy="remove it: a new one is made") from None
    if len(text) < 20:
        raise ConfigError(f"{path}: shorter than 20 characters", remedy="remove it: a new one is made")
    return text


def opened(state: Path, given: str) -> str:
    """The value of the cookie for someone who knows the token; Refused for anyone else."""
    if not hmac.compare_digest(given.strip().encode(), token(state).encode()):
        raise Refused("this is not the token", rule="token", remedy=f"cat {state / TOKEN}")
    session = f"{int(time.time()) + LIFE_S}.{secrets.token_urlsafe(12)}"
    return f"{session}.{_signed(state, 'session', session)}"


def session_of(state: Path, request: Request) -> str:
    """The session of a request; "" without one that holds."""
    session, _, signature = request.cookies.get(COOKIE, "").rpartition(".")
    end = session.partition(".")[0]
    if not (end.isascii() and end.isdigit() and len(end) < 12 and int(end) > time.time()):
        return ""
    return session if hmac.compare_digest(signature, _signed(state, "session", session)) else ""


def csrf(state: Path, session: str) -> str:
    """What each form of a session carries; "" without a session."""
    return _signed(state, "form", session) if session else ""


def check_form(state: Path, request: Request, given: str) -> None:
    """Refused unless the form is of this page, in a session that holds."""
    check_origin(request)
    session = session_of(state, request)
    if not session:
        raise Refused("you have not entered the token", rule="session", remedy="open /unlock")
    if not hmac.compare_digest(given.encode(), csrf(state, session).encode()):
        raise Refused("this form is not of this session", rule="csrf", remedy="load the page again")


def check_origin(request: Request) -> None:
    """Refused unless a page of ours sent it; a browser says which did."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    from_us = urlsplit(origin).netloc == host if origin else False
    if not from_us or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Refused("this was sent by another page", rule="origin", remedy="use the form of this page")


def _signed(state: Path, what: str, session: str) -> str:
    return hmac.new(token(state).encode(), f"{what}:{session}".encode(), hashlib.sha256).hexdigest()
