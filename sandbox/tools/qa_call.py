"""One agent turn through the proxy under the run's throwaway identity, and its cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from sandbox import abi, agent_reply, http, rpc, strict_json
from sandbox.contract import CLAIM_DAILY
from sandbox.errors import Deadline, Failure, JailBroken, hint
from sandbox.gas import limit
from sandbox.names import require_name
from sandbox.spec import Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.sse import Decoder, StreamFault
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

KEY = "caller"
MAX_REPLY = 4_000
PAYMENT_REQUIRED = 402
UNAUTHORIZED = 401
SKEW_S = 60.0
"""Seconds; the platform may refuse a token that is off by more."""


@dataclass(frozen=True, slots=True)
class Args:
    """`claim_from` is put into the body as a false sender; `raw` is sent verbatim instead of a valid body.

    With `fund`, a 402 is answered once: claim the daily credit and call again. `unsigned` leaves the
    caller's token out.
    """

    target: str
    message: str
    claim_from: str = ""
    stream: bool = False
    fund: bool = True
    raw: str = ""
    unsigned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`charged` is creditOf before minus after, in wei, 0 on a platform without credits; `caller` is the
    sender by the platform's account.

    `stream_ok` is true for a stream with valid framing, UTF-8, JSON and finish reason.
    """

    reply: str = ""
    status: int = 0
    charged: int = 0
    caller: str = ""
    tool_calls: tuple[str, ...] = ()
    finish_reason: str = ""
    turns: int = 0
    stream_ok: bool = False
    stream_error: str = ""
    events: int = 0
    address: str = ""


def run(args: Args, ctx: Context) -> Result:
    require_name(args.target, "/args/target")
    if not ctx.call_url:
        raise Mistake("/tool: the profile does not say how agents are called here")
    if KEY not in ctx.keys:
        raise JailBroken("this run has no caller key")
    deadline = Deadline(ctx.deadline_s * 0.9)
    before = _credit(ctx, deadline)
    reply = _send(args, ctx, deadline)
    if reply.status == PAYMENT_REQUIRED and args.fund and "claimDaily" not in ctx.lacks:
        _claim(ctx, deadline)
        before = _credit(ctx, deadline)
        reply = _send(args, ctx, deadline)
    return _result(args, ctx, reply, charged=before - _credit(ctx, deadline))


def _send(args: Args, ctx: Context, deadline: Deadline) -> http.HttpReply:
    """Send one request with a fresh token: a stale one is never sent."""
    token = "" if args.unsigned else rpc.token(KEY, ctx.route, deadline)
    headers = {"content-type": "application/json"} | ({ctx.token_header: token} if token else {})
    url = http.absolute(ctx.stream_url if args.stream else ctx.call_url, "/ctx/proxy")
    reply = http.send(http.HttpRequest("POST", url, headers, _body(args), encodings="identity"), deadline)
    if reply.by_broker:
        raise rpc.denial(reply)
    if token and reply.status == UNAUTHORIZED and abs(off := _skew(token, reply)) > SKEW_S:
        raise Failure("internal", f"our clock and the platform's are {off:+.0f} s apart", status=reply.status)
    return reply


def _skew(token: str, reply: http.HttpReply) -> float:
    """Seconds from the platform's clock, by its Date header, to the token's clock; 0 if unknown."""
    try:
        return int(token.split(":")[1]) - parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
    except (ValueError, IndexError, OverflowError):
        return 0.0


def _body(args: Args) -> bytes:
    if args.raw:
        return args.raw.encode()
    claim = {"from": args.claim_from} if args.claim_from else {}
    contents = [{"role": "user", "parts": [{"text": args.message}]}]
    return json.dumps({"agent": args.target, "contents": contents, **claim}).encode()


def _claim(ctx: Context, deadline: Deadline) -> None:
    receipt = rpc.submit(KEY, ctx.diamond, abi.encode_call(CLAIM_DAILY, ()), limit(ctx, "small"), deadline)
    if receipt.status != 1:
        raise Failure("reverted", f"claimDaily failed: {receipt.reverted or 'status 0'}")


def _credit(ctx: Context, deadline: Deadline) -> int:
    """The caller's credit; if unreadable, the call fails: `charged` is never a guess."""
    if "creditOf" in ctx.lacks:
        return 0
    (credit,) = rpc.view(ctx, "creditOf", ctx.keys[KEY], deadline=deadline)
    return int(str(credit))


def _result(args: Args, ctx: Context, reply: http.HttpReply, *, charged: int) -> Result:
    failed = reply.status >= 400
    streamed = args.stream and not failed
    documents, fault = _stream(reply) if streamed else _document(reply)
    said = agent_reply.read(documents)
    if streamed and not fault and not said.finish:
        fault = "the stream ends without a finish reason"
    nonsense = not failed and not streamed and not said.shaped
    text = said.text if said.shaped else decode(reply.body)
    error = f"HTTP {reply.status}: {_reason(documents, reply)}" if failed else fault
    return Result(
        ok=not (failed or fault or nonsense),
        latency_ms=reply.latency_ms,
        error=clean(mask(error or ("not an answer of an agent" if nonsense else ""))[0]),
        error_class="http" if failed else "garbage" if fault or nonsense else "",
        hint=hint(reply.status, text) if failed else "",
        reply=clean(mask(text)[0], MAX_REPLY),
        status=reply.status,
        charged=charged,
        caller=clean(said.caller, 100),
        tool_calls=tuple(clean(name, 64) for name in said.tools),
        finish_reason=clean(said.finish, 40),
        turns=said.turns,
        stream_ok=streamed and not fault,
        stream_error=clean(fault, 200) if streamed else "",
        events=len(documents) if streamed else 0,
        address=ctx.keys[KEY],
    )


def _stream(reply: http.HttpReply) -> tuple[list[object], str]:
    if reply.content_type.partition(";")[0].strip().lower() != "text/event-stream":
        return [], f"content type {clean(reply.content_type, 60)!r} is not an event stream"
    decoder = Decoder()
    try:
        decoder.feed(reply.body)
        decoder.close()
    except StreamFault as fault:
        return decoder.events, str(fault)
    return decoder.events, ""


def _document(reply: http.HttpReply) -> tuple[list[object], str]:
    try:
        return [strict_json.loads(reply.body)], ""
    except ValueError:
        return [], "" if reply.status >= 400 else "an answer that is not JSON"


def _reason(documents: list[object], reply: http.HttpReply) -> str:
    first = documents[0] if documents else None
    error = first.get("error") if isinstance(first, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) else decode(reply.body)[:200]


SPEC = ToolSpec(
    "qa_call",
    Args,
    Result,
    Effect.ACT,
    Cost(calls=1, writes=1),
    "talk to an agent through the proxy",
    run,
    needs=("proxy", "calls"),
    group="agent",
    batches=True,
    acts_on="",
    points_at={"target": Points.AGENT},
    reaches="proxy",
    needs_key=KEY,
    asks=("a call of {target}",),
    ends_in="status",
    judged_as=("reply",),
    public=PUBLIC
    | {
        "target",
        "message",
        "claim_from",
        "stream",
        "fund",
        "raw",
        "unsigned",
        "reply",
        "status",
        "charged",
        "caller",
    }
    | {"tool_calls", "finish_reason", "turns", "stream_ok", "stream_error", "events", "address"},
    volatile=VOLATILE | {"address", "caller", "charged"},
)
