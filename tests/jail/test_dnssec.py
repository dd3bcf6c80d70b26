"""Addresses of a signed zone are dialled only when a resolver of our own network validated them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address

import pytest

from fleet.broker import dnssec
from fleet.broker.dnssec import query, query_of, read_answer, require_valid, resolver_of
from fleet.broker.egress_policy import EgressPolicy, Origin
from fleet.broker.rpc_policy import Denied
from tests.runs.table import PLATFORM

pytestmark = pytest.mark.anyio
HOST, GOOD, BAD = "shop.example", "203.0.113.7", "198.51.100.9"


def answered(asked: bytes, addresses: tuple[str, ...], *, code: int, valid: bool, signed: bool) -> bytes:
    """What a resolver answers, with names as pointers."""
    kind = struct.unpack("!H", query_of(asked)[-4:-2])[0]
    shown = [ip_address(one).packed for one in addresses if (ip_address(one).version == 4) == (kind == 1)]
    rows = [b"\xc0\x0c" + struct.pack("!2HIH", kind, 1, 60, len(one)) + one for one in shown]
    rows += [b"\xc0\x0c" + struct.pack("!2HIH", 46, 1, 60, 4) + b"sign"] if signed else []
    flags = 0x8180 | (0x20 if valid else 0) | code
    head = struct.pack("!2s5H", asked[:2], flags, 1, len(rows), 0, 0)
    return head + query_of(asked) + b"".join(rows)


@asynccontextmanager
async def resolver(
    *addresses: str, code: int = 0, valid: bool = False, signed: bool = False
) -> AsyncIterator[int]:
    """A resolver on loopback by TCP; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readexactly(struct.unpack("!H", await reader.readexactly(2))[0])
        said = answered(asked, addresses, code=code, valid=valid, signed=signed)
        writer.write(struct.pack("!H", len(said)) + said)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({}, ""),
        ({"signed": True, "valid": True}, ""),
        ({"signed": True}, "is signed, and the resolver 127.0.0.1 does not validate"),
        ({"code": 2}, "its signatures do not hold, or its resolver failed"),
        ({"code": 3}, ""),
    ],
)
async def test_what_is_signed_must_be_validated_and_what_is_bogus_is_not_dialled(
    says: dict[str, bool | int], why: str
) -> None:
    async with resolver(GOOD, "2001:db8::7", **says) as port:  # type: ignore[arg-type]
        looked = require_valid(HOST, (GOOD, "2001:db8::7"), resolver="127.0.0.1", port=port)
        if not why:
            assert await looked == ()
            return
        with pytest.raises(Denied, match=why) as denied:
            await looked
        assert denied.value.rule == "dnssec"


async def test_an_address_that_the_zone_did_not_sign_is_not_dialled() -> None:
    async with resolver(GOOD, valid=True, signed=True) as port:
        with pytest.raises(Denied, match=f"resolves to {BAD}, which its zone did not sign"):
            await require_valid(HOST, (GOOD, BAD), resolver="127.0.0.1", port=port)


async def test_each_name_on_the_way_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = query(HOST, 1, 7)
    target = b"\x05login\x05other\xc0\x11"  # login.other, and then what follows "shop." in the question
    rows = [
        b"\xc0\x0c" + struct.pack("!2HIH", 5, 1, 60, len(target)) + target,
        b"\xc0\x0c" + struct.pack("!2HIH", 1, 1, 60, 4) + ip_address(GOOD).packed,
    ]
    raw = struct.pack("!2s5H", asked[:2], 0x8180, 1, 2, 0, 0) + query_of(asked) + b"".join(rows)
    assert read_answer(raw, asked).aliases == ("login.other.example",)
    loop = raw.replace(b"\xc0\x11", b"\xc0\x2f")
    with pytest.raises(ValueError, match="no answer"):
        read_answer(loop, asked)

    async def look(*_: object) -> tuple[str, ...]:
        return ("cdn.example", "login.microsoftonline.com", "last.example")

    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.215.14",)

    monkeypatch.setattr("fleet.broker.egress_policy.require_valid", look)
    policy = replace(EgressPolicy.of(PLATFORM), resolve=resolve, dnssec=True)
    with pytest.raises(Denied, match=r"is another name of login\.microsoftonline\.com, which nothing asks"):
        await policy.addresses(Origin("https", HOST, 443))


@pytest.mark.parametrize("where", ["9.9.9.9", "2620:fe::fe", ""])
async def test_a_resolver_out_there_is_not_believed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dnssec, "resolver_of", lambda _: "")
    with pytest.raises(Denied, match="its word is no proof"):
        await require_valid(HOST, (GOOD,), resolver=where)


async def test_without_an_answer_nothing_is_dialled() -> None:
    async with resolver(GOOD) as port:
        pass
    with pytest.raises(Denied, match="does not say whether it is valid"):
        await require_valid(HOST, (GOOD,), resolver="127.0.0.1", port=port)


def test_bytes_that_answer_nothing_are_none() -> None:
    asked = query(HOST, 1, 7)
    good = answered(asked, (GOOD,), code=0, valid=True, signed=True)
    assert read_answer(good, asked) == (0, True, True, frozenset({GOOD}), ())
    other = query(HOST, 1, 8)
    for raw in (
        b"",
        asked,
        good[:40],
        good[:-1],
        good.replace(b"shop", b"shoq"),
        good[:2] + b"\0\0" + good[4:],
    ):
        with pytest.raises(ValueError, match=r"another question|it is no answer"):
            read_answer(raw, asked)
    with pytest.raises(ValueError, match="another question"):
        read_answer(good, other)
    assert resolver_of("# a\nsearch x\nnameserver 10.0.0.2\nnameserver 9.9.9.9\n") == "10.0.0.2"


async def test_the_broker_asks_for_names_of_a_profile_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    async def look(host: str, found: tuple[str, ...]) -> None:
        asked.append(host)
        raise Denied("dnssec", "no")

    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.215.14",)

    monkeypatch.setattr("fleet.broker.egress_policy.require_valid", look)
    web = PLATFORM.web.model_copy(update={"dnssec": True})
    for profile, hosts in ((PLATFORM, []), (PLATFORM.model_copy(update={"web": web}), [HOST])):
        policy = replace(EgressPolicy.of(profile), resolve=resolve)
        for name in (HOST, "93.184.215.14", "localhost"):
            with suppress(Denied):
                await policy.addresses(Origin("https", name, 443))
        assert asked == hosts
