"""One agent turn, by the wire that the profile says the agent speaks, and its cost: through the proxy under a
throwaway identity of the run, or as one of the profile's accounts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox import http, strict_json
from sandbox.agents import call_request
from sandbox.agents.sse import Decoder, StreamFault
from sandbox.agents.wires import a2a, wire_of
from sandbox.agents.wires.a2a import A2aWire
from sandbox.agents.wires.port import GIVEN, LISTS, AgentWire, ReplyParts, Spoken
from sandbox.chain import rpc
from sandbox.chain.names import require_name
from sandbox.errors import Deadline, Failure, hint
from sandbox.spec import ABSENT, Context, Cost, Effect, Impact, Mistake, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

KEY, OTHER = call_request.CALLERS
MAX_REPLY, MAX_CARD = 4_000, 32_000
PUSH_S = 1.0
"""[s] For a push to arrive after its task has ended."""
PAYMENT_REQUIRED = 402
THEN = ("", "get", "list", "cancel", "push", "extended")
WHO = ("", OTHER, "nobody")
POLLS_S = (0.2, 0.4, 0.8, 1.5, 2.0, 2.0, 3.0, 3.0, 4.0)
"""Pauses between looks at a task that is not done."""


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
    card: bool = False
    """A2A: whether the agent's card is read first."""
    running: bool = False
    """A2A: whether the answer does not wait until the task is done."""
    then: str = ""
    """A2A: what is asked about the task that the call made: `get`, `list`, `cancel`, or `push`, to have its
    changes sent to a URL; or the `extended` card of the agent."""
    then_as: str = ""
    """Who asks that: "" the caller, `other`, or `nobody`, without a token."""
    version: str = ""
    """A2A: version that the request names; "": the wire's own."""
    push_to: str = ""
    """A2A: URL that the changes of a task are to be sent to, by the message itself unless `then` is `push`;
    "": one that resolves nowhere."""
    given: str = ""
    """A text that is handed over beside the message: the result of a tool of the caller's (chat), or an
    earlier task that the message refers to (A2A)."""


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
    wire: str = ""
    """How the agent is called, in the words of `[agents]`; "" through the proxy."""
    code: int = 0
    """Code of a JSON-RPC error; 0 for none."""
    state: str = ""
    """A2A: state of the task that the call made; "" for none."""
    card_status: int | None = field(default=None, metadata=ABSENT)
    """HTTP status of the agent's card; absent where it was not read."""
    declares: tuple[str, ...] = ()
    """What the card says that the agent can do."""
    then_ok: bool = False
    """Whether what followed was answered with that very task, or as asked."""
    then_state: str = ""
    """State of the task in that answer."""
    then_code: int = 0
    """Why it was refused: code of JSON-RPC, or HTTP status."""
    unknown_code: int = 0
    """The same of a task that does not exist, to the same asker."""
    state_after: str = ""
    """State of the task at last, as its own caller is told."""
    examples: tuple[str, ...] = ()
    """Messages that the card gives as examples of its skills."""
    card_text: str = ""
    """The agent's card in ASCII, if it is signed."""
    card_keys: str = ""
    """The keys that its signatures name, if they are on its own host."""
    heard: tuple[str, ...] = ()
    """Words of `{listener}` in the arguments that the platform asked for meanwhile."""


def run(args: Args, ctx: Context) -> Result:
    require_name(args.target, "/args/target")
    deadline = Deadline(ctx.deadline_s * 0.9)
    call_request.checked(args.caller, args.token, args.fill, args.claim_fields, args.claim_headers)
    wire = wire_of(args.target, args.caller, ctx, deadline)
    if wire.header.lower() in args.claim_headers:
        raise Mistake("/args/claim_headers: the token's own header is not one for a false sender")
    tasks = _tasks(args, wire)
    call = _Call(args, wire, deadline, wire.sender(args.claim_from, args.target))
    if args.given and GIVEN in wire.LACKS:
        raise Mistake(f"/args/given: {wire.LACKS[GIVEN]}")
    if args.given and tasks:
        call.refer()
    declares = _declared(tasks, deadline) if tasks and args.card else {}
    before = wire.credit(args.caller)
    reply = call.send()
    if reply.status == PAYMENT_REQUIRED and args.fund and wire.fund(args.caller):
        before = wire.credit(args.caller)
        reply = call.send()
    after = wire.credit(args.caller)
    again = call.send(again=True) if args.twice else None
    said = call.answer(reply)
    asks = args.then and (said.parts.task or args.then == "extended")
    seen = _followed(args, call, tasks, said.parts) if tasks and asks else {}
    if args.push_to:
        _let_push(call, tasks, said.parts)
    more: dict[str, Any] = {"wire": ctx.agents.get(args.target, {}).get("wire", ""), **declares, **seen}
    return replace(_result(call, reply, said, again, before=before, after=after), **more)


def _tasks(args: Args, wire: AgentWire) -> A2aWire | None:
    """The wire, if it has tasks; Mistake for what only such a wire has."""
    if args.then not in THEN or args.then_as not in WHO or not args.version.isprintable():
        raise Mistake(
            f"/args/then: expected one of {', '.join(THEN[1:])}; /args/then_as: {', '.join(WHO[1:])}"
        )
    if isinstance(wire, A2aWire):
        if args.then == "list" and LISTS in wire.LACKS:
            raise Mistake(f"/args/then: {wire.LACKS[LISTS]}")
        return wire
    if args.then or args.card or args.running or args.version or args.push_to:
        raise Mistake("/args: then, card, running, version and push_to are for agents that speak A2A")
    return None


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came back: its documents, what is wrong with their framing, and what they say together."""

    documents: Sequence[object]
    fault: str
    parts: ReplyParts
    streamed: bool


class _Call:
    """One request, and the credits that it may cost."""

    def __init__(self, args: Args, wire: AgentWire, deadline: Deadline, claimed: str) -> None:
        self.args, self.wire, self.claimed, self.deadline = args, wire, claimed, deadline
        fields = args.claim_fields if args.claim_fields or args.claim_headers else ("from",)
        self.spoken = Spoken(
            target=args.target,
            message=call_request.spoken(args.message, args.fill, args.unit),
            caller=args.caller,
            token="none" if args.unsigned else args.token,
            stream=args.stream,
            claimed=claimed,
            claim_fields=fields if claimed else (),
            claim_headers=args.claim_headers,
            raw=args.raw,
            running=args.running,
            version=args.version,
            push_to=args.push_to,
            given=args.given,
        )
        self._request = http.HttpRequest("POST", "")
        self.stranger_before = self.stranger_credit()

    def send(self, *, again: bool = False) -> http.HttpReply:
        """Send the request with a fresh token, or the one before once more as it was."""
        if not again:
            self._request = self.wire.request(self.spoken)
        reply = sent(self._request, self.deadline)
        self.wire.check(reply)
        return reply

    def refer(self) -> None:
        """Hand in what is given as a task that the message refers to; Failure where none is made."""
        spoken = self.spoken
        self.spoken = replace(spoken, message=spoken.given, stream=False)
        task = self.answer(self.send()).parts.task
        if not task:
            raise Failure("http", "a text makes no task here that a message could refer to")
        self.spoken = replace(spoken, refers=task)

    def answer(self, reply: http.HttpReply) -> _Answer:
        """A reply as the wire reads it; where the agent is still at work, once it is done."""
        streamed = self.spoken.stream and reply.status < 400
        documents, fault = _stream(reply) if streamed else _document(reply)
        if fault and streamed and (whole := _document(reply)[0]) and self.wire.read(whole).refused:
            documents, fault, streamed = whole, "", False  # a refusal needs no stream
        said = self.wire.read(documents)
        for pause in POLLS_S:
            if (more := self.wire.follow(said, self.spoken)) is None or self.deadline.left() < pause * 2:
                break
            time.sleep(pause)
            documents, fault = _document(sent(more, self.deadline))
            said = self.wire.read(documents)
        return _Answer(documents, fault, said, streamed)

    def stranger_credit(self) -> int:
        """The credit of a claimed sender that is an identity of this run; nothing else spends it."""
        label = self.args.claim_from
        ours = label in call_request.CALLERS and label != self.args.caller and self.wire.identity(label)
        return self.wire.credit(label) if ours else 0


def sent(request: http.HttpRequest, deadline: Deadline) -> http.HttpReply:
    """The platform's reply; Failure for the broker's."""
    reply = http.send(request, deadline)
    if reply.by_broker:
        raise rpc.denial(reply)
    return reply


# Tasks of A2A -------------------------------------------------------------------------------------


def _declared(wire: A2aWire, deadline: Deadline) -> dict[str, Any]:
    request = wire.card()
    reply = sent(request, deadline)
    documents, _ = _document(reply) if reply.status == 200 else ([], "")
    card = documents[0] if documents else None
    where = a2a.keys_at(card, request.target)
    keys = sent(http.HttpRequest("GET", where), deadline) if where else None
    signed = isinstance(card, dict) and bool(card.get("signatures")) and len(reply.body) <= MAX_CARD
    return {
        "card_status": reply.status,
        "declares": tuple(clean(one, 40) for one in a2a.declared(card)),
        "examples": tuple(clean(one, 400) for one in a2a.examples(card)),
        "card_text": json.dumps(card) if signed else "",
        "card_keys": clean(decode(keys.body), MAX_CARD)
        if keys and keys.status == 200 and len(keys.body) <= MAX_CARD
        else "",
    }


def _followed(args: Args, call: _Call, wire: A2aWire, made: ReplyParts) -> dict[str, Any]:
    """What is asked about a task, beside the same about one that does not exist, and the task at last."""
    asker = replace(
        call.spoken,
        caller=args.then_as if args.then_as == OTHER else args.caller,
        token="none" if args.then_as == "nobody" else "good",
        stream=False,
        claimed="",
        claim_headers=(),
    )

    def ask(what: str, task: str, spoken: Spoken) -> tuple[list[object], ReplyParts, int]:
        reply = sent(wire.about(what, task, spoken), call.deadline)
        documents, _ = _document(reply)
        said = wire.read(documents)
        return documents, said, said.code or (reply.status if reply.status >= 400 else 0)

    documents, said, code = ask(args.then, made.task, asker)
    done = said.task == made.task if args.then in ("get", "cancel") else not code and bool(documents)
    if args.then == "extended":
        return {"then_ok": done and a2a.is_card(documents[0]), "then_code": code}
    unknown = ask(args.then, a2a.UNKNOWN_TASK, asker)[2] if args.then in ("get", "cancel") else 0
    own = replace(asker, caller=args.caller, token=call.spoken.token)
    return {
        "then_ok": made.task in a2a.listed(documents) if args.then == "list" else done,
        "then_state": clean(said.state, 40),
        "then_code": code,
        "unknown_code": unknown,
        "state_after": clean(ask("get", made.task, own)[1].state, 40),
    }


def _let_push(call: _Call, wire: A2aWire | None, made: ReplyParts) -> None:
    """Wait until a task has ended, and a moment for what is sent of that."""
    asker = replace(call.spoken, running=False, stream=False)
    for pause in POLLS_S if wire and made.task and made.state not in a2a.ENDED else ():
        if call.deadline.left() < pause * 2 + PUSH_S:
            break
        time.sleep(pause)
        if (
            wire
            and wire.read(_document(sent(wire.about("get", made.task, asker), call.deadline))[0]).state
            in a2a.ENDED
        ):
            break
    time.sleep(PUSH_S)


def _result(
    call: _Call,
    reply: http.HttpReply,
    answer: _Answer,
    again: http.HttpReply | None,
    *,
    before: int,
    after: int,
) -> Result:
    args, wire, said, fault = call.args, call.wire, answer.parts, answer.fault
    failed = reply.status >= 400 or bool(said.refused)
    streamed = answer.streamed and not failed
    if streamed and not fault:
        fault = "half of a character in an event" if said.halves else ""
        fault = fault or ("" if said.finish else "the stream ends without a finish reason")
    nonsense = not failed and not streamed and not said.shaped
    text = said.text if said.shaped else decode(reply.body)
    refused = said.refused if reply.status < 400 else ""
    error = (refused or f"HTTP {reply.status}: {_reason(answer.documents, reply)}") if failed else fault
    return Result(
        ok=not (failed or fault or nonsense),
        latency_ms=reply.latency_ms,
        error=clean(mask(wire.hide(error or ("not an answer of an agent" if nonsense else "")))[0]),
        error_class="http" if failed else "garbage" if fault or nonsense else "",
        hint=hint(reply.status, text) if failed else "",
        reply=clean(mask(wire.hide(text))[0], MAX_REPLY),
        status=reply.status,
        charged=before - after,
        caller=clean(said.caller, 100),
        tool_calls=tuple(clean(name, 64) for name in said.tools),
        finish_reason=clean(said.finish or said.state, 40),
        turns=said.turns,
        stream_ok=streamed and not fault,
        stream_error=clean(fault, 200) if streamed else "",
        events=len(answer.documents) if streamed else 0,
        address=wire.identity(args.caller),
        empty=said.shaped and not (failed or said.text or said.tools or said.more),
        claimed=clean(call.claimed, 100),
        charged_claimed=call.stranger_before - call.stranger_credit(),
        status_again=again.status if again else 0,
        error_again=_error_again(again),
        charged_again=after - wire.credit(args.caller) if again else 0,
        advertised_wei=next(
            (wei for wei in map(call_request.advertised, answer.documents) if wei is not None), None
        ),
        terms=call_request.terms(reply),
        credit=str(before),
        code=said.code,
        state=clean(said.state, 40),
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


def _reason(documents: Sequence[object], reply: http.HttpReply) -> str:
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
    "talk to an agent",
    run,
    needs=("calls",),
    group="agent",
    batches=True,
    acts_on="",
    impacts={
        "": Impact(8, 6, 7, "a turn of an agent, paid from its free credit", "what an agent remembers stays"),
        "attack": Impact(
            5,
            5,
            6,
            "what steers an agent: orders, tools that change something, another's identity",
            "what an agent remembers stays",
        ),
    },
    points_at={"target": Points.AGENT},
    reaches="proxy",
    needs_key=KEY,
    signs_in=True,
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
    | {"advertised_wei", "credit", "wire", "code", "card", "running", "then", "then_as", "version", "state"}
    | {"card_status", "declares", "then_ok", "then_state", "then_code", "unknown_code", "state_after"}
    | {"push_to", "given", "heard", "examples", "card_text", "card_keys"},
    volatile=VOLATILE
    | {"address", "caller", "charged", "claimed", "charged_claimed", "charged_again", "credit", "terms"},
)
