"""Values of top-level consts."""

from __future__ import annotations

from . import nodes as n
from .diagnostic import CompileError
from .operators import convert, fit, fold


def evaluate(node: n.Expr) -> n.Value:
    """The value of a typed const initialiser. Raises CompileError LH0210, LH0211 (does not fit)."""
    match node:
        case n.Literal():
            return node.value
        case n.Path():
            return node.value
        case n.Name(target=n.Const() as const):
            return const.value
        case n.Unary(op="!"):
            value = evaluate(node.operand)
            return not value if isinstance(value, bool) else ~int(value)
        case n.Unary():
            return fit(-evaluate(node.operand), node.type, node.span)  # type: ignore[operator]
        case n.Binary():
            left, right = evaluate(node.left), evaluate(node.right)
            return fold(node.op, left, right, node.type, node.span)
        case n.Cast():
            return convert(evaluate(node.operand), node.type)
    raise CompileError("LH0210", "a const needs a constant expression", node.span)
