"""Whether the addresses of a name are what its zone signed, as the resolver of our own network found.

The resolver validates (RFC 4035): it says so by the bit AD, and answers what does not hold with an error. It
is asked by TCP, once a dial, and believed only on loopback or at a private address, where nobody between can
set a bit. A zone that is not signed has no signature in its answer, and nothing to validate.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from fleet.broker.rpc_policy import Denied

RESOLV = Path("/etc/resolv.conf")
ANSWER_S = 5.0
_A, _CNAME, _AAAA, _OPT, _RRSIG = 1, 5, 28, 41, 46
_AD, _SERVFAIL, _NXDOMAIN = 0x20, 2, 3
_DO = 0x8000


class SignedAnswer(NamedTuple):
    """What a resolver says of one name: the code of its answer, whether it validated it, whether it has
    signatures, the addresses, and each name on the way to them (CNAME)."""

    code: int
    valid: bool
    signed: bool
    addresses: frozenset[str]
    aliases: tuple[str, ...] = ()


def query(name: str, kind: int, ident: int) -> bytes:
    """A question for one kind of record of a name, with a wish for signatures (DO) and validation (AD)."""
    labels = b"".join(bytes((len(one),)) + one.encode("ascii") for one in name.rstrip(".").split("."))
    head = struct.pack("!6H", ident, 0x0100 | _AD, 1, 0, 0, 1)
    return (
        head + labels + b"\0" + struct.pack("!2H", kind, 1) + b"\0" + struct.pack("!2HIH", _OPT, 4096, _DO, 0)
    )


def read_answer(raw: bytes, asked: bytes) -> SignedAnswer:
    """An answer to a question; ValueError for bytes that are none."""
    try:
        ident, flags, questions, answers, _, _ = struct.unpack_from("!6H", raw)
        body = len(query_of(asked))
        if (ident, questions) != (struct.unpack_from("!H", asked)[0], 1) or not flags & 0x8000:
            raise ValueError("it answers another question")
        if raw[12 : 12 + body].lower() != query_of(asked).lower():
            raise ValueError("it answers another question")
        rows = list(_records(raw, 12 + body, answers))
        aliases = tuple(_name(raw, at) for kind, at, _ in rows if kind == _CNAME)
    except (struct.error, IndexError) as error:
        raise ValueError(f"it is no answer: {error}") from None
    found = frozenset(
        str(ip_address(data)) for kind, _, data in rows if (kind, len(data)) in ((_A, 4), (_AAAA, 16))
    )
    signed = any(kind == _RRSIG for kind, _, _ in rows)
    return SignedAnswer(flags & 15, bool(flags & _AD), signed, found, aliases)


def query_of(asked: bytes) -> bytes:
    """The question within a message, without head and options."""
    return asked[12:-11]


def _name(raw: bytes, at: int) -> str:
    """A name at a place of an answer, whose pointers lead back only."""
    labels, before = list[str](), len(raw)
    while raw[at]:
        if raw[at] >= 0xC0:
            at = struct.unpack_from("!H", raw, at)[0] & 0x3FFF
            if at >= before:
                raise IndexError("a name that leads nowhere")
            before = at
            continue
        labels.append(raw[at + 1 : at + 1 + raw[at]].decode("ascii", "replace"))
        at += raw[at] + 1
        before = min(before, at)
    return ".".join(labels).lower()


def _records(raw: bytes, at: int, count: int) -> Iterator[tuple[int, int, bytes]]:
    for _ in range(count):
        while raw[at] and raw[at] < 0xC0:
            at += raw[at] + 1
        at += 2 if raw[at] >= 0xC0 else 1
        kind, _, _, length = struct.unpack_from("!2HIH", raw, at)
        at += 10
        if at + length > len(raw):
            raise IndexError("a record is longer than the answer")
        yield kind, at, raw[at : at + length]
        at += length


def resolver_of(text: str) -> str:
    """The first resolver that a resolv.conf names; "" for none."""
    rows = (row.split() for row in text.splitlines())
    return next((row[1] for row in rows if len(row) > 1 and row[0] == "nameserver"), "")


async def _ask(host: str, kind: int, resolver: str, port: int) -> SignedAnswer:
    asked = query(host, kind, secrets.randbelow(1 << 16))
    reader, writer = await asyncio.open_connection(resolver, port)
    try:
        writer.write(struct.pack("!H", len(asked)) + asked)
        await writer.drain()
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        return read_answer(await reader.readexactly(length), asked)
    finally:
        writer.transport.abort()


async def require_valid(
    host: str, found: tuple[str, ...], *, resolver: str = "", port: int = 53
) -> tuple[str, ...]:
    """Each name on the way to a name's addresses; Denied unless its zone is not signed, or the resolver
    validated these addresses."""
    try:
        resolver = resolver or resolver_of(RESOLV.read_text("utf-8", "replace"))
        if not resolver or ip_address(resolver.partition("%")[0]).is_global:
            raise Denied(
                "dnssec", f"the resolver {resolver or 'none'} is not of this network: its word is no proof"
            )
        async with asyncio.timeout(ANSWER_S):
            both = [await _ask(host, kind, resolver, port) for kind in (_A, _AAAA)]
    except (OSError, ValueError, EOFError, TimeoutError) as error:
        raise Denied("dnssec", f"{host}: the resolver does not say whether it is valid: {error}") from None
    if any(one.code not in (0, _NXDOMAIN) for one in both):
        raise Denied("dnssec", f"{host}: its signatures do not hold, or its resolver failed")
    aliases = tuple(dict.fromkeys(name for one in both for name in one.aliases))
    if not any(one.signed for one in both):
        return aliases
    if not all(one.valid for one in both if one.signed):
        raise Denied("dnssec", f"{host} is signed, and the resolver {resolver} does not validate")
    if strange := sorted({*found} - frozenset().union(*(one.addresses for one in both))):
        raise Denied("dnssec", f"{host} resolves to {', '.join(strange)}, which its zone did not sign")
    return aliases
