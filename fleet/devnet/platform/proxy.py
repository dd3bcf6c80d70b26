"""The agent-call proxy: authenticate, validate, answer, and only then charge (platform-facts 1.7)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from fleet.devnet.platform.agent import DEFAULT_PERSONA, AgentCall, answer
from fleet.devnet.platform.auth import BadToken, verify
from fleet.devnet.platform.chain import PERSONA
from fleet.devnet.platform.names import clean_text, is_name
from fleet.devnet.platform.site import Site, site_of
from fleet.devnet.platform.stream import document, events
from fleet.errors import TxFailed

_PATH = re.compile(r"models/[a-zA-Z0-9.\-]+:(generateContent|streamGenerateContent)")


@dataclass
class ProxyRefusal(Exception):
    """An answer that is not a reply."""

    status: int
    error: str
    extra: dict[str, Any] | None = None

    def response(self) -> Response:
        return JSONResponse({"error": self.error} | (self.extra or {}), self.status)


async def call(request: Request) -> Response:
    """`POST /v1beta/models/<model>:<method>`; every refusal comes before the debit."""
    try:
        site = site_of(request)
        if request.method != "POST":
            raise ProxyRefusal(405, "method not allowed")
        found = _PATH.fullmatch(request.path_params["rest"])
        if found is None:
            raise ProxyRefusal(400, "unsupported path")
        method = found[1]
        raw = await _body(request, site.settings.max_body)
        payer = _authenticate(site, request)
        if "charge-before-validate" in site.defects:
            await _require_credit(site, payer)
            await _debit(site, payer)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise ProxyRefusal(400, "invalid JSON") from None
        if not isinstance(body, dict):
            raise ProxyRefusal(400, "invalid JSON: an object is expected")
        message = _message(body)
        caller = str(body.get("from") or payer).lower() if "spoofed-from" in site.defects else payer
        turn = await _addressed(site, body, caller, message)
        await _require_credit(site, payer)
        reply = answer(site, turn)
        if (reply.text or reply.tools) and "charge-before-validate" not in site.defects:
            await _debit(site, payer)
        if method == "generateContent":
            return JSONResponse(document(reply, turn.caller, turn.message))
        cut = "stream-edge" in site.defects
        stream = events(reply, turn.caller, turn.message, cut_inside_characters=cut)
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"cache-control": "no-store"}
        )
    except ProxyRefusal as denied:
        return denied.response()


async def _body(request: Request, limit: int) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            raise ProxyRefusal(413, f"body larger than {limit} bytes")
    return bytes(raw)


def _authenticate(site: Site, request: Request) -> str:
    settings = site.settings
    token = request.headers.get("x-goog-api-key", "")
    now = site.clock.now().timestamp()
    try:
        caller = verify(
            token, scope=settings.auth_scope, route=settings.route, now=now, freshness_s=settings.freshness_s
        )
    except BadToken as error:
        raise ProxyRefusal(401, str(error)) from None
    if wait := site.limiter.retry_after(caller):
        raise ProxyRefusal(429, "rate limit: too many calls from this address", {"retryAfterSeconds": wait})
    return caller


def _message(body: dict[str, Any]) -> str:
    """Text of the last content; 400 when there is none, before anything is charged."""
    contents = body.get("contents")
    last = contents[-1] if isinstance(contents, list) and contents else None
    parts = last.get("parts") if isinstance(last, dict) else None
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    message = clean_text("\n".join(text for text in texts if isinstance(text, str)))
    if not message.strip():
        raise ProxyRefusal(400, "contents must not be empty")
    return message


async def _addressed(site: Site, body: dict[str, Any], caller: str, message: str) -> AgentCall:
    """The call with its agent looked up."""
    agent = body.get("agent")
    if not isinstance(agent, str) or not is_name(agent):
        raise ProxyRefusal(404, f'"{clean_text(str(agent))[:63]}" is not a registered agent')
    agent_id = await site.chain.id_of_name(agent)
    if agent_id == 0:
        raise ProxyRefusal(404, f'"{agent}" is not a registered agent')
    persona = clean_text((await site.chain.metadata(agent_id, PERSONA)).decode("utf-8", "replace"))[:500]
    owner = await site.chain.owner_of_name(agent)
    return AgentCall(agent, owner, caller, message, persona or DEFAULT_PERSONA)


async def _require_credit(site: Site, caller: str) -> None:
    if not site.settings.metering:
        raise ProxyRefusal(503, "proxy misconfigured: no meter key", {"code": "LH_PROXY_MISCONFIG"})
    if await site.chain.credit_of(caller) < site.settings.price_wei:
        raise ProxyRefusal(402, "no active session or credit")


async def _debit(site: Site, caller: str) -> None:
    try:
        await site.chain.meter(caller, site.settings.price_wei)
    except TxFailed as error:
        raise ProxyRefusal(502, f"metering failed: {error}") from None
