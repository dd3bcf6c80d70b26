"""Operators: which types take them, and what they come to in a const."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .diagnostic import CompileError, Span
from .literals import to_f32
from .nodes import BOOL, F32, I32, I64, Value

INTS = frozenset({I32, I64})
NUMBERS = INTS | {F32}
LOGIC = frozenset({"&&", "||"})
ORDER = frozenset({"<", ">", "<=", ">="})
EQUAL = frozenset({"==", "!="})
SHIFTS = frozenset({"<<", ">>"})
BITS = frozenset({"&", "|", "^"})
RANGE = {I32: (-(2**31), 2**31 - 1), I64: (-(2**63), 2**63 - 1)}

FOLD: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "&&": operator.and_,
    "||": operator.or_,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "/": lambda a, b: _quotient(a, b),
    "%": lambda a, b: a - b * int(_quotient(a, b)),
}


def result_type(op: str, operand: str, *, plain_enum: bool) -> str | None:
    """The type of `operand op operand`, None when that operator does not take that type."""
    if op in LOGIC:
        return BOOL if operand == BOOL else None
    if op in EQUAL:
        return BOOL if operand in NUMBERS or operand == BOOL or plain_enum else None
    if op in ORDER:
        return BOOL if operand in NUMBERS else None
    if op in BITS:
        return operand if operand in INTS or operand == BOOL else None
    if op in SHIFTS or op == "%":
        return operand if operand in INTS else None
    return operand if operand in NUMBERS else None


def fold(op: str, left: Value, right: Value, kind: str, span: Span) -> Value:
    """The value of an operator in a const; unlike at run time, nothing wraps. Raises CompileError LH0211."""
    if op in SHIFTS and not 0 <= int(right) < (32 if kind == I32 else 64):
        raise CompileError("LH0211", "this const shifts by more than its width", span)
    try:
        return fit(FOLD[op](left, right), kind, span)
    except ZeroDivisionError:
        raise CompileError("LH0211", "this const divides by zero", span) from None


def fit(value: Value, kind: str, span: Span) -> Value:
    """`value` as a `kind`, or CompileError LH0211 when it does not fit."""
    if kind == F32:
        return to_f32(float(value), span)
    low, high = RANGE.get(kind, (0, 1 << 31))
    if not low <= int(value) <= high:
        raise CompileError("LH0211", f"this const does not fit in {kind}", span)
    return value


def convert(value: Value, to: str) -> Value:
    """`value as to`, as at run time: integers wrap, floats saturate."""
    if to == F32:
        return to_f32(float(value), (0, 0))
    low, high = RANGE[to]
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(max(low, min(high, value)))
    return (int(value) - low) % (high - low + 1) + low


def _quotient(left: Value, right: Value) -> Value:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    whole = abs(int(left)) // abs(int(right))
    return whole if (int(left) < 0) == (int(right) < 0) else -whole
