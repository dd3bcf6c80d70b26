"""Our decoders of hostile bytes: what each may raise, and what holds of all that it accepts."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import io
import itertools
import json
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio
import h11
import httpx
import pytest

from fleet.broker.connection import JailConnection
from fleet.broker.egress_policy import EgressPolicy
from fleet.broker.rpc_policy import METHODS, Denied, rewrite
from fleet.chain.node.provider import NodeProvider
from fleet.drivers.expect_check import check
from fleet.drivers.explore.documents.api_description import ApiDescription, read_description
from fleet.errors import PersonaError, Refused, RpcError, Unreachable
from fleet.findings.reader import MAX_CHARS, read
from fleet.findings.repro import ReproError, parse_repro, write_repro
from fleet.jail.model import End, Outcome
from fleet.personas.load import load_persona
from fleet.runs.call.guest_protocol import answer, answers, bad_args
from fleet.triggers.hooks.webhook import Delivery, headers, verify
from sandbox import strict_json
from sandbox.agents.sse import Decoder, StreamFault
from sandbox.chain import rpc
from sandbox.content_coding import decoded, opened
from sandbox.errors import Deadline, Failure
from sandbox.http import FinalReply, HttpReply
from sandbox.pages.condensed import condensed
from sandbox.tools import TOOLS

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SECRET = b"a secret of the tests"


@dataclass(frozen=True, slots=True)
class HostileDecoder:
    """`decode` raises only `refuses`, and AssertionError when what it accepted is not as it should be."""

    decode: Callable[[bytes], object]
    refuses: tuple[type[BaseException], ...]
    seeds: tuple[bytes, ...]


def _stream(data: bytes) -> None:
    """The same events or the same fault, however the bytes are cut."""
    assert _events(data, len(data) or 1) == _events(data, 7)


def _events(data: bytes, size: int) -> tuple[list[Any], str]:
    decoder, fault = Decoder(), ""
    try:
        for at in range(0, len(data), size):
            decoder.feed(data[at : at + size])
        decoder.close()
    except StreamFault as error:
        fault = str(error)
    return decoder.events, fault


def _policy(data: bytes) -> None:
    clean, methods = rewrite(data, methods=METHODS, max_log_range=100)
    assert set(methods) <= METHODS
    assert rewrite(clean, methods=METHODS, max_log_range=100) == (clean, methods)


def _head(data: bytes) -> None:
    async def serve() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        server = JailConnection(reader, cast(asyncio.StreamWriter, _Nowhere()), cast(EgressPolicy, _Limits()))
        if await server.head() is not None:
            assert len(await server.body()) <= _Limits.max_body

    asyncio.run(serve())


class _Limits:
    """Those of an EgressPolicy that a head is read by."""

    idle_s = head_s = 5.0
    max_head = 16_384
    max_body = 1 << 20


class _Nowhere:
    """A writer of no socket."""

    def get_extra_info(self, name: str) -> None:
        return None


def _entry(data: bytes) -> None:
    entry = read(data.decode("utf-8", "replace"))
    assert entry.title
    assert entry.title.isprintable()
    assert entry.body.replace("\n", "").isprintable() or not entry.body
    made = sum(len(value) for call in entry.repro for value in call.args.values() if isinstance(value, str))
    assert made <= 2 * MAX_CHARS


def _repro(data: bytes) -> None:
    calls = parse_repro(data.decode("utf-8", "replace"))
    assert parse_repro(write_repro(calls)) == calls


def _webhook(data: bytes) -> None:
    """Headers up to an empty line, then the body: nothing passes but what was signed."""
    above, _, body = data.partition(b"\n\n")
    pairs = tuple(
        (name, value.strip())
        for name, _, value in (line.partition(":") for line in above.decode("latin-1").split("\n"))
    )
    verify(Delivery("h", pairs, body), secrets=(SECRET,), personas=("qa-fuzz",), now=NOW)
    assert body == b"{}"


def _guest(data: bytes) -> None:
    outcome = Outcome(end=End.EXITED, code=0, stdout=data, stderr=b"", seconds=1.0)
    for tool in ("qa_fetch", "qa_compile", "qa_chain"):
        one = answer(TOOLS[tool], outcome)
        several, _ = answers(TOOLS[tool], outcome)
        for result in (one, *several.values()):
            assert json.loads(json.dumps(result, allow_nan=False)) == result


def _json(data: bytes) -> None:
    found = strict_json.loads(data, values=10_000)
    assert strict_json.loads(json.dumps(found, allow_nan=False)) == found


def _persona(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "qa-probe.md"
        path.write_bytes(data)
        load_persona(
            path,
            tools=frozenset(TOOLS),
            bad_args=lambda tool, args: bad_args(TOOLS[tool], args),
            bad_expectation=check,
        )


class _Body(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


def _node(data: bytes) -> None:
    """A node's answer, as the fleet's own provider reads it."""

    async def ask() -> None:
        provider = NodeProvider("http://node.test", timeout_s=5, max_bytes=1 << 20, retries={})
        replies = httpx.MockTransport(lambda request: httpx.Response(200, stream=_Body(data)))
        provider._client = httpx.AsyncClient(transport=replies)
        await provider.make_request(cast(Any, "eth_blockNumber"), [])

    anyio.run(ask)


def _jail_rpc(data: bytes) -> None:
    """A node's answer, as a tool in a jail reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc, "send", lambda request, deadline: HttpReply(200, {}, data, 1.0))
        patch.setattr(rpc, "_ids", itertools.count(1))
        rpc.number(rpc.call("eth_blockNumber", [], Deadline(5)))


class _Wire:
    """A socket of which only the answer is read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _reply(data: bytes) -> None:
    """A page's answer, as a tool in a jail reads it."""
    reply = FinalReply(cast(Any, _Wire(data)), method="GET")
    reply.begin()
    assert reply.status == 101 or reply.status >= 200
    assert sum(len(name) + len(value) for name, value in reply.getheaders()) <= len(data)
    assert len(reply.read()) <= len(data)


def _coding(data: bytes) -> None:
    """A body, with its coding on the first line."""
    coding, _, body = data.partition(b"\n")
    assert len(opened(body, 1_000)) <= 1_000
    assert len(decoded(body, coding.decode("latin-1"), 100_000)) <= max(100_000, len(body))


def _description(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    read = read_description(text)
    if isinstance(read, ApiDescription):
        assert len(json.dumps(read.document)) < 2_000_000
    assert len(condensed(text, 300)) < 300


_CALL = b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x%s","data":"0x00"},"latest"]}' % (
    b"11" * 20
)
_LOGS = b'{"jsonrpc":"2.0","id":"a","method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x2"}]}'
_SIGNED = "\n".join(
    f"{name}: {value}" for name, value in headers(SECRET, "delivery-1", int(NOW.timestamp()), b"{}").items()
)
_SAID = b'{"v":%d,"result":{"ok":true,"latency_ms":1.5}}\n'
_PERSONA = Path(__file__).with_name("persona.md").read_bytes()

_PACKED = gzip.compress(b"hello" * 99, mtime=0)
_SWAGGER = b"""{"swagger":"2.0","basePath":"/v1","paths":{"/a/{b}":{"parameters":[{"$ref":"#/parameters/b"}],
"post":{"parameters":[{"in":"body","name":"c","schema":{"$ref":"#/definitions/D"}}],
"responses":{"200":{"schema":{"type":"object","x-nullable":true}}}}}},
"parameters":{"b":{"in":"path","name":"b","type":"array"}},
"definitions":{"D":{"description":"x","properties":{"description":{}}}}}"""
_YAML = b"""openapi: 3.0.3
x: &x {a: 1, b: [~]}
paths:
  /a:
    get: &get
      description: |
        b: c
      parameters:
      - {<<: *x, name: q, in: query}
      - $ref: '#/x'
  /b: {get: *get}
"""

DECODERS: Mapping[str, HostileDecoder] = {
    "event-stream": HostileDecoder(
        _stream,
        (),
        (b'data: {"a":1}\n\ndata: [DONE]\n\n', b"event: x\r\ndata: 1\r\rid: 7\ndata:2\n\n: c\n\n"),
    ),
    "rpc-policy": HostileDecoder(_policy, (Denied,), (_CALL, _LOGS, b"[%s,%s]" % (_CALL, _LOGS))),
    "http-head": HostileDecoder(
        _head,
        (Denied, h11.RemoteProtocolError),
        (
            b"GET http://a.test/x HTTP/1.1\r\nhost: a.test\r\n\r\n",
            b"POST /rpc HTTP/1.1\r\nhost: b\r\ncontent-length: 2\r\n\r\n{}",
        ),
    ),
    "entry": HostileDecoder(
        _entry,
        (),
        (
            b"qa/v1 source=qa-fuzz sev=high surface=compiler fp=0123456789ab rate=3/3\nt\nb\n"
            b'repro: qa_compile(source="x"*300)',
            b"qa/v1 source=a v1: it breaks\nmore",
            b"qa/v1 source=a sev=low it breaks\nrepro: none",
        ),
    ),
    "repro": HostileDecoder(
        _repro,
        (ReproError,),
        (b'qa_compile(source="a" + "("*5300 + "1"); qa_fetch(a=[1,{"b":null}], url="{site}")',),
    ),
    "webhook": HostileDecoder(_webhook, (Refused,), (f"{_SIGNED}\n\n{{}}".encode(),)),
    "guest": HostileDecoder(
        _guest, (), (_SAID % 1, b'{"v":1,"call":0,"result":{"ok":false,"latency_ms":0,"error":"e"}}\n' * 2)
    ),
    "strict-json": HostileDecoder(
        _json, (ValueError,), (b'{"a":[1,-2.5e3,"\\u00e9\\ud83d\\ude00",null,true]}', _CALL)
    ),
    "answer": HostileDecoder(
        _reply,
        (http.client.HTTPException, ValueError),
        (
            b"HTTP/1.1 103 -\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\na: b\r\n c\r\ncontent-length: 2\r\n\r\nhi",
            b"HTTP/1.1 200\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
    ),
    "body-coding": HostileDecoder(
        _coding,
        (Failure,),
        (
            b"gzip\n%s\0\0" % _PACKED,
            b"none, x-gzip\n%s%s" % (_PACKED, _PACKED),
            b"deflate\n%s" % zlib.compress(b"hello"),
        ),
    ),
    "description": HostileDecoder(_description, (), (_SWAGGER, _YAML)),
    "persona": HostileDecoder(_persona, (PersonaError,), (_PERSONA,)),
    "node": HostileDecoder(
        _node,
        (Unreachable, RpcError),
        (
            b'{"jsonrpc":"2.0","id":1,"result":"0x10"}',
            b'{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"m","data":"0x"}}',
        ),
    ),
    "node-in-a-jail": HostileDecoder(
        _jail_rpc,
        (Failure,),
        (
            b'{"jsonrpc":"2.0","id":1,"result":"0x10"}',
            b'{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"m","data":"0x"}}',
        ),
    ),
}
