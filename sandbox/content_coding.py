"""The body of an answer without its content coding, read as browsers read it. Bounded.

What is no coding (`none`, `UTF-8`, `aws-chunked`) is passed over, and so is what follows a complete stream
(padding, junk). A coding that was not requested, a second layer and a stream that is cut are garbage.
"""

from __future__ import annotations

import zlib
from typing import Any

from sandbox.errors import Failure

_GZIP = ("gzip", "x-gzip")
_UNREAD = frozenset(("br", "zstd", "compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"))
"""Registered codings that a request never asks for (IANA, HTTP Content Coding Registry)."""
_MEMBER = b"\x1f\x8b"
"""How each member of a gzip stream begins (RFC 1952)."""


def decoded(body: bytes, coding: str, cap: int) -> bytes:
    """The decoded body. Failure: `too_large` for one above `cap` bytes, `garbage` for one that cannot be
    read."""
    named = [one.strip().lower() for one in coding.split(",")]
    layers = [one for one in named if one in (*_GZIP, "deflate") or one in _UNREAD]
    if not layers or not body:
        return body
    if len(layers) > 1 or layers[0] in _UNREAD:
        raise Failure("garbage", f"content-encoding {', '.join(layers)[:40]!r} was not asked for")
    try:
        return _gunzip(body, cap) if layers[0] in _GZIP else _undeflate(body, cap)
    except zlib.error:
        raise Failure("garbage", f"a body that is not {layers[0]}") from None


def opened(body: bytes, most: int) -> bytes:
    """The first `most` bytes of what a gzip file holds, whole or not; the start of any other body."""
    if not body.startswith(_MEMBER):
        return body[:most]
    try:
        return zlib.decompressobj(wbits=31).decompress(body, most)
    except zlib.error:
        return body[:most]


def _gunzip(body: bytes, cap: int) -> bytes:
    parts, room = list[bytes](), cap
    while not parts or body.startswith(_MEMBER):  # gzip allows several members, one after the other
        member = zlib.decompressobj(wbits=31)
        parts.append(_bounded(member, body, room))
        room -= len(parts[-1])
        body = member.unused_data
    return b"".join(parts)


def _undeflate(body: bytes, cap: int) -> bytes:
    try:
        return _bounded(zlib.decompressobj(), body, cap)
    except zlib.error:  # some servers mean the raw form
        return _bounded(zlib.decompressobj(wbits=-15), body, cap)


def _bounded(member: Any, body: bytes, room: int) -> bytes:  # noqa: ANN401  zlib's decompressor has no public type
    out: bytes = member.decompress(body, room + 1)
    if len(out) > room:
        raise Failure("too_large", "a body that unpacks to too much")
    if not member.eof:
        raise zlib.error("truncated")
    return out
