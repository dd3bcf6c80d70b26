"""Bearer tokens in a jail: found in the answer to a log-in, sent, and forged. None leaves the jail."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox import strict_json
from sandbox.http import HttpReply

FORGED = ("garbage", "cut", "altered", "unsigned", "no-algorithm", "guessed")
"""`cut` is half of it, `altered` has another end of its signature, `unsigned` has none, `no-algorithm` says
that it needs none, `guessed` is signed with a secret that everybody knows."""
GUESSES = (
    *("secret", "changeme", "password", "jwt_secret", "jwtsecret", "your-256-bit-secret", "secretkey", "key"),
    *("secret-key", "supersecret", "your-secret-key", "mysecret", "test", "dev", "development", "admin", ""),
)
"""Secrets of tutorials; whether one of them made a token is found without asking anybody."""
BRIEF_S = 86_400
"""Seconds for which a token that is checked by its signature alone may outlast its session: providers of such
tokens give them minutes to a day."""
_TOKEN = re.compile(
    r"(?i)^(?:access|auth|bearer|id|session|api)?[_-]?(?:token|jwt)$|^sessionid$|^session_id$"
)
_SENDABLE = re.compile(r"[!-~]{8,4000}", re.ASCII)
_COOKIE = re.compile(r"^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64})=([!#-+\--:<-\[\]-~]{8,3000})", re.ASCII)
_HASHES = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


def held(reply: HttpReply) -> dict[str, str]:
    """The headers that a session sends with each request, by what began it; {} where it began none."""
    token = next((value for name, value in _texts(document(reply)) if _TOKEN.match(name)), "")
    if _SENDABLE.fullmatch(token):
        return {"authorization": f"Bearer {token}"}
    cookie = _COOKIE.match(reply.headers.get("set-cookie", ""))
    return {"cookie": f"{cookie[1]}={cookie[2]}"} if cookie else {}


def document(reply: HttpReply) -> Any:  # noqa: ANN401  any JSON
    """The JSON of an answer; None for any other."""
    try:
        return strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


def forged(headers: Mapping[str, str], how: str) -> dict[str, str] | None:
    """The headers of a session with its token forged in one way; None where it has no such form."""
    name, before, token = _parts(headers)
    plain = {"garbage": "not-a-token-of-anybody", "cut": token[: len(token) // 2]}
    text = plain[how] if how in plain else _signed(token, how)
    return {name: before + text} if text else None


def brief(headers: Mapping[str, str]) -> bool:
    """Whether a session's token states its own end, at most `BRIEF_S` away."""
    parts = _parts(headers)[2].split(".")
    claims = _read(parts[1]) if len(parts) == 3 else None
    ends = claims.get("exp") if isinstance(claims, dict) else None
    return isinstance(ends, int | float) and ends - time.time() <= BRIEF_S


def _parts(headers: Mapping[str, str]) -> tuple[str, str, str]:
    """The name of a session's one header, what stands before its token, and the token."""
    ((name, sent),) = headers.items()
    lead, mark, token = sent.partition(" " if name == "authorization" else "=")
    return name, lead + mark, token


def _signed(token: str, how: str) -> str:
    parts = token.split(".")
    head, claims = (_read(part) for part in (parts * 2)[:2])
    if len(parts) != 3 or not isinstance(head, dict) or not isinstance(claims, dict):
        return ""
    if how == "altered":
        return f"{parts[0]}.{parts[1]}.{'A' * 8 if parts[2][:8] != 'A' * 8 else 'B' * 8}{parts[2][8:]}"
    if how == "unsigned":
        return f"{parts[0]}.{parts[1]}."
    if how == "no-algorithm":
        return f"{_written(head | {'alg': 'none'})}.{parts[1]}."
    kind = _HASHES.get(str(head.get("alg")), "")
    signed = f"{parts[0]}.{parts[1]}".encode()
    for guess in GUESSES if kind else ():
        if _text(hmac.new(guess.encode(), signed, kind).digest()) == parts[2]:
            ours = f"{parts[0]}.{_written(claims | {'qa': 1})}"
            return f"{ours}.{_text(hmac.new(guess.encode(), ours.encode(), kind).digest())}"
    return ""


def _read(part: str) -> Any:  # noqa: ANN401  any JSON
    try:
        return strict_json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None


def _written(value: Mapping[str, Any]) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _texts(value: Any, depth: int = 3) -> Iterator[tuple[str, str]]:  # noqa: ANN401  any JSON
    """The texts of a document with their names, the outer ones first."""
    if isinstance(value, dict) and depth:
        yield from ((name, text) for name, text in value.items() if isinstance(text, str))
        for inner in list(value.values())[:32]:
            yield from _texts(inner, depth - 1)
