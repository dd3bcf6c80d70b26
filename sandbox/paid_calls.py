"""How something that is paid for is asked for: a page, a tool of an MCP server, an agent by A2A.

One class for each wire behind one port. What comes back by JSON-RPC is read in the words of HTTP
(`payment_offers.in_http`), so that who pays and who judges know one form of answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from sandbox import http
from sandbox.agents.mcp_wire import CALL, McpClient
from sandbox.agents.wires import KEYED
from sandbox.agents.wires.a2a import A2aWire
from sandbox.agents.wires.port import Spoken
from sandbox.errors import Deadline, Failure
from sandbox.payment_offers import MCP_PAYMENT, MPP, V1, V2, X402, a2a_payment, in_http
from sandbox.spec import Context, Mistake

SENT = {V2: "payment-signature", MPP: "authorization", V1: "x-payment"}
"""The header that carries a payment, by its form."""
Json = dict[str, Any]


class PaidCall(Protocol):
    """One request, to be repeated with a payment."""

    target: str
    """Its URL, by which a payment is asked for."""

    def request(self, form: str = "", payment: Mapping[str, Any] | None = None) -> http.HttpRequest:
        """The request as it is sent, with a payment of a form if there is one; Mistake where the wire has no
        place for that form."""

    def read(self, reply: http.HttpReply) -> http.HttpReply:
        """What came back, in the words of HTTP."""

    def close(self) -> None:
        """End what this call began."""


class PageCall:
    """A page: a payment is a header."""

    def __init__(self, ask: http.HttpRequest) -> None:
        self._ask, self.target = ask, ask.target

    def request(self, form: str = "", payment: Mapping[str, Any] | None = None) -> http.HttpRequest:
        if payment is None:
            return self._ask
        text = f"Payment {encoded(payment, url=True)}" if form == MPP else encoded(payment)
        return replace(self._ask, headers=self._ask.headers | {SENT[form]: text})

    def read(self, reply: http.HttpReply) -> http.HttpReply:
        return reply

    def close(self) -> None: ...


class ToolCall:
    """A tool of an MCP server: a payment is in `_meta` of the call."""

    def __init__(self, url: str, name: str, arguments: Mapping[str, Any], deadline: Deadline) -> None:
        self._client = McpClient(url, {}, deadline)
        self._params: Json = {"name": name, "arguments": dict(arguments)}
        self.target = url
        opened = self._client.open()
        if not opened.ok:
            raise Failure("http", f"the server does not open: {opened.error or f'HTTP {opened.status}'}")

    def request(self, form: str = "", payment: Mapping[str, Any] | None = None) -> http.HttpRequest:
        if payment is None:
            return self._client.request(CALL, self._params)
        _x402(form)
        return self._client.request(CALL, self._params | {"_meta": {MCP_PAYMENT: payment}})

    def read(self, reply: http.HttpReply) -> http.HttpReply:
        return _in_http(reply)

    def close(self) -> None:
        self._client.close()


class MessageCall:
    """A message to an agent by A2A: a payment is in the metadata of another one for the same task."""

    def __init__(self, url: str, message: str, ctx: Context) -> None:
        named = {name: one for name, one in ctx.agents.items() if one["url"].rstrip("/") == url.rstrip("/")}
        name, agent = next(iter(named.items()), ("", {}))
        wire = KEYED.get(agent.get("wire", ""))
        if wire is None or not issubclass(wire, A2aWire):
            raise Mistake("/args/message: no agent of the profile is called there by A2A")
        self._wire, self._name, self._said, self.target = wire(agent, ctx), name, message, agent["url"]
        self._task = ""

    def request(self, form: str = "", payment: Mapping[str, Any] | None = None) -> http.HttpRequest:
        ask = self._wire.request(Spoken(self._name, self._said, "caller"))
        ask = replace(ask, headers=ask.headers | {"a2a-extensions": X402, "x-a2a-extensions": X402})
        if payment is None:
            return ask
        _x402(form)
        body = json.loads(ask.body)
        body["params"]["message"] |= {"metadata": a2a_payment(payment)}
        body["params"]["message"] |= {"taskId": self._task} if self._task else {}
        return replace(ask, body=json.dumps(body).encode())

    def read(self, reply: http.HttpReply) -> http.HttpReply:
        read = _in_http(reply)
        self._task = read.headers.get("x-task", self._task)
        return read

    def close(self) -> None: ...


def _x402(form: str) -> None:
    if form not in (V1, V2):
        raise Mistake("/args/form: a tool and an agent are paid by x402 alone")


def _in_http(reply: http.HttpReply) -> http.HttpReply:
    status, headers, body = in_http(reply.status, reply.headers, reply.body)
    return replace(reply, status=status, headers=dict(headers), body=body)


def encoded(said: Mapping[str, Any], *, url: bool = False) -> str:
    """Base64 of JSON, by the alphabet of URLs without padding for MPP."""
    raw = json.dumps(said, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode() if url else base64.b64encode(raw).decode()
