"""The agent calls of a generated platform: token, contents, credit, answer, and only then the charge."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bench.findings.site.agent import AgentMessage, Said, answer
from bench.findings.site.house import GeneratedSite
from bench.findings.site.pages import house_of
from fleet.devnet.platform.auth import BadToken, verify
from fleet.devnet.platform.names import clean_text, is_name
from fleet.errors import TxFailed

WIDTH = 12
AGAIN_S = 120.0
ANONYMOUS = "0x" + "0" * 39 + "1"
"""Whom the switch of unsigned calls takes the caller for; it pays nothing."""
MAX_BODY = 1 << 20


class CallRefusal(Exception):
    """A call that is not served; `why` is the role of the refusal."""

    def __init__(self, status: int, error: str, why: str) -> None:
        super().__init__(error)
        self.status, self.error, self.why = status, error, why


async def whole(request: Request) -> Response:
    return await _answered(request, stream=False)


async def streamed(request: Request) -> Response:
    return await _answered(request, stream=True)


async def _answered(request: Request, *, stream: bool) -> Response:
    house = house_of(request)
    payer = ""
    try:
        raw = await request.body()
        payer = _payer(house, request)
        turn = await _turn(house, request, raw, payer)
        if payer != ANONYMOUS:
            await _require_credit(house, payer)
        said = answer(house, turn)
        if payer != ANONYMOUS and (said.text or said.tools):
            await _charge(house, payer, turn, stream)
    except CallRefusal as refused:
        return await _refusal(house, payer, refused)
    body = _document(said, turn)
    if not stream:
        return JSONResponse(body)
    return StreamingResponse(
        _events(house, said, turn), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _require_credit(house: GeneratedSite, payer: str) -> None:
    if await house.chain.credit_of(payer) < house.blueprint.price_wei:
        price = house.fact("refused-credit", "price")
        raise CallRefusal(402, f"no credit: a message costs {price} credits", "credit")


async def _refusal(house: GeneratedSite, payer: str, refused: CallRefusal) -> Response:
    paid = house.on("paid-refusal", refused.why)
    if paid and payer not in ("", ANONYMOUS):  # paid before it is validated, so credit is asked for first
        try:
            await _require_credit(house, payer)
        except CallRefusal as unpaid:
            return JSONResponse({"error": unpaid.error}, unpaid.status)
        await house.chain.meter(payer, house.blueprint.price_wei)
    leak = house.on("trace-leak", f"call-{refused.why}")
    return JSONResponse({"error": str(leak.data["text"]) if leak else refused.error}, refused.status)


def _payer(house: GeneratedSite, request: Request) -> str:
    """The address that signed; the token switch lets one kind of bad token pass."""
    plan, token = house.blueprint, request.headers.get(house.blueprint.header, "")
    loose = house.on("token-taken")
    parts = token.split(":")
    named = parts[0].lower() if len(parts[0]) == 42 and parts[0].startswith("0x") else ""
    if loose and loose.kind == "unsigned" and not token:
        return ANONYMOUS
    if loose and named and loose.kind == "truncated" and (len(parts) < 3 or len(parts[2]) < 132):
        return named
    if loose and named and loose.kind == "foreign" and len(parts) == 3 and len(parts[2]) == 132:
        return named
    freshness = 10**9 if loose and loose.kind == "stale" else plan.lifetime_s
    try:
        now = house.clock.now().timestamp()
        return verify(token, scope=plan.scope, route=plan.route, now=now, freshness_s=freshness)
    except BadToken as error:
        raise CallRefusal(401, str(error), "token") from None


async def _turn(house: GeneratedSite, request: Request, raw: bytes, payer: str) -> AgentMessage:
    body = _body(raw)
    message = _message(house, body)
    agent = body.get("agent")
    if not isinstance(agent, str) or not is_name(agent) or await house.chain.id_of_name(agent) == 0:
        raise CallRefusal(404, "there is no such agent", "agent")
    owner = await house.chain.owner_of_name(agent)
    spoofed = house.on("caller-spoofed")
    caller = payer
    if spoofed:
        claimed = (
            request.headers.get(spoofed.place, "") if spoofed.kind == "header" else body.get(spoofed.place)
        )
        caller = clean_text(str(claimed))[:64].lower() if claimed else payer
    return AgentMessage(agent, owner, caller, message)


def _body(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw) if len(raw) <= MAX_BODY else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise CallRefusal(400, "the body is not a JSON object", "json")
    return body


def _message(house: GeneratedSite, body: dict[str, Any]) -> str:
    contents = body.get("contents")
    last = contents[-1] if isinstance(contents, list) and contents else None
    parts = last.get("parts") if isinstance(last, dict) else None
    texts = [one.get("text") for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []
    message = clean_text("\n".join(text for text in texts if isinstance(text, str)))
    if not message.strip():
        raise CallRefusal(400, "contents hold no text", "contents")
    if len(message) > house.blueprint.longest:
        raise CallRefusal(
            400, f"a message has at most {house.fact('refused-length', 'longest')} characters", "length"
        )
    return message


async def _charge(house: GeneratedSite, payer: str, turn: AgentMessage, stream: bool) -> None:
    wei, over = house.blueprint.price_wei, house.on("overcharge")
    now = house.clock.monotonic()
    before, when = house.sent.get(payer, ("", 0.0))
    house.sent[payer] = (turn.message, now)
    more = (
        over is not None
        and {
            "again": before == turn.message and now - when < AGAIN_S,
            "long": len(turn.message) > int(over.data.get("over", 0)),
            "stream": stream,
            "foreign": not turn.message.isascii(),
        }[over.kind]
    )
    try:
        await house.chain.meter(payer, wei * (int(over.data["times"]) if over and more else 1))
    except TxFailed as error:
        raise CallRefusal(402, f"the charge failed: {error}", "credit") from None


def _document(said: Said, turn: AgentMessage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": n, "args": {"value": a}}} for n, a in said.tools]
    parts += [{"text": said.text}] if said.text else []
    return _shape(parts, "STOP") | {"caller": turn.caller, "turns": said.turns}


def _shape(parts: list[dict[str, Any]], finish: str = "") -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


async def _events(house: GeneratedSite, said: Said, turn: AgentMessage) -> AsyncIterator[bytes]:
    """The same answer in pieces; the last event has the finish reason and the totals."""
    broken = house.on("stream-edge")
    kind = broken.kind if broken else ""
    for name, argument in said.tools:
        yield _event(_shape([{"functionCall": {"name": name, "args": {"value": argument}}}]))
    pieces = [said.text[at : at + WIDTH] for at in range(0, len(said.text), WIDTH)]
    if kind == "cut":
        raw, width = said.text.encode(), int(broken.data["width"] if broken else WIDTH)
        pieces = [raw[at : at + width].decode("utf-8", "surrogateescape") for at in range(0, len(raw), width)]
    if kind == "order" and len(pieces) > 2:
        pieces[1], pieces[2] = pieces[2], pieces[1]
    if kind == "short" and len(pieces) > 3:
        pieces = pieces[:-1]
    for piece in pieces:
        yield _event(_shape([{"text": piece}]))
    if kind != "endless":
        yield _event(_shape([], "STOP") | {"caller": turn.caller, "turns": said.turns})


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n\n"
