"""One read of the chain from the fixed table of views; a revert or an RPC error comes back as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import abi, rpc
from sandbox.contract import VIEWS
from sandbox.errors import Deadline
from sandbox.spec import Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.text import clean
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

EXACT = 1 << 53
"""Integers from here up are decimal strings: JSON readers lose their last digits."""

MAX_TEXT = 4_096


@dataclass(frozen=True, slots=True)
class Args:
    """`args` by the function's types: integers as numbers or decimal strings, bytes as 0x hex.

    An address may be a label of this run's keys (`caller`), a metadata key may be its role or name.
    """

    function: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`value` is the returned value, or a list of several; read at `block`."""

    value: Any = None
    block: int = 0


def run(args: Args, ctx: Context) -> Result:
    function = VIEWS.get(args.function)
    if function is None:
        raise Mistake(f"/args/function: not one of {', '.join(sorted(VIEWS))}")
    if len(args.args) != len(function.takes):
        raise Mistake(f"/args/args: {args.function} takes {len(function.takes)}: {', '.join(function.takes)}")
    values = tuple(
        _typed(kind, value, ctx, f"/args/args/{index}")
        for index, (kind, value) in enumerate(zip(function.takes, args.args, strict=True))
    )
    deadline = Deadline(ctx.deadline_s * 0.9)
    block = rpc.number(rpc.call("eth_blockNumber", [], deadline))
    found = rpc.view(ctx, args.function, *values, deadline=deadline, block=hex(block))
    return Result(ok=True, value=_plain(found[0] if len(found) == 1 else found), block=block)


def _typed(kind: str, value: object, ctx: Context, pointer: str) -> abi.Value:
    """An argument as its Solidity type, verified by encoding it."""
    typed = value
    if kind == "address" and isinstance(value, str):
        typed = ctx.keys.get(value, value)
    elif (
        kind.startswith("uint")
        and isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) < 80
    ):
        typed = int(value)
    elif kind.startswith("bytes") and isinstance(value, str):
        typed = _bytes(ctx.metadata.get(value, value) if kind == "bytes32" else value, pointer)
    if not isinstance(typed, str | int | bytes):
        raise Mistake(f"{pointer}: expected a {kind}")
    try:
        abi.encode_call(abi.AbiFunction("0x", (kind,)), (typed,))
    except abi.AbiError as error:
        raise Mistake(f"{pointer}: {error}") from None
    return typed


def _bytes(value: str, pointer: str) -> bytes:
    try:
        return bytes.fromhex(value.removeprefix("0x"))
    except ValueError:
        raise Mistake(f"{pointer}: expected 0x hex") from None


def _plain(value: abi.Value | Sequence[abi.Value]) -> Any:
    if isinstance(value, bytes):
        return "0x" + value[:MAX_TEXT].hex()
    if isinstance(value, str):
        return clean(value, MAX_TEXT)
    if isinstance(value, bool | int):
        return value if abs(value) < EXACT else str(value)
    return [_plain(item) for item in value]


SPEC = ToolSpec(
    "qa_chain",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=1),
    "read one view of the contract",
    run,
    group="chain",
    batches=True,
    points_at={"function": Points.VIEW},
    reaches="node",
    asks=("{function}",),
    error_varies=True,
    public=PUBLIC | {"function", "args", "value", "block"},
    volatile=VOLATILE | {"block"},
)
