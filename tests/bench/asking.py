"""Asks a generated platform directly, by plain requests, in the way that shows each switch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from bench.findings.blueprint import Blueprint
from bench.findings.rules import EvidenceCall, Posted
from bench.findings.site.app import create
from bench.findings.site.house import GeneratedSite
from bench.findings.switches import Switch
from fleet.chain.keys import Secret, address_of, auth_token
from fleet.devnet.platform.chain import DiamondDouble
from sandbox.agents.sse import Decoder, StreamFault
from sandbox.pages import html
from sandbox.secrets.patterns import SECRETS
from tests.devnet.platform_server import serve

CALLER, OTHER = Secret(bytes.fromhex("33" * 32)), Secret(bytes.fromhex("44" * 32))
OWNER = "0x" + "cd" * 20
CREDIT = 50 * 10**18


@dataclass
class Asking:
    """One visitor of one platform: its answers in the words of the fleet's tools."""

    plan: Blueprint
    chain: DiamondDouble
    http: httpx.Client

    @property
    def url(self) -> str:
        return str(self.http.base_url).rstrip("/")

    def get(self, path: str, canary: str = "", **headers: str) -> EvidenceCall:
        """A page, as qa_fetch would report it."""
        started = time.monotonic()
        answer = self.http.get(path, headers=headers)
        taken = 1000 * (time.monotonic() - started)
        page = html.read(answer.text, canary)[0]
        kinds = [
            row.kind for row in SECRETS if any(row.leaks(one) for one in row.pattern.finditer(answer.text))
        ]
        result = {
            "status": answer.status_code,
            "text": answer.text,
            "content_type": answer.headers.get("content-type", ""),
            "headers": dict(answer.headers),
            "allow_origin": answer.headers.get("access-control-allow-origin", ""),
            "location": answer.headers.get("location", ""),
            "a11y": page.a11y,
            "canary_executable": page.canary_executable,
            "secrets": tuple(kinds),
            "max_ms": taken,
        }
        return EvidenceCall("qa_fetch", {"url": self.url + path} | headers, result)

    def say(self, message: str, *, key: Secret = CALLER, **how: Any) -> EvidenceCall:
        """A call of an agent, as qa_call would report it."""
        stream, raw, more = how.get("stream", False), how.get("raw", ""), how.get("more", {})
        body = {
            "agent": self.plan.agents[0],
            "contents": [{"role": "user", "parts": [{"text": message}]}],
        } | more
        token = auth_token(self.plan.scope, key, int(time.time()) - int(how.get("age", 0)), self.plan.route)
        token = how.get("token", lambda one: one)(token)
        headers = {self.plan.header: token} if token else {}
        before = dict(self.chain.credits)
        answer = self.http.post(
            self.plan.call_path(stream=stream),
            content=raw or json.dumps(body),
            headers=headers | how.get("headers", {}),
        )
        charged = sum(before.values()) - sum(self.chain.credits.values())
        said = _read(answer, stream and answer.status_code == 200)
        result = said | {"status": answer.status_code, "charged": charged, "address": address_of(key).lower()}
        args = {
            "target": self.plan.agents[0],
            "message": message,
            "stream": stream,
            "raw": raw or json.dumps(more),
        }
        return EvidenceCall("qa_call", args | how.get("headers", {}) | how.get("told", {}), result)


def _read(answer: httpx.Response, stream: bool) -> dict[str, Any]:
    """Reply, tools, caller and turns of an answer, and what is wrong with its stream."""
    error, documents = "", []
    if stream:
        decoder = Decoder()
        try:
            decoder.feed(answer.content)
            decoder.close()
        except StreamFault as fault:
            error = str(fault)
        documents = list(decoder.events)
    elif answer.status_code == 200:
        documents = [answer.json()]
    last: dict[str, Any] = {}
    reply, tools, finish = "", [], ""
    for one in documents:
        assert isinstance(one, dict)
        last |= one
        for candidate in one["candidates"]:
            finish = candidate.get("finishReason", finish)
            for part in candidate["content"]["parts"]:
                reply += part.get("text", "")
                tools += [part["functionCall"]["name"]] if "functionCall" in part else []
    if stream and not finish:
        error = error or "the stream ends without a finish reason"
    return {
        "reply": reply if answer.status_code == 200 else answer.text,
        "tool_calls": tools,
        "caller": last.get("caller", ""),
        "turns": last.get("turns", 0),
        "stream_error": error,
    }


@contextmanager
def asking(seed: int, *switches: Switch) -> Iterator[Asking]:
    """A platform of a seed on a chain in memory, with these switches on."""
    plan = Blueprint.drawn(seed)
    chain = DiamondDouble(
        credits={address_of(one).lower(): CREDIT for one in (CALLER, OTHER)},
        names=dict.fromkeys(plan.agents, OWNER),
    )
    house = GeneratedSite(
        blueprint=plan, chain=chain, chain_id=31337, diamond="0x" + "d1" * 20, url="", switches=switches
    )
    with serve(create(house)) as url:
        house.url = url
        with httpx.Client(base_url=url, trust_env=False, timeout=20.0) as http:
            yield Asking(plan, chain, http)


def titled(title: str, *calls: EvidenceCall) -> Posted:
    return Posted(title=title, calls=calls)
