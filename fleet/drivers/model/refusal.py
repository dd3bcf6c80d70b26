"""An endpoint's error message, safe to show: cleaned, cut, without the key."""

from __future__ import annotations

from pydantic_ai import exceptions as wrong

from fleet.findings.known_secrets import MIN_SECRET
from fleet.findings.redact import Redactor
from fleet.text import line

MAX_WORDS = 600
"""A validation error names every kind of message that it tried before the intended one."""
MAX_NESTED = 6
PIECE = 6
"""Consecutive letters and digits of the key that count as a piece of it."""


def named(error: Exception, key: str) -> str:
    """The error in one line: the status and the endpoint's words, else the kind of error."""
    what = type(error).__name__.removeprefix("_HTTP")
    if isinstance(error, wrong.ModelHTTPError):
        said = without_key(words(error.body), key)
        what = f"HTTP {error.status_code}" + (f": {said}" if said else f" ({what})")
    if isinstance(error, wrong.ModelAPIError) and error.retry_after:
        what += f", asks for a pause of {error.retry_after:.0f} s"
    return what


def is_invalid(error: wrong.ModelAPIError) -> bool:
    """Whether the endpoint rejected the request itself, with any status: a retry would fail again.

    llama-cpp-python answers 500 to a message that does not fit its schema.
    """
    return "validation error" in words(error.body)


def words(body: object, depth: int = MAX_NESTED) -> str:
    """The message in the body of an error, in the shapes that providers use; empty without one."""
    match body:
        case str() if not body.lstrip().startswith("<"):  # an HTML page of a gateway says nothing
            return body
        case {"error": inner} | {"detail": inner} | {"message": inner} if depth:
            return words(inner, depth - 1)
        case {"loc": list(where), "msg": str(message)}:  # FastAPI's 422
            return f"{'.'.join(map(str, where))}: {message}"
        case list() if depth:
            return "; ".join(filter(None, (words(one, depth - 1) for one in body[:8])))
        case _:
            return ""


def without_key(text: str, key: str) -> str:
    """One cleaned line of bounded length without any spelling or piece of the key."""
    text = line(text, 8 * MAX_WORDS)
    return line(Redactor([key] if len(key) >= MIN_SECRET else [], piece=PIECE).text(text), MAX_WORDS)
