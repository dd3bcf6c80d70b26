"""Registers one disposable name under its own throwaway key, without making it a MAIN identity."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sandbox.chain import abi, rpc
from sandbox.chain.contract import APPROVE, REGISTER
from sandbox.chain.gas import limit, ran_out
from sandbox.chain.names import require_own
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.spec import Context, Cost, Effect, Impact, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer


@dataclass(frozen=True, slots=True)
class Args:
    name: str
    """Name to mint: `{name}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` only if, according to the chain, `owner` owns `name` and has no MAIN identity."""

    name: str = ""
    """The minted name."""
    owner: str = ""
    """Its owner by the chain."""
    agent_id: int = 0
    """Its id."""
    tx: str = ""
    """Hash of the transaction."""
    gas_used: int = 0
    """[gas] Gas used."""
    gas_estimate: int = 0
    """[gas] Gas by the node's estimate."""
    gas_limit: int = 0
    """[gas] Gas that was offered."""
    main_unset: bool = False
    """Whether the owner has no MAIN identity."""


def run(args: Args, ctx: Context) -> Result:
    require_own(args.name, ctx, "/args/name")
    if args.name not in ctx.keys:
        raise JailBroken("this name has no key")
    deadline = Deadline(ctx.deadline_s * 0.9)
    _approve(args.name, ctx, deadline)
    data = abi.encode_call(REGISTER, (args.name,))
    gas_estimate = rpc.estimate(args.name, ctx.diamond, data, ctx, deadline)
    gas_limit = limit(ctx, "register_name")
    receipt = rpc.submit(args.name, ctx.diamond, data, gas_limit, deadline)
    sent = Result(
        ok=False,
        name=args.name,
        tx=receipt.tx,
        gas_used=receipt.gas_used,
        gas_estimate=gas_estimate,
        gas_limit=gas_limit,
    )
    return _read_back(sent, receipt, ctx, deadline)


def _approve(name: str, ctx: Context, deadline: Deadline) -> None:
    """Allow the diamond to take the price. An unreadable price never counts as 0."""
    if "registrationCost" in ctx.lacks:
        return
    (cost,) = rpc.view(ctx, "registrationCost", deadline=deadline)
    if not cost:
        return
    if not ctx.token:
        raise Failure("internal", "registration costs a token, and the profile names none")
    data = abi.encode_call(APPROVE, (ctx.diamond, cost))
    receipt = rpc.submit(name, ctx.token, data, limit(ctx, "small"), deadline)
    if receipt.status != 1:
        raise Failure("reverted", f"approve failed: {receipt.reverted or 'status 0'}")


def _read_back(sent: Result, receipt: rpc.TxReceipt, ctx: Context, deadline: Deadline) -> Result:
    """Check status, then owner, id and MAIN on chain: a hash is not success."""
    if receipt.status != 1:
        kind = "oog" if ran_out(receipt.gas_used, sent.gas_limit) else "reverted"
        return replace(sent, error=receipt.reverted or "the transaction failed", error_class=kind)
    own = ctx.keys[sent.name].lower()
    (owner,) = rpc.view(ctx, "ownerOfName", sent.name, deadline=deadline)
    (agent_id,) = rpc.view(ctx, "idOfName", sent.name, deadline=deadline)
    main = 0 if "mainOf" in ctx.lacks else rpc.view(ctx, "mainOf", own, deadline=deadline)[0]
    error = ""
    if owner != own or agent_id == 0:
        error = "the transaction succeeded, and the name is not owned by its key"
    elif main != 0:
        error = "the throwaway key got a MAIN identity"
    return replace(
        sent,
        ok=not error,
        owner=str(owner),
        agent_id=int(str(agent_id)),
        main_unset=main == 0,
        error=error,
        error_class="garbage" if error else "",
    )


SPEC = ToolSpec(
    "qa_create",
    Args,
    Result,
    Effect.ACT,
    Cost(calls=1, writes=2),
    "mint one disposable name",
    run,
    # never mint a name that could not be released
    needs=("call:register", "call:releaseName", "view:ownerOfName", "view:idOfName"),
    group="chain",
    acts_on="name",
    impacts={
        "": Impact(10, 7, 8, "a name in the registry", "the name is released when the run settles"),
    },
    points_at={},
    reaches="node",
    mints="name",
    asks=("minting a name",),
    example={"name": "{name}"},
    expects="result.ok && result.main_unset",
    public=PUBLIC
    | {"name", "owner", "agent_id", "tx", "gas_used", "gas_estimate", "gas_limit", "main_unset"},
    volatile=VOLATILE | {"owner", "agent_id", "tx", "gas_used", "gas_estimate"},
)
