"""One agent turn through the proxy under a throwaway identity of the run, and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from sandbox import abi, agent_reply, call_request, call_terms, http, rpc, strict_json
from sandbox.contract import CLAIM_DAILY
from sandbox.errors import Deadline, Failure, JailBroken, hint
from sandbox.gas import limit
from sandbox.names import require_name
from sandbox.spec import Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.sse import Decoder, StreamFault
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
    """`claim_from` is a false sender: an address, the label of an identity, or `owner` for the agent's owner.
    It is put into the body as `from`, or where `claim_fields` and `claim_headers` say.

    `raw` is sent verbatim instead of a valid body. With `fund`, a 402 is answered once: claim the daily
    credit and call again. `unsigned` leaves the caller's token out, as `token = "none"` does; the tokens are
    those of call_request.TOKENS. `twice` sends the very same request again. `fill` characters of the
    repeated `unit` follow the message. `caller` is `caller` or `other`, two identities of the run.
    """

    target: str
    message: str
    claim_from: str = ""
    stream: bool = False
    fund: bool = True
    raw: str = ""
    unsigned: bool = False
    caller: str = KEY
    token: str = "good"
    twice: bool = False
    claim_fields: tuple[str, ...] = ()
    claim_headers: tuple[str, ...] = ()
    fill: int = 0
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`charged` is creditOf before minus after, in wei, 0 on a platform without credits; `caller` is the
    sender by the platform's account.

    `stream_ok` is true for a stream with valid framing, UTF-8, JSON and finish reason. `empty`: an answer
    without text and without a tool call. `claimed` is the false sender as it was sent, `charged_claimed` what
    the call cost it if it is an identity of this run. `status_again`, `error_again` and `charged_again` are
    those of a request sent twice. `advertised_wei` is the cost by the answer's own word, `terms` are its
    headers about limits and costs. `credit` is the caller's before the call, in digits: it may be more
    wei than an expectation can count.
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
    empty: bool = False
    claimed: str = ""
    charged_claimed: int = 0
    status_again: int = 0
    error_again: str = ""
    charged_again: int = 0
    advertised_wei: int = 0
    terms: tuple[str, ...] = ()
    credit: str = ""


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
        advertised_wei=next(filter(None, map(call_terms.advertised, documents)), 0),
        terms=call_terms.of(reply),
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
    | {"tool_calls", "finish_reason", "turns", "stream_ok", "stream_error", "events", "address"}
    | {"token", "twice", "claim_fields", "claim_headers", "fill", "unit", "empty", "claimed", "terms"}
    | {"charged_claimed", "status_again", "error_again", "charged_again", "advertised_wei", "credit"},
    volatile=VOLATILE
    | {"address", "caller", "charged", "claimed", "charged_claimed", "charged_again", "credit", "terms"},
)
