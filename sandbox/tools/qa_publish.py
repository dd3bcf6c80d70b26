"""Compiles, then writes a name's module and face choice: two transactions, both read back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from sandbox import http, strict_json
from sandbox.chain import abi, rpc
from sandbox.chain.contract import SET_METADATA
from sandbox.chain.gas import limit, publish_limit, ran_out
from sandbox.chain.names import require_own
from sandbox.compiler import Compilation, compile_source
from sandbox.errors import Deadline, Failure
from sandbox.programs.process import OUTCOMES, Ending
from sandbox.spec import ABSENT, Context, Cost, Effect, Impact, Mistake, OneOf, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

COMPILE_SECONDS = 10.0
COMPILE_CPU_SECONDS = 4.0
NOT_THERE = (404, 405, 410, 501)
"""Of a platform that states no figure."""


@dataclass(frozen=True, slots=True)
class Args:
    name: str
    """Name of this run: `{name}`."""
    source: str
    """Source of the app."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    outcome: Annotated[str, OneOf(OUTCOMES)] = ""
    """Outcome of the compiler, as in qa_compile."""
    size: int = 0
    """[bytes] Size of the module."""
    entry: str = ""
    """Name of its entry point."""
    published: bool = False
    """Whether both writes succeeded."""
    code: str = ""
    """Empty, the platform's word for a refusal before any transaction, `oog` or `reverted`."""
    tx: tuple[str, ...] = ()
    """Hashes of the transactions."""
    gas_used: int = 0
    """[gas] Gas of the module's write."""
    gas_estimate: int = 0
    """[gas] Gas by the node's estimate."""
    gas_quote: int | None = field(default=None, metadata=ABSENT)
    """[gas] The platform's own figure; absent where it states none."""
    unjudged: tuple[str, ...] = ()
    """What the platform states or does not state, and could not be asked for."""
    gas_limit: int = 0
    """[gas] Gas that was offered."""
    app_read_back: bool = False
    """Whether the chain has the module."""
    face_read_back: bool = False
    """Whether the chain has the face's setting."""


def run(args: Args, ctx: Context) -> Result:
    require_own(args.name, ctx, "/args/name")
    if args.name not in ctx.keys:
        raise Mistake("/args/name: this run has no such name; qa_create it first")
    for role in ("app", "face"):  # both, before anything is written
        _key(role, ctx)
    deadline = Deadline(ctx.deadline_s * 0.9)
    done = compile_source(args.source, ctx, deadline.within(COMPILE_SECONDS), COMPILE_CPU_SECONDS)
    result = _refusal(done, ctx)
    if result.error:
        return result
    (agent_id,) = rpc.view(ctx, "idOfName", args.name, deadline=deadline)
    if not isinstance(agent_id, int) or agent_id == 0:
        raise Mistake("/args/name: not registered; qa_create it first")
    try:
        result = replace(result, gas_quote=_quote(done.module, ctx, deadline))
    except Failure:  # one that was not heard is not one that is not stated
        result = replace(result, unjudged=("gas_quote",))
    result = _write_module(result, args.name, agent_id, done.module, ctx, deadline)
    if result.error:
        return result
    return _read_back(
        _write_face(result, args.name, agent_id, ctx, deadline), agent_id, done.module, ctx, deadline
    )


def _refusal(done: Compilation, ctx: Context) -> Result:
    """Reject a module before it costs anything: not compiled, no entry, too large."""
    result = Result(ok=False, outcome=done.ending.value, size=len(done.module), entry=done.entry)
    if done.ending is Ending.UNKNOWN:
        return replace(result, error=done.diagnostic, error_class="busy")
    if done.ending is not Ending.ACCEPTED:
        return replace(result, error=done.diagnostic or f"the compiler ended in {done.ending.value}")
    if not done.entry:
        return _coded(result, "no_entry", "the module exports neither frame nor render", ctx)
    if len(done.module) > ctx.publish_cap:
        return _coded(result, "too_large", f"{len(done.module)} bytes, cap {ctx.publish_cap}", ctx)
    return result


def _coded(result: Result, what: str, why: str, ctx: Context) -> Result:
    """A refusal with the platform's own code, if the profile has one."""
    code = ctx.codes.get(what) or what
    return replace(result, code=code, error=f"{code}: {why}")


def _key(role: str, ctx: Context) -> bytes:
    """The metadata key of a role; Mistake if the profile does not name one."""
    if role not in ctx.metadata:
        raise Mistake(f"/tool: the profile names no metadata key {role!r}")
    return bytes.fromhex(ctx.metadata[role].removeprefix("0x"))


def _write_module(
    result: Result, name: str, agent_id: int, module: bytes, ctx: Context, deadline: Deadline
) -> Result:
    data = abi.encode_call(SET_METADATA, (agent_id, _key("app", ctx), module))
    gas_limit = publish_limit(ctx, len(module))
    gas_estimate = rpc.estimate(name, ctx.diamond, data, ctx, deadline)
    receipt = rpc.submit(name, ctx.diamond, data, gas_limit, deadline)
    result = replace(
        result, tx=(receipt.tx,), gas_used=receipt.gas_used, gas_estimate=gas_estimate, gas_limit=gas_limit
    )
    return _judged(result, receipt, gas_limit)


def _write_face(result: Result, name: str, agent_id: int, ctx: Context, deadline: Deadline) -> Result:
    data = abi.encode_call(SET_METADATA, (agent_id, _key("face", ctx), ctx.face_app.encode()))
    gas_limit = limit(ctx, "small")
    receipt = rpc.submit(name, ctx.diamond, data, gas_limit, deadline)
    return _judged(replace(result, tx=(*result.tx, receipt.tx)), receipt, gas_limit)


def _judged(result: Result, receipt: rpc.TxReceipt, gas_limit: int) -> Result:
    if receipt.status == 1:
        return result
    code = "oog" if ran_out(receipt.gas_used, gas_limit) else "reverted"
    return replace(
        result, code=code, error_class=code, error=receipt.reverted or f"the transaction failed: {code}"
    )


def _read_back(result: Result, agent_id: int, module: bytes, ctx: Context, deadline: Deadline) -> Result:
    """Check both keys on chain: one alone leaves visitors with the old face."""
    (app,) = rpc.view(ctx, "metadata", agent_id, _key("app", ctx), deadline=deadline)
    (face,) = rpc.view(ctx, "metadata", agent_id, _key("face", ctx), deadline=deadline)
    result = replace(result, app_read_back=app == module, face_read_back=face == ctx.face_app.encode())
    if result.error:
        return result
    if not (result.app_read_back and result.face_read_back):
        return replace(
            result, error="the transactions succeeded, and the keys do not read back", error_class="garbage"
        )
    return replace(result, ok=True, published=True)


def _quote(module: bytes, ctx: Context, deadline: Deadline) -> int | None:
    """The platform's own figure for this size; None if it states none, which is not a defect.

    Failure when it does not answer, or refuses to: a limit, a ban, a broken server.
    """
    if not ctx.site:
        return None
    url = http.absolute(f"{ctx.site.rstrip('/')}/api/estimate?bytes={len(module)}", "/ctx/site")
    reply = http.send(http.HttpRequest("GET", url), deadline.within(5.0))
    if reply.by_broker or reply.status in NOT_THERE:
        return None
    if reply.status != 200:
        raise Failure("http", "the platform's figure cannot be had now", status=reply.status)
    try:
        gas = strict_json.loads(reply.body)["gas"]
    except (ValueError, KeyError, TypeError):
        return None
    return gas if type(gas) is int and 0 <= gas < 1 << 53 else None


SPEC = ToolSpec(
    "qa_publish",
    Args,
    Result,
    Effect.ACT,
    Cost(calls=1, writes=2),
    "compile and publish an app under a disposable name",
    run,
    needs=("compiler", "metadata:app", "metadata:face", "call:setMetadata", "view:metadata", "view:idOfName"),
    group="chain",
    acts_on="name",
    impacts={
        "": Impact(10, 7, 8, "a program under a name of ours", "the name is released when the run settles"),
    },
    points_at={},
    reaches="node",
    asks=("publishing an app",),
    judged_as=("publication",),
    example={"name": "{name}", "source": "fn frame(t: i32) -> i32 { t + 1 }"},
    expects="result.published && result.app_read_back",
    public=PUBLIC
    | {"name", "source", "outcome", "size", "entry", "published", "code", "tx", "gas_used"}
    | {"gas_estimate", "gas_quote", "gas_limit", "app_read_back", "face_read_back", "unjudged"},
    volatile=VOLATILE | {"tx", "gas_used", "gas_estimate"},
)
