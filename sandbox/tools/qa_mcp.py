"""One look at an MCP server, or one call of it: what it lists, a tool, a resource, a prompt.

What a server lists is written by strangers and read by models: marks that a person does not see, and secrets,
are looked for here, before they are cleaned away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from sandbox import http, strict_json
from sandbox.agents.handles import handle, handles, unlike
from sandbox.agents.mcp_wire import (
    CALL,
    CONTRADICTED,
    LISTS,
    NAME_OF,
    SERVER_INFO,
    SESSIONS,
    STATELESS,
    McpClient,
    McpReply,
)
from sandbox.errors import Deadline, Failure, hint
from sandbox.pages.endings import WITNESS, Ended, LockedOut, watched
from sandbox.pages.latency import get
from sandbox.spec import ABSENT, Context, Cost, Effect, Impact, Mistake, OneOf, Points, ToolSpec
from sandbox.text import KINDS, clean, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

METHODS = ("", CALL, "resources/read", "prompts/get")
CALLERS = ("", "one", "other", "invented")
STATES = ("own", "other", "altered")
ALIKE, USED_UP = "the other is answered as its maker", "the other used it up"
FOREIGN = ("none was handed out", "the other is refused", "the other is answered otherwise", ALIKE, USED_UP)
"""What became of a handle that another account shows; a refusal is also whoever shows one that nobody was
given being answered."""
HIDDEN = ("tag characters", "right-to-left overrides", "a run of invisible characters")
"""What a person does not see and a model reads."""
MAX_TEXT = 8_000
MAX_SENT = 65_536
"""Bytes of the arguments of a call."""
MAX_LISTED, MAX_VALUES, MAX_DEPTH = 200, 5_000, 12
"""Members of one list; values of all definitions together, and their levels."""
MAX_STRING = 4_000
CALL_S, ALIVE_S = 8.0, 3.5
"""Time for one call, and for the server to answer another request after it."""
_INVENTED = "qa-invented-token-0000000000"
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
"""A flag of a region, the one proper use of tag characters (Unicode TR 51)."""
_TAGS = re.compile("[\U000e0001-\U000e007f]")
_OVERRIDES = re.compile("[\u202d\u202e]")
_INVISIBLE = re.compile(
    "[\u200b\u2060-\u2064\ufeff]{6,}|[\u200b-\u200d\u2060-\u2064]{12,}|[\U000e0100-\U000e01ef]{4,}"
)
_CARRIED = re.compile(r"(?:header [A-Za-z0-9_.-]{1,64}(?: [A-Za-z]{1,20})?)?")


@dataclass(frozen=True, slots=True)
class Args:
    """Without `method`, everything that the server lists."""

    url: str
    """Endpoint of the server: one that the profile names under `[mcp]`."""
    method: str = ""
    """`tools/call`, `resources/read`, `prompts/get`; "": what the server is and what it lists."""
    name: str = ""
    """Tool or prompt, or the URI of a resource."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """What the tool or the prompt is given."""
    caller: str = ""
    """Who asks: "" nobody, `one` or `other` of the profile's accounts by their secret, `invented` by a token
    that nobody issued."""
    carried: str = ""
    """How the token is shown: `header NAME`, with a word before it as a third; "": a bearer token."""
    wire: str = ""
    """Protocol version to speak; "": the newest that the server has."""
    origin: str = ""
    """Sent as the Origin header."""
    relist: bool = False
    """Whether its tools are listed before and after the call, in the same session."""
    client: str = ""
    """How we name ourselves; "": `qa-fleet`."""
    contradicts: str = ""
    """A header that says something else than the body: `method` or `name` on the wire of 2026-07-28,
    `protocol-version` on both."""
    session_of: str = ""
    """Whose session the request shows, `one`'s, without a token or, for the caller `other`, with its own."""
    state: str = ""
    """How a call that asks for input goes on: with its `own` requestState, with the one that the `other`
    account was given for the same call, or with its own `altered`; "": not at all."""
    then: str = ""
    """A tool that is then given what the call handed out, by its maker and by the `other` account."""
    then_argument: str = ""
    """The argument that takes it."""
    then_arguments: dict[str, Any] = field(default_factory=dict)
    """Its other arguments."""
    listing: str = ""
    """A tool without arguments that lists what its caller has; asked by both as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means an answer that is neither a JSON-RPC error nor one of the tool."""

    status: int = 0
    """HTTP status."""
    wire: str = ""
    """Protocol version that was spoken."""
    server: str = ""
    """Its name and version, in its own words."""
    instructions: str = ""
    """What it tells every model."""
    tools: tuple[Any, ...] = ()
    """Its tools as it defines them, cleaned; so are the next three."""
    resources: tuple[Any, ...] = ()
    """Its resources."""
    templates: tuple[Any, ...] = ()
    """Its templates of resources."""
    prompts: tuple[Any, ...] = ()
    """Its prompts."""
    unlisted: tuple[str, ...] = ()
    """Lists that were refused or did not end."""
    cut: bool = False
    """Whether there was more than is kept."""
    hidden: tuple[str, ...] = ()
    """Which definitions hold text that a person does not see, and what."""
    secrets: tuple[Annotated[str, OneOf(KINDS)], ...] = ()
    """Kinds of secrets in the answer."""
    secret_at: tuple[str, ...] = ()
    """Which definitions hold them."""
    protected: bool = False
    """Whether the server's metadata says that it needs authorisation (RFC 9728)."""
    text: str = ""
    """Text of the answer."""
    structured: Any = field(default=None, metadata=ABSENT)
    """Structured content of a tool's answer; absent without one."""
    is_error: bool = False
    """Whether the tool says that it failed."""
    code: int = 0
    """Code of a JSON-RPC error; 0 for none."""
    changed: tuple[str, ...] = ()
    """Tools whose definition was another one after the call."""
    hung: bool = False
    """Whether the call had no answer in time, and the next request had one."""
    stalled: bool = False
    """Whether the call had no answer in time, nor had two other callers after it."""
    ended: bool = False
    """Whether the call had no answer, and for a while no other request, of others as well."""
    locked_out: bool = False
    """Whether we had no answer for a while, and nothing shows that others had none."""
    silent_ms: float = 0.0
    """[ms] How long there was none."""
    heard: tuple[str, ...] = ()
    """Words of `{listener}` in the arguments that the server asked for meanwhile."""
    asks_input: bool = False
    """Whether the tool asks for input before it goes on, and hands out a requestState."""
    handed: tuple[str, ...] = ()
    """Kinds of handles in the answer: their names, or `text`."""
    foreign: Annotated[str, OneOf(("", *FOREIGN))] = ""
    """What becomes of the handle when the other account shows it; "" where none was asked about."""
    listed: Annotated[str, OneOf(("", "maker", "both", "neither"))] = ""
    """Who is shown the handle in the list: `maker`, `both`, `neither`; "" where none was asked."""


def effect_of(args: Mapping[str, Any]) -> Effect:
    """A tool may do anything, whatever its server says of it: each call of one is an act."""
    return Effect.LOOK if args.get("method", "") in METHODS and args.get("method", "") != CALL else Effect.ACT


def run(args: Args, ctx: Context) -> Result:
    _checked(args)
    headers, secret = _headers(args, ctx)
    deadline = Deadline(ctx.deadline_s * 0.9)
    client = McpClient(http.absolute(args.url), headers, deadline, args.wire)
    client.name, client.contradicts = args.client or client.name, args.contradicts
    params: dict[str, Any] = {NAME_OF[args.method]: args.name} if args.method else {}
    if args.method in (CALL, "prompts/get"):
        params["arguments"] = args.arguments
    try:
        alone = args.method and args.wire == STATELESS  # a request of that wire needs no other before it
        opened = None if alone else client.open()
        if opened and opened.ok and args.session_of:
            client.headers = _headers(replace(args, session_of=""), ctx)[0]
            if not client.session:
                raise Mistake("/args/session_of: this server began no session")
        if opened and not opened.ok:
            result = replace(_refused(opened), protected=_protected(client))
        elif opened and not args.method:
            result = _described(client, opened)
        elif args.method == CALL:
            result = _called(client, params, relist=args.relist)
            if args.state and result.asks_input:
                result = _resumed(args, client, params, _other(args, ctx, client))
            elif args.then and result.ok:
                result = _handed_on(args, client, _other(args, ctx, client), result)
        else:
            result = _answered(client.ask(args.method, params))
        return _without(secret, replace(result, wire=client.wire))
    finally:
        client.close()


def _checked(args: Args) -> None:
    """Mistake for arguments that do not belong together."""
    if args.method not in METHODS or args.caller not in CALLERS or not _CARRIED.fullmatch(args.carried):
        raise Mistake("/args: expected `method`, `caller` and `carried` as documented")
    if args.wire not in ("", STATELESS, *SESSIONS):
        raise Mistake(f"/args/wire: expected one of {', '.join((STATELESS, *SESSIONS))}")
    if args.contradicts not in ("", *CONTRADICTED) or args.state not in ("", *STATES):
        raise Mistake("/args: expected `contradicts` and `state` as documented")
    if args.session_of not in ("", "one") or (args.session_of and args.caller not in ("", "other")):
        raise Mistake("/args/session_of: expected `one`, and no caller or `other`")
    if args.session_of and args.wire == STATELESS:
        raise Mistake("/args/session_of: this wire has no sessions")
    if args.method != CALL and (args.state or args.then):
        raise Mistake("/args: `state` and `then` are of calls of tools")
    if args.then and not args.then_argument:
        raise Mistake("/args/then_argument: expected with `then`")
    if not (args.client.isascii() and args.client.isprintable()):
        raise Mistake("/args/client: expected one printable ASCII line")
    if args.origin and not (args.origin.isascii() and args.origin.isprintable()):
        raise Mistake("/args/origin: expected one printable ASCII line")
    if bool(args.method) != bool(args.name) or len(args.name) > MAX_STRING:
        raise Mistake("/args/name: expected with a method, and only then")
    if len(json.dumps([args.arguments, args.then_arguments])) > MAX_SENT:
        raise Mistake(f"/args/arguments: more than {MAX_SENT} bytes")


def _headers(args: Args, ctx: Context) -> tuple[dict[str, str], str]:
    """What every request carries, and the secret in it."""
    sent = {"origin": args.origin} if args.origin else {}
    who = args.session_of or args.caller
    if not who:
        return sent, ""
    known = ctx.accounts.get(who, {}).get("secret", "")
    secret = _INVENTED if who == "invented" else known
    if not secret:
        raise Mistake(f"/args/caller: the profile names no account {who!r}")
    _, name, word = (*args.carried.split(), "", "")[:3] if args.carried else ("", "authorization", "Bearer")
    return sent | {name: f"{word} {secret}".strip()}, known


# What a server lists -------------------------------------------------------------------------------


def _described(client: McpClient, opened: McpReply) -> Result:
    said = opened.result or {}
    offered = said.get("capabilities")
    offered = offered if isinstance(offered, dict) else {}
    found: dict[str, list[Any]] = {}
    unlisted, last = list[str](), opened
    for kind in LISTS:
        if ("resources" if kind == "templates" else kind) not in offered:
            continue
        found[kind], reply, ended = client.listed(kind)
        if not reply.ok and kind != "templates":
            last = reply
            unlisted.append(f"{kind}: {reply.error or f'HTTP {reply.status}'}")
        elif not ended:
            unlisted.append(f"{kind}: the list does not end")
    whole = _Definitions()
    lists = {
        kind: tuple(whole.taken(kind, one) for one in found.get(kind, ())[:MAX_LISTED]) for kind in LISTS
    }
    meta = said.get("_meta")
    server = (meta if isinstance(meta, dict) else {}).get(SERVER_INFO, said.get("serverInfo"))
    named = [server.get("name"), server.get("version")] if isinstance(server, dict) else []
    instructions = whole.taken("instructions", {"name": "", "text": said.get("instructions", "")})
    return Result(
        ok=not unlisted,
        latency_ms=opened.latency_ms,
        error=f"not listed: {unlisted[0]}" if unlisted else "",
        error_class="http" if unlisted else "",
        status=last.status,
        server=clean(" ".join(str(one) for one in named if one), 100),
        instructions=str(instructions.get("text", "")),
        unlisted=tuple(clean(one, 200) for one in unlisted),
        cut=whole.cut or any(len(one) > MAX_LISTED for one in found.values()),
        hidden=tuple(dict.fromkeys(whole.hidden)),
        secrets=tuple(sorted(set(whole.secrets))),
        secret_at=tuple(dict.fromkeys(whole.secret_at)),
        protected=_protected(client),
        tools=lists["tools"],
        resources=lists["resources"],
        templates=lists["templates"],
        prompts=lists["prompts"],
    )


class _Definitions:
    """Definitions as they are kept: cleaned, masked, bounded together; and what was in them."""

    def __init__(self) -> None:
        self.hidden, self.secrets, self.secret_at = list[str](), list[str](), list[str]()
        self.cut = False
        self._left, self._at = MAX_VALUES, ""

    def taken(self, kind: str, one: object) -> dict[str, Any]:
        """One definition; empty for what is none."""
        if not isinstance(one, dict):
            return {}
        name = one.get("name") or one.get("uri") or one.get("uriTemplate") or ""
        self._at = clean(f"{kind.removesuffix('s')} {name}".strip(), 100)
        return {clean(str(key), 60): self._kept(value, MAX_DEPTH) for key, value in list(one.items())[:30]}

    def _kept(self, value: object, depth: int) -> Any:  # noqa: ANN401  any JSON
        self._left -= 1
        if depth == 0 or self._left < 0:
            self.cut = True
            return None
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(str(key))[:200]: self._kept(one, depth - 1) for key, one in value.items()}
        if isinstance(value, list):
            return [self._kept(one, depth - 1) for one in value]
        return value

    def _text(self, text: str) -> str:
        self.hidden += [f"{self._at}: {what}" for what in hidden_in(text)]
        shown, kinds = mask(text[: MAX_STRING * 2])
        self.secrets += kinds
        self.secret_at += [f"{self._at}: {kind}" for kind in kinds]
        self.cut = self.cut or len(shown) > MAX_STRING
        return clean(shown, MAX_STRING)


def hidden_in(text: str) -> Iterator[str]:
    """What of HIDDEN a text holds; joiners of emoji and of scripts, and flags, are proper text."""
    for what, form in zip(HIDDEN, (_TAGS, _OVERRIDES, _INVISIBLE), strict=True):
        if form.search(_FLAG.sub("", text)):
            yield what


def _protected(client: McpClient) -> bool:
    """Whether metadata of this very endpoint names who authorises (RFC 9728, 3.1)."""
    parts = urlsplit(client.url)
    place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}"
    try:
        reply = get(http.HttpRequest("GET", place), client.deadline.within(ALIVE_S))
        said = strict_json.loads(reply.body) if reply.status == 200 else None
    except (Failure, ValueError):
        return False
    if not isinstance(said, dict) or not said.get("authorization_servers"):
        return False
    return str(said.get("resource", "")).rstrip("/") == client.url.rstrip("/")


# One call ------------------------------------------------------------------------------------------


def _called(client: McpClient, params: Mapping[str, Any], *, relist: bool) -> Result:
    """A call of a tool, and whether the server is still there after it."""
    before = client.listed("tools")[0] if relist else []
    alive = client.alive()
    try:
        seen = watched(client.request(CALL, params), alive, client.deadline, CALL_S)
    except Failure as failure:
        if failure.error_class != "timeout":
            raise
        return _unanswered(alive, client.deadline)
    if isinstance(seen, Ended):
        error = "no answer, and none to other requests for a while"
        return Result(ok=False, error=error, error_class="http", ended=True, silent_ms=seen.silent_ms)
    if isinstance(seen, LockedOut):
        error = f"locked out: no answer to us for {seen.silent_ms / 1000:.1f} s ({seen.what})"
        return Result(ok=False, error=error, error_class="busy", locked_out=True, silent_ms=seen.silent_ms)
    result = _answered(client.read(seen.first))
    if not relist:
        return result
    later = {_named(one): one for one in client.listed("tools")[0]}
    changed = [_named(one) for one in before if _named(one) in later and later[_named(one)] != one]
    return replace(result, changed=tuple(clean(one, 100) for one in changed[:MAX_LISTED]))


def _unanswered(alive: http.HttpRequest, deadline: Deadline) -> Result:
    """A call without an answer in time: whether others are answered. Failure where nobody else can say so."""
    for request in (alive, replace(alive, headers=alive.headers | {WITNESS: "1"})):
        try:
            get(request, deadline.within(ALIVE_S))
        except Failure as failure:
            if failure.error_class != "timeout":
                raise
            continue
        error = f"no answer in {CALL_S:.0f} s, and one to the next request"
        return Result(ok=False, error=error, error_class="http", hung=True)
    silent = CALL_S + 2 * ALIVE_S
    error = f"no answer in {CALL_S:.0f} s, and none to two callers after it"
    return Result(ok=False, error=error, error_class="http", stalled=True, silent_ms=silent * 1000)


def _other(args: Args, ctx: Context, client: McpClient) -> McpClient:
    """A connection of the other account, by the same wire; Failure where it may not begin."""
    headers, _ = _headers(replace(args, caller="other"), ctx)
    other = McpClient(client.url, headers, client.deadline, client.wire)
    if client.wire != STATELESS and not other.open().ok:
        raise Failure("http", "the other account is not let in")
    return other


def _resumed(args: Args, client: McpClient, params: Mapping[str, Any], other: McpClient) -> Result:
    """The call once more, with the input that it asks for and a requestState."""
    maker = other if args.state == "other" else client
    asked = maker.ask(CALL, params).result or {}
    state, wanted = asked.get("requestState"), asked.get("inputRequests")
    if not isinstance(state, str) or not state or not isinstance(wanted, dict):
        return Result(ok=False, error="no requestState was handed out", error_class="http", asks_input=True)
    if args.state == "altered":
        middle = len(state) // 2
        state = f"{state[:middle]}{'B' if state[middle] != 'B' else 'C'}{state[middle + 1 :]}"
    given = {str(key): _accepted(one) for key, one in list(wanted.items())[:20]}
    again = client.ask(CALL, {**params, "inputResponses": given, "requestState": state})
    return replace(_answered(again), asks_input=True)


def _accepted(asked: object) -> dict[str, Any]:
    """What a person who says yes to everything would send back."""
    params = asked.get("params") if isinstance(asked, dict) else None
    schema = params.get("requestedSchema") if isinstance(params, dict) else None
    fields = schema.get("properties") if isinstance(schema, dict) else None
    plain = {"boolean": True, "integer": 1, "number": 1}
    content = {
        str(name): said["enum"][0] if said.get("enum") else plain.get(str(said.get("type")), "moss")
        for name, said in (fields.items() if isinstance(fields, dict) else ())
        if isinstance(said, dict)
    }
    return {"action": "accept", "content": content}


def _handed_on(args: Args, client: McpClient, other: McpClient, made: Result) -> Result:
    """What both are answered who show the handle of one of them, beside one that nobody was given."""
    mine = handle(args.then_argument, made.structured, made.text)
    if not mine:
        return replace(made, foreign=FOREIGN[0])

    def shown(who: McpClient, value: str | int) -> Result:
        given = {**args.then_arguments, args.then_argument: value}
        return _answered(who.ask(CALL, {"name": args.then, "arguments": given}))

    def listed(who: McpClient) -> bool:
        answer = _answered(who.ask(CALL, {"name": args.listing, "arguments": {}}))
        return str(mine) in f"{answer.text}\n{json.dumps(answer.structured)}"

    listing = ""
    if args.listing:
        listing = {(True, False): "maker", (True, True): "both"}.get(
            (listed(client), listed(other)), "neither"
        )
    theirs, nobodys = shown(other, mine), shown(other, unlike(mine))
    own = shown(client, mine)
    alike = (theirs.text, theirs.structured) == (own.text, own.structured)
    seen = ALIKE if own.ok and alike else FOREIGN[2] if own.ok else USED_UP
    return replace(made, foreign=seen if theirs.ok and not nobodys.ok else FOREIGN[1], listed=listing)


def _named(one: object) -> str:
    return str(one.get("name", "")) if isinstance(one, dict) else ""


def _refused(reply: McpReply) -> Result:
    error = reply.error or (f"HTTP {reply.status}" if reply.status >= 400 else "no reply in JSON-RPC")
    return Result(
        ok=False,
        latency_ms=reply.latency_ms,
        error=clean(mask(error)[0], 300),
        error_class="http",
        hint=hint(reply.status) if reply.status >= 400 else "",
        status=reply.status,
        code=reply.code,
    )


def _answered(reply: McpReply) -> Result:
    if not reply.ok:
        return _refused(reply)
    said = reply.result or {}
    whole = _Definitions()
    structured = (
        whole.taken("answer", {"structured": said["structuredContent"]})
        if "structuredContent" in said
        else {}
    )
    text, secrets = mask("\n".join(_texts(said))[: MAX_TEXT * 4])
    failed, asks = said.get("isError") is True, said.get("resultType") == "input_required"
    return Result(
        ok=not (failed or asks),
        latency_ms=reply.latency_ms,
        error="the tool says that it failed" if failed else "it asks for input" if asks else "",
        error_class="http" if failed or asks else "",
        asks_input=asks and isinstance(said.get("requestState"), str),
        handed=tuple(dict.fromkeys(name for name, _ in handles(structured.get("structured"), text))),
        status=reply.status,
        text=clean(text, MAX_TEXT),
        structured=structured.get("structured"),
        is_error=failed,
        secrets=tuple(sorted({*secrets, *whole.secrets})),
        cut=whole.cut or len(text) > MAX_TEXT,
    )


def _texts(said: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an answer: of a tool's content, of resources, of a prompt's messages."""
    parts = [said.get("content"), said.get("contents"), said.get("messages")]
    for part in [one for each in parts if isinstance(each, list) for one in each[:MAX_LISTED]]:
        inner = part.get("content", part) if isinstance(part, dict) else None
        inner = inner.get("resource", inner) if isinstance(inner, dict) else inner
        if isinstance(inner, dict) and isinstance(inner.get("text"), str):
            yield inner["text"]
        elif isinstance(inner, dict):
            yield f"[{inner.get('mimeType') or inner.get('type') or 'content'}]"


def _without(secret: str, result: Result) -> Result:
    """The result without the token that was sent, should the server echo it."""
    if not secret:
        return result

    def cut(value: Any) -> Any:  # noqa: ANN401  any JSON
        if isinstance(value, str):
            return value.replace(secret, "[token]")
        if isinstance(value, dict):
            return {cut(key): cut(one) for key, one in value.items()}
        return type(value)(map(cut, value)) if isinstance(value, list | tuple) else value

    names = (
        "error",
        "server",
        "instructions",
        "text",
        "structured",
        "tools",
        "resources",
        "templates",
        "prompts",
    )
    return replace(result, **{name: cut(getattr(result, name)) for name in names})


SPEC = ToolSpec(
    "qa_mcp",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "list what an MCP server has, call one of its tools, read a resource or a prompt of it",
    run,
    needs=("mcp",),
    group="web",
    effect_by=effect_of,
    acts_at="url",
    impacts={
        "look": Impact(8, 8, 8, "what a server of tools offers, and tools that only read"),
        "act": Impact(7, 5, 7, "a tool of a server that changes something", "not undone"),
        "file": Impact(4, 8, 8, "a file behind a tool that is not for its callers", "what was read is known"),
        "attack": Impact(5, 5, 5, "what no caller writes: markup, quotes, commands, paths that climb"),
    },
    points_at={"url": Points.MCP},
    signs_in=True,
    batches=True,
    asks=("{method} {name} at {url}", " as {caller}"),
    judged_as=("mcp",),
    example={"url": "{site}/mcp"},
    expects="result.ok && size(result.hidden) == 0",
    public=PUBLIC
    | {
        "url",
        "method",
        "name",
        "arguments",
        "caller",
        "carried",
        "wire",
        "origin",
        "relist",
        "status",
        "server",
    }
    | {"instructions", "tools", "resources", "templates", "prompts", "unlisted", "cut", "hidden", "secrets"}
    | {
        "secret_at",
        "protected",
        "text",
        "structured",
        "is_error",
        "code",
        "changed",
        "hung",
        "stalled",
        "ended",
    }
    | {"locked_out", "silent_ms", "heard", "client", "contradicts", "session_of", "state", "then"}
    | {"then_argument", "then_arguments", "listing", "asks_input", "handed", "foreign", "listed"},
    volatile=VOLATILE | {"silent_ms"},
)
