"""Addresses of a signed zone are dialled only when a resolver of our own network validated them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import pytest
from dns import flags, message, rrset
from dns.rdatatype import CNAME, RRSIG

from fleet.broker import dnssec
from fleet.broker.dnssec import require_valid, resolver_of
from fleet.broker.egress_policy import EgressPolicy, Origin
from fleet.broker.rpc_policy import Denied
from tests.runs.table import PLATFORM

pytestmark = pytest.mark.anyio
HOST, GOOD, BAD = "shop.example", "203.0.113.7", "198.51.100.9"
SIGNATURE = "A 13 2 60 20270101000000 20260101000000 12345 example. c2lnbg=="


def answered(raw: bytes, rows: Sequence[str], *, code: int, valid: bool, signed: bool) -> bytes:
    """What a resolver answers with these rows, as far as they are of the kind that is asked for."""
    asked = message.from_wire(raw)
    said = message.make_response(asked, recursion_available=True)
    said.set_rcode(code)  # type: ignore[arg-type]
    said.flags |= flags.AD if valid else 0
    kind = asked.question[0].rdtype
    for row in (*rows, *([f"{HOST}. 60 IN RRSIG {SIGNATURE}"] if signed else [])):
        name, *rest = row.split(maxsplit=4)
        one = rrset.from_text(name, int(rest[0]), rest[1], rest[2], rest[3])
        if one.rdtype in (kind, CNAME, RRSIG):
            said.answer.append(one)
    return said.to_wire()


@asynccontextmanager
async def resolver(
    *addresses: str, rows: Sequence[str] = (), code: int = 0, valid: bool = False, signed: bool = False
) -> AsyncIterator[int]:
    """A resolver on loopback by TCP; its port."""
    kinds = {4: "A", 6: "AAAA"}
    listed = [f"{HOST}. 60 IN {kinds[ip_address(one).version]} {one}" for one in addresses]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readexactly(struct.unpack("!H", await reader.readexactly(2))[0])
        said = answered(asked, (*listed, *rows), code=code, valid=valid, signed=signed)
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
            assert (await looked)[0] == ()
            return
        with pytest.raises(Denied, match=why) as denied:
            await looked
        assert denied.value.rule == "dnssec"


async def test_an_address_that_the_zone_did_not_sign_is_not_dialled() -> None:
    async with resolver(GOOD, valid=True, signed=True) as port:
        with pytest.raises(Denied, match=f"resolves to {BAD}, which its zone did not sign"):
            await require_valid(HOST, (GOOD, BAD), resolver="127.0.0.1", port=port)


async def test_each_name_on_the_way_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{HOST}. 60 IN CNAME Login.Other.example.", f"login.other.example. 60 IN A {GOOD}"]
    async with resolver(rows=rows) as port:
        found = await require_valid(HOST, (GOOD,), resolver="127.0.0.1", port=port)
        assert found == (("login.other.example",), 60)

    async def look(*_: object) -> tuple[tuple[str, ...], int]:
        return ("cdn.example", "login.microsoftonline.com", "last.example"), 60

    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.215.14",)

    monkeypatch.setattr("fleet.broker.dnssec.require_valid", look)
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


@pytest.mark.parametrize(
    "harm", [lambda raw: b"", lambda raw: raw[:20], lambda raw: b"\0\0" + raw[2:], bytes.upper]
)
async def test_bytes_that_answer_nothing_are_none(harm: Callable[[bytes], bytes]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readexactly(struct.unpack("!H", await reader.readexactly(2))[0])
        other = asked.replace(b"shop", b"shoq")
        said = harm(answered(other, (), code=0, valid=True, signed=True))
        writer.write(struct.pack("!H", len(said)) + said)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Denied, match="does not say whether it is valid"):
            await require_valid(HOST, (GOOD,), resolver="127.0.0.1", port=port)


def test_the_first_resolver_of_a_file_is_asked(tmp_path: Path) -> None:
    (file := tmp_path / "resolv.conf").write_text("# a\nsearch x\nnameserver 10.0.0.2\nnameserver 9.9.9.9\n")
    assert (resolver_of(file), resolver_of(tmp_path / "none")) == ("10.0.0.2", "")


async def test_the_broker_asks_for_names_of_a_profile_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    async def look(host: str, found: tuple[str, ...]) -> None:
        asked.append(host)
        raise Denied("dnssec", "no")

    async def resolve(_: Origin) -> tuple[str, ...]:
        return ("93.184.215.14",)

    monkeypatch.setattr("fleet.broker.dnssec.require_valid", look)
    web = PLATFORM.web.model_copy(update={"dnssec": True})
    for profile, hosts in ((PLATFORM, []), (PLATFORM.model_copy(update={"web": web}), [HOST])):
        policy = replace(EgressPolicy.of(profile), resolve=resolve)
        for name in (HOST, "93.184.215.14", "localhost"):
            with suppress(Denied):
                await policy.addresses(Origin("https", name, 443))
        assert asked == hosts
