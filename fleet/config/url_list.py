"""Hosts and paths that an operator lists, found in every spelling of a URL: `[web] never`, `[hosts]`.

A URL is read as each of the servers that could get it might read it: as sent, and after each round of
decoding. It matches when one of those readings does; what cannot be read in one way matches where the host
has a path on the list. Pure.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Annotated
from urllib.parse import unquote

from pydantic import StringConstraints

UrlEntry = Annotated[
    str,
    StringConstraints(
        pattern=r"^(\{site\}|\{proxy\}|https?://[^\s/?#@%*]+|(\*\.)?[^\s/?#@%*{}]*[.:][^\s/?#@%*{}]*|localhost)?"
        r"(/[^\s?#%;\\]*)?$",
        min_length=2,
        max_length=500,
    ),
]
_ROUNDS = 6
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):[/\\]*(?P<authority>[^/\\?#]*)(?P<path>[^?#]*)", re.S)
_CODE_UNIT = re.compile(r"%u([0-9a-f]{4})", re.I)
"""An encoding of IIS for one UTF-16 unit; no standard has it."""
_DOTS = str.maketrans("。．｡", "...")


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """`text` is the entry as written. An empty `host` is every host, `port` 0 every port, no `parts` every
    path; `below` is for the names below `host` instead of itself."""

    text: str
    host: str
    below: bool
    port: int
    parts: tuple[str, ...]

    def _is_at(self, host: str, port: int) -> bool:
        named = host.endswith(f".{self.host}") if self.below else host == self.host
        return (not self.host or named) and self.port in (0, port)

    def covers(self, host: str, port: int, readings: tuple[str, ...]) -> bool:
        """Whether a request there is meant; `readings` are the ways to read its path."""
        return self._is_at(host, port) and (not self.parts or any(map(self._holds, readings)))

    def _holds(self, reading: str) -> bool:
        if "\ufffd" in reading or "%%" in reading:  # bytes of no text, or decoding without an end
            return True
        sent = [_part(part) for part in re.split(r"[/\\]", reading)]
        plain = [part for part in sent if part not in ("", ".", "..")]
        resolved = list[str]()
        for part in sent:
            if part == "..":
                del resolved[-1:]
            elif part not in ("", "."):
                resolved.append(part)
        size = len(self.parts)
        # a server that does not resolve dots may begin to route at any part
        starts = range(len(plain)) if len(resolved) != len(plain) or ".." in sent else (0,)
        return any(tuple(way[at : at + size]) == self.parts for way in (resolved, plain) for at in starts)


@dataclass(frozen=True, slots=True)
class UrlList:
    """One list of a profile."""

    places: tuple[UrlPattern, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str], *, site: str, proxy: str) -> UrlList:
        """From entries: a host, `*.` and a host for all names below it, a URL, a path of every host, or one
        that begins with `{site}` or `{proxy}`. ValueError for one that names nothing."""
        return cls(tuple(_place(entry, site, proxy) for entry in entries))

    @property
    def entries(self) -> tuple[str, ...]:
        """The entries as written."""
        return tuple(place.text for place in self.places)

    def match(self, url: object) -> str:
        """The entry that covers a URL; "" when none does. What is not a URL is left to the other rules."""
        found = _URL.match(url) if isinstance(url, str) and self.places else None
        if found is None:
            return ""
        host, port = _authority(found["authority"], found["scheme"].lower())
        readings = _readings(found["path"])
        return next((place.text for place in self.places if place.covers(host, port, readings)), "")

    def has_address(self, address: str) -> bool:
        """Whether an address is on the list as a host, whatever name leads to it."""
        host = _host(address)
        return any(place.host == host and not place.parts and not place.below for place in self.places)


NO_URLS = UrlList()


def host_of(url: str) -> str:
    """The host of a URL, in one spelling; "" for what is no URL."""
    found = _URL.match(url)
    return _authority(found["authority"], found["scheme"].lower())[0] if found else ""


def _place(entry: str, site: str, proxy: str) -> UrlPattern:
    text, below = entry, entry.startswith("*.")
    for word, base in (("{site}", site), ("{proxy}", proxy)):
        if text.startswith(word) and not base:
            raise ValueError(f"never: {entry} begins with {word}, which this profile leaves out")
        text = text.replace(word, base.rstrip("/"))
    _, mark, rest = text.partition("://")
    authority, _, path = (rest if mark else text.removeprefix("*.")).partition("/")
    parts = tuple(_part(part) for part in path.split("/") if part)
    if any(part in ("", ".", "..") for part in parts) or not (authority or parts):
        raise ValueError(f"never: {entry} names no host and no path")
    host, port = _authority(authority, "")
    return UrlPattern(entry, host, below, port, parts)


@lru_cache(1024)
def _authority(text: str, scheme: str) -> tuple[str, int]:
    """Host in one spelling, and port; 0 for a port that is not stated and no scheme implies."""
    bare = unquote(text).rpartition("@")[2]
    named, mark, digits = bare.rpartition(":")
    if mark and "]" not in digits and digits.isdecimal():
        return _host(named), int(digits[:6])
    return _host(bare.rstrip(":")), _PORTS.get(scheme, 0)


def _host(text: str) -> str:
    """Lower case, without a trailing dot, in ASCII; an address in its shortest form, IPv4 where it can be."""
    host = unicodedata.normalize("NFKC", text.translate(_DOTS)).lower().strip("[]").rstrip(".")
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return str(mapped or address)
    with suppress(OSError, ValueError):  # 127.1, 0x7f000001, 017700000001: as the resolver reads them
        return socket.inet_ntoa(socket.inet_aton(host)) if host[:1].isdigit() else _ascii(host)
    return _ascii(host)


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def _readings(path: str) -> tuple[str, ...]:
    """The path as sent, and as each round of decoding leaves it, up to what looks like a query there."""
    ways = [path]
    while len(ways) < _ROUNDS:
        plain = _CODE_UNIT.sub(lambda code: chr(int(code[1], 16)), unquote(ways[-1]))
        if plain == ways[-1]:
            break
        ways.append(plain)
    else:
        ways.append("%%")
    return tuple(re.split(r"[?#]", way)[0] for way in ways)


def _part(part: str) -> str:
    """One part of a path as the most generous server reads it: without parameters, case, odd characters."""
    plain = unicodedata.normalize("NFKC", part.partition(";")[0]).casefold()
    plain = "".join(char for char in plain if char.isprintable() and not char.isspace())
    return plain if plain in (".", "..") else plain.rstrip(".")
