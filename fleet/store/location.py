"""The configured location of the journal; importable without any database library."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from fleet.config import StoreSection, read_text
from fleet.config.files import credential
from fleet.errors import ConfigError

_PASSWORDS = frozenset({"password", "sslpassword"})
"""Parameters of a server's URL that are secrets."""


def store_place(store: StoreSection, state: Path) -> Path | str:
    """The argument of `Journal.open`: the file in the state directory, or a server's URL; ConfigError."""
    if store.url and store.url_file:
        raise ConfigError("store: both url and url_file are set", remedy="keep one of them")
    if re.match(r"[^/]*//[^/]*:[^/]*@|.*[?&](?:ssl)?password=", store.url):
        raise ConfigError(
            "store.url: contains a password", remedy="put the URL into the file of store.url_file"
        )
    if store.url_file:
        return _store_url(state / store.url_file, private=True)
    if not store.url and (given := credential("store-url")):
        return _store_url(given, private=False)
    return store.url or state / "fleet.db"


def shown(place: Path | str) -> str:
    """The journal's location for people: a file, or host and database without user, password, options."""
    if isinstance(place, Path):
        return str(place)
    parts = urlsplit(place)
    host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", [""])[0]
    return f"postgresql://{host}{parts.path}"


def without_password(url: str) -> str:
    """A server's URL as its own tools take it, less its passwords."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    named = [(unquote(one.partition("=")[0]), one) for one in parts.query.split("&") if one]
    query = "&".join(one for name, one in named if name not in _PASSWORDS)
    made = f"postgresql://{login.partition(':')[0]}{at}{host}{parts.path}"
    return f"{made}?{query}" if query else made


def _store_url(path: Path, *, private: bool) -> str:
    url = read_text(path, limit=4096).strip()
    if private and path.stat().st_mode & 0o077:
        raise ConfigError(
            f"{path}: readable by others, and it contains a password", remedy=f"chmod 600 {path}"
        )
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError(f"{path}: not a database URL", remedy="postgresql://user:password@host/database")
    return url
