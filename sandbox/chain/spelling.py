"""Values of the chain as calls spell them and as results show them: typed arguments, calldata, views."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.chain import abi
from sandbox.chain.contract import VIEWS
from sandbox.spec import Context, Mistake
from sandbox.text import clean

STRANGER = "0x71c5ab1e5eedfaceb0a7c0de5afe7e57ab1eca5e"
"""An address with no part in any platform."""
EXACT = 1 << 53
"""Integers from here up are decimal strings: JSON readers lose their last digits."""
MAX_TEXT = 4_096
MAX_RETURNED = 2_048
MAX_REPEATED = 1 << 16

VIEW = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63}|0x[0-9a-f]{8})(?:\((.{0,2000})\))?", re.ASCII | re.DOTALL)
_SELECTOR = re.compile(r"0x[0-9a-f]{8}", re.ASCII)
_BITS = "|".join(map(str, range(8, 257, 8)))
_TYPE = re.compile(rf"(address|bool|string|bytes([1-9]|[12]\d|3[0-2])?|uint({_BITS}))(\[\])?")


def arguments(
    takes: Sequence[str], given: Sequence[Any], ctx: Context, function: str
) -> tuple[abi.Value, ...]:
    if len(given) != len(takes):
        raise Mistake(f"/args/args: {function} takes {len(takes)}: {', '.join(takes)}")
    return tuple(
        typed_value(kind, value, ctx, f"/args/args/{index}")
        for index, (kind, value) in enumerate(zip(takes, given, strict=True))
    )


def calldata(selector: object, types: object, args: object, ctx: Context) -> str:
    if not isinstance(selector, str) or _SELECTOR.fullmatch(selector) is None:
        raise Mistake("/args/simulate: expected a selector, 0x and 8 hex digits")
    if not isinstance(types, list | tuple) or not isinstance(args, list | tuple):
        raise Mistake("/args/types: expected types and args as arrays")
    kinds, values = list(types), list(args)
    if kinds == ["raw"] and len(values) == 1 and isinstance(values[0], str):
        return selector + hex_bytes(values[0], "/args/args/0").hex()
    for kind in kinds:
        if not isinstance(kind, str) or _TYPE.fullmatch(kind) is None:
            raise Mistake(f"/args/types: {str(kind)[:40]!r} is not a type")
    typed = arguments(kinds, values, ctx, selector)
    return abi.encode_call(abi.AbiFunction(selector, tuple(kinds)), typed)


@dataclass(frozen=True, slots=True)
class WatchedView:
    """`coin`: not a view, but the native coin that the diamond holds."""

    data: str
    gives: tuple[str, ...]
    coin: bool = False


def watched_view(text: str, ctx: Context, index: int) -> WatchedView:
    """A view as it is spelled in `watch`."""
    pointer = f"/args/watch/{index}"
    spelled = VIEW.fullmatch(text)
    if spelled is None:
        raise Mistake(f"{pointer}: expected a view such as ownerOfId(1)")
    name, inside = spelled[1], spelled[2] or ""
    if text == "balance":
        return WatchedView("0x", ("uint256",), coin=True)
    if name.startswith("0x"):
        return WatchedView(name + hex_bytes(inside, pointer).hex(), ())
    function = VIEWS.get(name)
    if function is None:
        raise Mistake(f"{pointer}: not one of {', '.join(sorted(VIEWS))}, nor a selector")
    given = (
        inside.split(",")
        if (function.takes and inside) or len(function.takes) > 1
        else [""] * len(function.takes)
    )
    values = arguments(function.takes, given, ctx, name)
    return WatchedView(abi.encode_call(function, values), function.gives)


def read_out(view: WatchedView, data: bytes | None) -> Any:  # noqa: ANN401  any JSON
    """What a watched view gave: decoded if it is in the table, else its bytes."""
    if data is None:
        return None
    if not view.gives:
        return "0x" + data[:MAX_RETURNED].hex()
    try:
        found = abi.decode(view.gives, data)
    except abi.AbiError:
        return None
    return plain(found[0] if len(found) == 1 else found)


def typed_value(kind: str, value: object, ctx: Context, pointer: str) -> abi.Value:
    """An argument as its Solidity type, verified by encoding it."""
    typed = value
    if kind.endswith("[]") and isinstance(value, list | tuple):
        return [typed_value(kind[:-2], one, ctx, pointer) for one in value]
    if kind == "address" and isinstance(value, str):
        typed = STRANGER if value == "stranger" else ctx.keys.get(value, value)
    elif kind == "string" and isinstance(value, dict):
        # A long text, spelled briefly.
        part, times = value.get("repeat"), value.get("times")
        if set(value) != {"repeat", "times"} or not isinstance(part, str) or not isinstance(times, int):
            raise Mistake(f"{pointer}: expected a string, or repeat and times")
        if not 0 <= times * len(part.encode()) <= MAX_REPEATED:
            raise Mistake(f"{pointer}: a text of at most {MAX_REPEATED} bytes")
        typed = part * times
    elif kind == "bool" and value in ("true", "false"):
        typed = value == "true"
    elif (
        kind.startswith("uint")
        and isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) < 80
    ):
        typed = int(value)
    elif kind.startswith("bytes") and isinstance(value, str):
        typed = hex_bytes(ctx.metadata.get(value, value) if kind == "bytes32" else value, pointer)
    if not isinstance(typed, str | int | bytes):
        raise Mistake(f"{pointer}: expected a {kind}")
    try:
        abi.encode_call(abi.AbiFunction("0x", (kind,)), (typed,))
    except abi.AbiError as error:
        raise Mistake(f"{pointer}: {error}") from None
    return typed


def hex_bytes(value: str, pointer: str) -> bytes:
    try:
        return bytes.fromhex(value.removeprefix("0x"))
    except ValueError:
        raise Mistake(f"{pointer}: expected 0x hex") from None


def plain(value: abi.Value | Sequence[abi.Value]) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, bytes):
        return "0x" + value[:MAX_TEXT].hex()
    if isinstance(value, str):
        return clean(value, MAX_TEXT)
    if isinstance(value, bool | int):
        return value if abs(value) < EXACT else str(value)
    return [plain(item) for item in value]
