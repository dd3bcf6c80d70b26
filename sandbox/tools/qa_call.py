"""One agent turn through the proxy under a throwaway identity of the run, and its cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from sandbox import http, strict_json
from sandbox.agents import agent_reply, call_request
from sandbox.agents.sse import Decoder, StreamFault
from sandbox.chain import abi, rpc
from sandbox.chain.contract import CLAIM_DAILY
from sandbox.chain.gas import limit
from sandbox.chain.names import require_name
from sandbox.errors import Deadline, Failure, JailBroken, hint
from sandbox.spec import ABSENT, Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

KEY, OTHER = call_request.CALLERS
MAX_REPLY = 4_000
PAYMENT_REQUIRED = 402
UNAUTHORIZED = 401
SKEW_S = 60.0
"""Seconds; the platform may refuse a token that is off by more."""


@dataclass(frozen=True, slots=True)
class Args:
    target: str
    """Agent to talk to: a listed one, or a name of this run."""
    message: str
    """What is said."""
    claim_from: str = ""
    """A false sender: an address, the label of an identity, or `owner` for the agent's owner."""
    stream: bool = False
    """Whether an event stream is asked for."""
    fund: bool = True
    """Whether a 402 is answered once by claiming the daily credit."""
    raw: str = ""
    """Body that is sent verbatim instead of a valid one."""
    unsigned: bool = False
    """Whether the caller's token is left out."""
    caller: str = KEY
    """Who calls: `caller` or `other`, two identities of the run."""
    token: str = "good"
    """The token: `good`, `none`, or a bad kind of call_request.TOKENS."""
    twice: bool = False
    """Whether the very same request is sent again."""
    claim_fields: tuple[str, ...] = ()
    """Where in the body the false sender stands."""
    claim_headers: tuple[str, ...] = ()
    """In which headers the false sender stands."""
    fill: int = 0
    """Characters of the repeated `unit` that follow the message."""
    unit: str = ""
    """Text that fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    reply: str = ""
    """The agent's text."""
    status: int = 0
    """HTTP status."""
    charged: int = 0
    """[wei] creditOf before minus after; 0 on a platform without credits."""
    caller: str = ""
    """The sender by the platform's account."""
    tool_calls: tuple[str, ...] = ()
    """Names of the tools that the agent called."""
    finish_reason: str = ""
    """Why the answer ended, in the platform's word."""
    turns: int = 0
    """Turns of the agent."""
    stream_ok: bool = False
    """Whether the stream had valid framing, UTF-8, JSON and finish reason."""
    stream_error: str = ""
    """What was wrong with the stream."""
    events: int = 0
    """Events of the stream."""
    address: str = ""
    """Address of the caller's key."""
    empty: bool = False
    """Whether the answer has neither text nor tool call."""
    claimed: str = ""
    """The false sender as it was sent."""
    charged_claimed: int = 0
    """[wei] What the call cost the false sender, if it is an identity of this run."""
    status_again: int = 0
    """HTTP status of the second request."""
    error_again: str = ""
    """Error of the second request."""
    charged_again: int = 0
    """[wei] What the second request cost."""
    advertised_wei: int | None = field(default=None, metadata=ABSENT)
    """[wei] Cost by the answer's own word; absent where it does not say."""
    terms: tuple[str, ...] = ()
    """Headers of the answer about limits and costs."""
    credit: str = ""
    """[wei] The caller's credit before the call, in digits: it may be more than an int holds."""


def run(args: Args, ctx: Context) -> Result:
    require_name(args.target, "/args/target")
    if not ctx.call_url:
        raise Mistake("/tool: the profile does not say how agents are called here")
    call_request.checked(
        args.caller, args.token, args.fill, args.claim_fields, args.claim_headers, ctx.token_header
    )
    if args.caller not in ctx.keys:
        raise JailBroken(f"this run has no {args.caller} key")
    deadline = Deadline(ctx.deadline_s * 0.9)
    call = _Call(args, ctx, deadline, call_request.claimed(args.claim_from, args.target, ctx, deadline))
    before = call.credit()
    reply = call.send()
    if reply.status == PAYMENT_REQUIRED and args.fund and "claimDaily" not in ctx.lacks:
        _claim(args.caller, ctx, deadline)
        before = call.credit()
        reply = call.send()
    after = call.credit()
    again = call.send(again=True) if args.twice else None
    return _result(call, reply, again, before=before, after=after)


class _Call:
    """One request, and the credits that it may cost."""

    def __init__(self, args: Args, ctx: Context, deadline: Deadline, claimed: str) -> None:
        self.args, self.ctx, self.claimed = args, ctx, claimed
        self._deadline, self._request = deadline, http.HttpRequest("POST", "")
        self._token = ""
        self.stranger_before = self.stranger_credit()

    def send(self, *, again: bool = False) -> http.HttpReply:
        """Send the request with a fresh token, or the one before once more as it was."""
        if not again:
            self._request = self._written()
        reply = http.send(self._request, self._deadline)
        if reply.by_broker:
            raise rpc.denial(reply)
        off = _skew(self._token, reply) if self.args.token == "good" and self._token else 0.0
        if reply.status == UNAUTHORIZED and abs(off) > SKEW_S:
            raise Failure(
                "internal", f"our clock and the platform's are {off:+.0f} s apart", status=reply.status
            )
        return reply

    def _written(self) -> http.HttpRequest:
        args, ctx = self.args, self.ctx
        variant = "none" if args.unsigned else args.token
        self._token = token = call_request.token(variant, args.caller, ctx, self._deadline)
        headers = {"content-type": "application/json"} | ({ctx.token_header: token} if token else {})
        headers |= dict.fromkeys(args.claim_headers, self.claimed) if self.claimed else {}
        fields = args.claim_fields if args.claim_fields or args.claim_headers else ("from",)
        message = call_request.spoken(args.message, args.fill, args.unit)
        body = call_request.body(args.target, message, self.claimed, fields if self.claimed else ())
        url = http.absolute(ctx.stream_url if args.stream else ctx.call_url, "/ctx/proxy")
        return http.HttpRequest(
            "POST", url, headers, args.raw.encode() if args.raw else body, encodings="identity"
        )

    def credit(self) -> int:
        """The caller's credit; if unreadable, the call fails: `charged` is never a guess."""
        return self._credit(self.ctx.keys[self.args.caller])

    def stranger_credit(self) -> int:
        """The credit of a claimed sender that is an identity of this run; nothing else spends it."""
        label = self.args.claim_from
        ours = label in call_request.CALLERS and label != self.args.caller and label in self.ctx.keys
        return self._credit(self.ctx.keys[label]) if ours else 0

    def _credit(self, address: str) -> int:
        if "creditOf" in self.ctx.lacks:
            return 0
        (credit,) = rpc.view(self.ctx, "creditOf", address, deadline=self._deadline)
        return int(str(credit))


def _skew(token: str, reply: http.HttpReply) -> float:
    """Seconds from the platform's clock, by its Date header, to the token's clock; 0 if unknown."""
    try:
        return int(token.split(":")[1]) - parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
    except (ValueError, IndexError, OverflowError):
        return 0.0


def _claim(label: str, ctx: Context, deadline: Deadline) -> None:
    receipt = rpc.submit(label, ctx.diamond, abi.encode_call(CLAIM_DAILY, ()), limit(ctx, "small"), deadline)
    if receipt.status != 1:
        raise Failure("unfunded", f"claimDaily failed: {receipt.reverted or 'status 0'}")


def _result(
    call: _Call, reply: http.HttpReply, again: http.HttpReply | None, *, before: int, after: int
) -> Result:
    args, ctx = call.args, call.ctx
    failed = reply.status >= 400
    streamed = args.stream and not failed
    documents, fault = _stream(reply) if streamed else _document(reply)
    said = agent_reply.read(documents)
    if streamed and not fault:
        fault = "half of a character in an event" if said.halves else ""
        fault = fault or ("" if said.finish else "the stream ends without a finish reason")
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
        charged=before - after,
        caller=clean(said.caller, 100),
        tool_calls=tuple(clean(name, 64) for name in said.tools),
        finish_reason=clean(said.finish, 40),
        turns=said.turns,
        stream_ok=streamed and not fault,
        stream_error=clean(fault, 200) if streamed else "",
        events=len(documents) if streamed else 0,
        address=ctx.keys[args.caller],
        empty=said.shaped and not (failed or said.text or said.tools),
        claimed=clean(call.claimed, 100),
        charged_claimed=call.stranger_before - call.stranger_credit(),
        status_again=again.status if again else 0,
        error_again=_error_again(again),
        charged_again=after - call.credit() if again else 0,
        advertised_wei=next(
            (wei for wei in map(call_request.advertised, documents) if wei is not None), None
        ),
        terms=call_request.terms(reply),
        credit=str(before),
    )


def _error_again(again: http.HttpReply | None) -> str:
    if again is None or again.status < 400:
        return ""
    return clean(mask(f"HTTP {again.status}: {_reason(_document(again)[0], again)}")[0], 300)


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
    lends={OTHER: OTHER, "foreign": OTHER},
    asks=("a call of {target}", " {unsigned:without a token}"),
    ends_in="status",
    judged_as=("reply",),
    example={"target": "{target:agent}", "message": "hello"},
    expects="result.status != 200 || result.reply != ''",
    public=PUBLIC
    | {"target", "message", "claim_from", "stream", "fund", "raw", "unsigned", "reply", "status"}
    | {"charged", "caller", "tool_calls", "finish_reason", "turns", "stream_ok", "stream_error"}
    | {"events", "address", "token", "twice", "claim_fields", "claim_headers", "fill", "unit", "empty"}
    | {"claimed", "terms", "charged_claimed", "status_again", "error_again", "charged_again"}
    | {"advertised_wei", "credit"},
    volatile=VOLATILE
    | {"address", "caller", "charged", "claimed", "charged_claimed", "charged_again", "credit", "terms"},
)
