"""Sessions in a jail: a token or cookie found in the answer to a log-in, sent, and forged. None leaves it."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from sandbox import strict_json
from sandbox.http import HttpReply
from sandbox.pages.cookies import CookieStore, SiteCookie

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
_NAMES = tuple(
    re.compile(rf"(?i)^(?:{names})$")
    for names in (
        r"access[_-]?token|token[_-]?access",
        r"(?:auth|bearer|session|api|user|login|personal)?[_-]?(?:token|jwt)|authorization",
        r"session[_-]?(?:id|key)?|sid|ticket",
        r"(?:api|access|secret|app|client|auth)?[_-]?key|api[_-]?secret|credential|id[_-]?token|bearer",
    )
)
"""What a token is called, the likeliest first."""
_NO_TOKEN = re.compile(
    r"(?i)refresh|csrf|xsrf|verif|confirm|reset|device|uuid|hash|e-?mail|user|url|date|_at$|^id$|_id$"
)
_CSRF = re.compile(r"(?i)(?:csrf|xsrf)")
_REFRESH = re.compile(r"(?i)refresh[_-]?token|refresh")
_CSRF_HEADERS = ("x-csrf-token", "x-csrftoken", "x-xsrf-token")
"""Where Rails and Laravel, Django, and Angular and Spring look for it."""
_SENDABLE = re.compile(r"[!-~]{8,4000}", re.ASCII)
_LONG = re.compile(
    r"(?=[^0-9]{0,400}[0-9]|(?=[^a-z]{0,400}[a-z])[^0-9]{0,400}?[A-Z]{2})[\w+/=.:~|-]{20,4000}", re.ASCII
)
"""With a digit, or letters in no order of words: one drawn token in 250 has no digit."""
_UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEADER = re.compile(r"(?i)(?:x-)?(?:auth|access|session|api)[\w-]{0,30}|authorization")
_HASHES = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


@dataclass(slots=True)
class AccountSession:
    """What goes with each request of an account; `token` is the part of it that is forged, "" for none."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    jar: CookieStore = field(default_factory=CookieStore)
    token: str = ""
    csrf: str = ""
    """A token that an answer gave besides, for requests that change something."""
    refresh: str = ""
    """One that begins the session again."""

    def sent(self, path: str, *, acts: bool) -> dict[str, str]:
        """The headers of a request for a path."""
        cookie = self.jar.header(path)
        found = self.headers | ({"cookie": cookie} if cookie else {})
        held = (one.value for (name, _), one in self.jar.held.items() if _CSRF.search(name))
        proof = unquote(next(held, "")) or self.csrf
        return found | (dict.fromkeys(_CSRF_HEADERS, proof) if acts and _SENDABLE.fullmatch(proof) else {})

    def learn(self, reply: HttpReply, carried: str, path: str) -> bool:
        """Take what the answer to a sign-up or log-in gives; whether a session is there now.

        `carried`: `header NAME`, `query NAME` or `cookie NAME` for a key, with a word that stands before it
        as a third; "" for a bearer token, or cookies.
        """
        self.jar.take(reply.headers.get("set-cookie", ""), path)
        read = document(reply)
        self.csrf = next((text for name, text in _texts(read) if _CSRF.search(name)), self.csrf)
        fresh = (
            text for name, text in _texts(read) if _REFRESH.fullmatch(name) and _SENDABLE.fullmatch(text)
        )
        self.refresh = next(fresh, self.refresh)
        token, where = _token(reply, read, key=bool(carried))
        if _SENDABLE.fullmatch(token):
            self.carry(token, carried or where)
        elif not (self.headers or self.query or self._held()):
            held = ((name, one.value) for (name, _), one in self.jar.held.items())
            self.token = next(
                (value for name, value in held if len(value) > 7 and not _CSRF.search(name)), ""
            )
        return bool(self.token)

    def _held(self) -> bool:
        """Whether a cookie has the token: a later log-in may have set another one."""
        return bool(self.token) and any(self.token in one.value for one in self.jar.held.values())

    def carry(self, token: str, carried: str) -> None:
        """Send a token with each request from now on."""
        where, name, before = (*carried.split(" ", 2), "", "", "")[:3]
        self.token = token
        match where:
            case "header":
                self.headers[name.lower()] = f"{before} {token}".strip()
            case "query":
                self.query[name] = token
            case "cookie":
                self.jar.held[name, "/"] = SiteCookie(token)
            case _:
                self.headers["authorization"] = f"Bearer {token}"

    def forged(self, how: str) -> AccountSession | None:
        """The same with the token forged in one way; None where it has no such form."""
        plain = {"garbage": "not-a-token-of-anybody", "cut": self.token[: len(self.token) // 2]}
        text = plain[how] if how in plain else _signed(self.token, how)
        if not text or not self.token:
            return None
        headers = {name: value.replace(self.token, text) for name, value in self.headers.items()}
        query = {name: value.replace(self.token, text) for name, value in self.query.items()}
        held = {
            at: replace(one, value=one.value.replace(self.token, text))
            for at, one in self.jar.held.items()
            if self.token in one.value  # by another cookie the session would be open, whatever the token
        }
        return AccountSession(headers, query, CookieStore(held), text)

    @property
    def brief(self) -> bool:
        """Whether its token states its own end, at most `BRIEF_S` away."""
        ends = self._claims().get("exp")
        return isinstance(ends, int | float) and ends - time.time() <= BRIEF_S

    @property
    def endless(self) -> bool:
        """Whether its token is a signed one (RFC 7519) that states no end."""
        claims = self._claims()
        return bool(claims) and not {"exp", "expires", "expires_at"} & set(claims)

    def _claims(self) -> dict[str, Any]:
        parts = self.token.split(".")
        claims = _read(parts[1]) if len(parts) == 3 else None
        return claims if isinstance(claims, dict) else {}


def basic(user: str, phrase: str) -> AccountSession:
    """HTTP basic: its credentials go with each request, and nothing of them is forged."""
    sent = base64.b64encode(f"{user}:{phrase}".encode()).decode()
    return AccountSession({"authorization": f"Basic {sent}"})


def _token(reply: HttpReply, read: Any, *, key: bool) -> tuple[str, str]:  # noqa: ANN401  any JSON
    """The token in an answer, by its name or as the one text that looks like one, "" for none; and how it is
    carried, where the answer shows that."""
    texts = [(name, text.removeprefix("Bearer ")) for name, text in _texts(read)]
    texts = [(name, text) for name, text in texts if _SENDABLE.fullmatch(text)]
    for form in sorted(_NAMES, key=lambda one: key and one is not _NAMES[-1]):
        if named := next((text for name, text in texts if form.fullmatch(name)), ""):
            return named, ""
    for name, text in reply.headers.items():
        plain = text.removeprefix("Bearer ")
        if _HEADER.fullmatch(name) and _LONG.fullmatch(plain):
            return plain, "" if name == "authorization" else f"header {name}"
    if isinstance(read, str) and _LONG.fullmatch(read):
        return read, ""
    others = [text for name, text in texts if not _NO_TOKEN.search(name)]
    found = [text for text in others if _LONG.fullmatch(text) and not _UUID.fullmatch(text)]
    return (found[0] if len(found) == 1 else ""), ""


def document(reply: HttpReply) -> Any:  # noqa: ANN401  any JSON
    """The JSON of an answer; None for any other."""
    try:
        return strict_json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


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


def _texts(value: Any, depth: int = 6) -> Iterator[tuple[str, str]]:  # noqa: ANN401  any JSON
    """The texts of a document with their names, the outer ones first."""
    if isinstance(value, list):
        value = {"": value[0]} if len(value) == 1 else {}
    if isinstance(value, dict) and depth:
        yield from ((name, text) for name, text in value.items() if isinstance(text, str))
        for inner in list(value.values())[:32]:
            yield from _texts(inner, depth - 1)
