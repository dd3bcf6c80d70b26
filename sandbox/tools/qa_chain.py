"""Reads of the chain: one view of a fixed table, several at one block, and calls that are only simulated.

A revert or an RPC error comes back as data. No path leads from here to a signature: the broker's node service
takes reads alone, and this module does not know the one that takes transactions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any

from sandbox.chain import abi, rpc, surface
from sandbox.chain.contract import VIEWS
from sandbox.chain.simulation import ORIGIN, TELLER, Message, simulate, teller
from sandbox.chain.spelling import (
    MAX_RETURNED,
    VIEW,
    arguments,
    calldata,
    hex_bytes,
    plain,
    read_out,
    typed_value,
    watched_view,
)
from sandbox.errors import Deadline, Failure
from sandbox.spec import Context, Cost, Effect, Impact, Mistake, OneOf, Points, ToolSpec
from sandbox.text import clean
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_WATCH = 24
MAX_SETUP = 4
MAX_WEI = 10**21
_SIGNATURE = re.compile(r"[A-Za-z_$][\w$]{0,99}\([\w,()\[\]]{0,400}\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Args:
    """`args` by the function's types: integers as numbers or decimal strings, bytes as 0x hex.

    An address may be a label of this run's keys (`caller`), a metadata key may be its role or name. Three
    more questions, each without `function`:

    simulate    a selector of the diamond, called with `args` of `types` by `sender`, and never sent. A sender
                is `stranger`, a label, an address, or a view that gives one (`owner`, `ownerOfId(1)`). The
                type `raw` is calldata as it is. `setup` are calls before it: selector, types, args, wei.
                `code` is put at an address (or the sender's) for the simulation.
    watch       views to read together at one block, or before and after `simulate`: `ownerOfId(1)`, or for
                one beyond the table its selector and the rest of its calldata, `0x01020304(00…2a)`.
                Around a simulated call also `balance`, the native coin that the diamond holds.
    surface     the contract's facets, their selectors, and what is found in their code; without a loupe its
                own code's, and its implementation's if it is a proxy.
    """

    function: str = ""
    """View to read."""
    args: tuple[Any, ...] = ()
    """Its arguments by its types: numbers or decimal strings, bytes as 0x hex, labels of keys for
    addresses."""
    simulate: str = ""
    """Selector of the diamond to call without sending anything."""
    types: tuple[str, ...] = ()
    """Types of `args` for a simulation; `raw` is calldata."""
    sender: str = "stranger"
    """Who calls in a simulation: `stranger`, a label, an address, or a view that gives one."""
    wei: str = "0"
    """[wei] Value of a simulated call, in digits."""
    watch: tuple[str, ...] = ()
    """Views to read together, or before and after a simulation."""
    setup: tuple[Any, ...] = ()
    """Calls before a simulated one: selector, types, args, wei."""
    code: dict[str, str] = field(default_factory=dict)
    """Code to put at an address for a simulation, 0x hex by address."""
    named: tuple[str, ...] = ()
    """Signatures of functions that this names by selector, for whoever reads it."""
    surface: bool = False
    """Whether to list facets and selectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`value` is the returned value, or a list of several; read at `block`.

    Of a simulation: `how` it was made (chain/simulation.py), the call's own outcome, and what was watched,
    `before` and `after` it: null for a view that reverts, or that differs by itself.
    """

    value: Any = None
    """The returned value, or a list of several; an int of more than 64 bits cannot be counted with."""
    block: int = 0
    """Number of the block that was read."""
    how: Annotated[str, OneOf(("", "simulate", "override", "call"))] = ""
    """How a simulation was made."""
    by: str = ""
    """Address that called in a simulation."""
    succeeded: bool = False
    """Whether the simulated call succeeded."""
    reverted: str = ""
    """Why it reverted."""
    returned: str = ""
    """What it returned, 0x hex."""
    gas_used: int = 0
    """[gas] Gas of the simulated call."""
    events: tuple[str, ...] = ()
    """Events of the simulated call."""
    before: tuple[Any, ...] = ()
    """What was watched, before the call; null where a view reverts."""
    after: tuple[Any, ...] = ()
    """What was watched, after the call."""


def run(args: Args, ctx: Context) -> Result:
    deadline = Deadline(ctx.deadline_s * 0.9)
    if len(args.named) > 2 * MAX_WATCH or not all(map(_SIGNATURE.fullmatch, args.named)):
        raise Mistake(f"/args/named: expected at most {2 * MAX_WATCH} signatures such as setRate(uint256)")
    if args.surface:
        return _surface(ctx, deadline)
    if args.simulate:
        return _simulated(args, ctx, deadline)
    if args.watch:
        return _watched(args, ctx, deadline)
    if not args.function:
        raise Mistake("/args/function: required")
    function = VIEWS.get(args.function)
    if function is None:
        raise Mistake(f"/args/function: not one of {', '.join(sorted(VIEWS))}")
    values = arguments(function.takes, args.args, ctx, args.function)
    block = rpc.number(rpc.call("eth_blockNumber", [], deadline))
    found = rpc.view(ctx, args.function, *values, deadline=deadline, block=hex(block))
    return Result(ok=True, value=plain(found[0] if len(found) == 1 else found), block=block)


def _simulated(args: Args, ctx: Context, deadline: Deadline) -> Result:
    """One call, simulated: it ends in no signature and no transaction, whatever sender it names."""
    if len(args.setup) > MAX_SETUP:
        raise Mistake(f"/args/setup: more than {MAX_SETUP} calls")
    sender = _account(args.sender, ctx, deadline)
    call = Message(sender, ctx.diamond, calldata(args.simulate, args.types, args.args, ctx), _wei(args.wei))
    setup = [_earlier(one, sender, ctx, index) for index, one in enumerate(args.setup)]
    code = {
        sender if at == "sender" else _address(at, ctx, f"/args/code/{at}"): "0x"
        + hex_bytes(text, f"/args/code/{at}").hex()
        for at, text in args.code.items()
    }
    views = [watched_view(text, ctx, index) for index, text in enumerate(args.watch[: MAX_WATCH + 1])]
    if len(views) > MAX_WATCH:
        raise Mistake(f"/args/watch: more than {MAX_WATCH} views")
    reads = [Message(ORIGIN, TELLER if one.coin else ctx.diamond, one.data) for one in views]
    if any(one.coin for one in views):
        code[TELLER] = teller(ctx.diamond)
    found = simulate(setup, call, reads, code, deadline)
    done = found.call
    words = done.data.decode() if found.how == "call" else abi.revert_reason("0x" + done.data.hex())
    return Result(
        ok=True,
        how=found.how,
        by=sender,
        succeeded=done.ok,
        reverted="" if done.ok else clean(words, 200) or "no reason given",
        returned="0x" + done.data[:MAX_RETURNED].hex() if done.ok else "",
        gas_used=done.gas_used,
        events=done.events,
        before=tuple(map(read_out, views, found.before)),
        after=tuple(map(read_out, views, found.after)),
    )


def _watched(args: Args, ctx: Context, deadline: Deadline) -> Result:
    views = [watched_view(text, ctx, index) for index, text in enumerate(args.watch[: 2 * MAX_WATCH + 1])]
    if len(views) > 2 * MAX_WATCH:
        raise Mistake(f"/args/watch: more than {2 * MAX_WATCH} views")
    block = rpc.number(rpc.call("eth_blockNumber", [], deadline))
    asked = [{"to": ctx.diamond, "data": one.data} for one in views]
    found = [rpc.answered("eth_call", [one, hex(block)], deadline) for one in asked]
    return Result(ok=True, block=block, before=tuple(map(read_out, views, found)))


def _surface(ctx: Context, deadline: Deadline) -> Result:
    block = rpc.number(rpc.call("eth_blockNumber", [], deadline))
    return Result(ok=True, value=surface.surface(ctx, hex(block), deadline), block=block)


def _account(text: str, ctx: Context, deadline: Deadline) -> str:
    """Who calls: a label or an address, or a view that gives one."""
    if not VIEW.fullmatch(text) or text in (*ctx.keys, "stranger") or text.partition("(")[0] not in VIEWS:
        return _address(text, ctx, "/args/sender")
    view = watched_view(text, ctx, 0)
    found = read_out(
        view, rpc.answered("eth_call", [{"to": ctx.diamond, "data": view.data}, "latest"], deadline)
    )
    if view.gives != ("address",) or not isinstance(found, str) or found == rpc.ZERO:
        raise Failure("reverted", f"{text}: gives no address")
    return found


def _address(text: str, ctx: Context, pointer: str) -> str:
    found = typed_value("address", text, ctx, pointer)
    return str(found).lower()


def _earlier(one: Any, sender: str, ctx: Context, index: int) -> Message:  # noqa: ANN401  any JSON
    """A call of `setup`: selector, types, args, and wei if it takes any."""
    if not isinstance(one, tuple | list) or not 3 <= len(one) <= 4:
        raise Mistake(f"/args/setup/{index}: expected selector, types, args, wei")
    return Message(sender, ctx.diamond, calldata(one[0], one[1], one[2], ctx), _wei(*one[3:]))


def _wei(text: object = "0") -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 22:
        raise Mistake("/args/wei: expected a decimal string")
    if int(text) > MAX_WEI:
        raise Mistake(f"/args/wei: more than {MAX_WEI}")
    return int(text)


SPEC = ToolSpec(
    "qa_chain",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "read views of the contract, or simulate a call of it without sending anything",
    run,
    needs=("diamond",),
    group="chain",
    batches=True,
    impacts={
        "": Impact(10, 10, 9, "a view of a contract, asked of the node"),
    },
    points_at={"function": Points.VIEW_OR_NONE},
    reaches="node",
    asks=("{function}", "a simulated call of {simulate}", " views {watch}"),
    error_varies=True,
    judged_as=("chain",),
    example={"function": "feedbackCount"},
    expects="result.ok && result.value >= 0",
    public=PUBLIC
    | {"function", "args", "value", "block", "simulate", "types", "sender", "wei", "watch", "setup"}
    | {"code", "named", "surface", "how", "by", "succeeded", "reverted", "returned", "gas_used", "events"}
    | {"before", "after"},
    on_chain=frozenset({"value", "returned", "before", "after"}),
    volatile=VOLATILE | {"block", "gas_used", "before", "after", "events", "returned"},
)
