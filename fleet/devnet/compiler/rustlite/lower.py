"""Syntax tree to nodes; the only recursion over unchecked depth, so the depth is capped here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from . import nodes as n
from ._parser import Token, Tree
from .diagnostic import CompileError, Span
from .literals import literal

DEPTH = 96
"""Deepest nesting of blocks and operators; every later stage may then recurse freely."""


def lower(tree: Tree) -> list[n.Item]:
    """The items of a program, in order. Raises CompileError LH0005, LH0006 and LH0107 (nesting)."""
    return [ITEMS[item.data](item) for item in tree.children]


def _span(what: Token | Tree) -> Span:
    if isinstance(what, Token):
        return what.start_pos, what.end_pos
    return (0, 0) if what.meta.empty else (what.meta.start_pos, what.meta.end_pos)


def _function(tree: Tree) -> n.Function:
    public, name, params, result, body = tree.children
    lowered = [
        n.Param(_span(p.children[1]), str(p.children[1]), p.children[0] is not None, _type(p.children[2]))
        for p in params.children
    ]
    returns = _type(result) if result is not None else None
    return n.Function(_span(name), str(name), public is not None, lowered, returns, _block(body, 1))


def _const(tree: Tree) -> n.Const:
    _, name, declared, _, init = tree.children
    return n.Const(_span(name), str(name), _type(declared), expr(init, 1))


def _enum(tree: Tree) -> n.Enum:
    _, name, variants = tree.children
    return n.Enum(_span(name), str(name), [(str(v), _span(v)) for v in variants.children])


ITEMS: dict[str, Callable[[Tree], n.Item]] = {"fn_item": _function, "const_item": _const, "enum_item": _enum}


def _type(tree: Tree) -> n.TypeName:
    if tree.data == "unit_type":
        return n.TypeName(_span(tree), n.UNIT)
    text = "".join(tree.children)
    return n.TypeName(_span(tree), text)


def expr(tree: Tree, depth: int) -> n.Expr:
    """One expression; `depth` counts the nodes above it."""
    if depth > DEPTH:
        raise CompileError("LH0107", f"nested more than {DEPTH} levels deep", _span(tree))
    lowered: n.Expr = EXPRS[tree.data](tree, depth + 1)
    return lowered


def _block(tree: Tree, depth: int) -> n.Block:
    if depth > DEPTH:
        raise CompileError("LH0107", f"nested more than {DEPTH} levels deep", _span(tree))
    stmts: list[n.Let | n.ExprStmt] = []
    tail: n.Expr | None = None
    for child in tree.children:
        if child.data == "let_stmt":
            mutable, name, declared, _, value = child.children
            kind = _type(declared) if declared is not None else None
            stmts.append(n.Let(_span(name), str(name), mutable is not None, kind, expr(value, depth + 1)))
        elif child.data in ("expr_stmt", "block_stmt"):
            semi = child.data == "expr_stmt" or len(child.children) == 2
            stmts.append(n.ExprStmt(_span(child), expr(child.children[0], depth + 1), semi))
        elif child.data != "empty_stmt":
            tail = expr(child, depth + 1)
    if (
        tail is None
        and tree.children
        and tree.children[-1].data == "block_stmt"
        and not cast(n.ExprStmt, stmts[-1]).semi
    ):
        tail = cast(n.ExprStmt, stmts.pop()).value
    return n.Block(_span(tree), stmts, tail)


def _paren(tree: Tree, depth: int) -> n.Expr:
    inner = expr(tree.children[0], depth)
    inner.span = _span(tree)
    return inner


def _unary(tree: Tree, depth: int) -> n.Expr:
    operand = expr(tree.children[1], depth)
    op = str(tree.children[0])
    if (
        op == "-"
        and isinstance(operand, n.Literal)
        and not operand.bits
        and not isinstance(operand.value, (bool, bytes))
    ):
        return n.Literal(_span(tree), -cast(float, operand.value), operand.suffix)
    return n.Unary(_span(tree), op, operand)


def _binary(tree: Tree, depth: int) -> n.Expr:
    left, op, right = tree.children
    return n.Binary(_span(tree), str(op), expr(left, depth), expr(right, depth))


def _assign(tree: Tree, depth: int) -> n.Expr:
    name, op, value = tree.children
    return n.Assign(_span(tree), str(name), str(op)[:-1], expr(value, depth), _span(name))


def _if(tree: Tree, depth: int) -> n.If:
    cond, then, other = tree.children
    lowered = None if other is None else cast(n.Block | n.If, expr(other, depth))
    return n.If(_span(tree), expr(cond, depth), _block(then, depth), lowered)


def _match(tree: Tree, depth: int) -> n.Match:
    subject, *arms = tree.children
    return n.Match(_span(tree), expr(subject, depth), [_arm(arm, depth) for arm in arms])


def _arm(tree: Tree, depth: int) -> n.Arm:
    patterns = [c for c in tree.children[0].children if isinstance(c, Tree)]
    wild = any(p.data == "pattern" and p.children[0].type == "UNDERSCORE" for p in patterns)
    lowered = [] if wild else [_pattern(p) for p in patterns]
    return n.Arm(_span(tree.children[0]), lowered, expr(tree.children[1], depth))


def _pattern(tree: Tree) -> n.Literal | n.Path | n.Name:
    if tree.data == "path":
        return n.Path(_span(tree), *map(str, tree.children))
    token = tree.children[-1]
    if token.type == "NAME":
        return n.Name(_span(tree), str(token))
    value = literal(token)
    if tree.data == "negative":
        value.value = -cast(int, value.value)
    value.span = _span(tree)
    return value


def _call(tree: Tree, depth: int) -> n.Expr:
    return n.Call(_span(tree), str(tree.children[0]), [expr(arg, depth) for arg in tree.children[1].children])


def _return(tree: Tree, depth: int) -> n.Expr:
    return n.Return(_span(tree), expr(tree.children[0], depth) if tree.children else None)


def _cast(tree: Tree, depth: int) -> n.Expr:
    return n.Cast(_span(tree), expr(tree.children[0], depth), _type(tree.children[1]))


EXPRS: dict[str, Callable[[Tree, int], Any]] = {
    "literal": lambda t, _: literal(t.children[0]),
    "unit": lambda t, _: n.Unit(_span(t)),
    "name": lambda t, _: n.Name(_span(t), str(t.children[0])),
    "path": lambda t, _: n.Path(_span(t), *map(str, t.children)),
    "paren": _paren,
    "call": _call,
    "unary": _unary,
    "binary": _binary,
    "cast": _cast,
    "assign": _assign,
    "block": _block,
    "if_expr": _if,
    "while_expr": lambda t, d: n.While(_span(t), expr(t.children[0], d), _block(t.children[1], d)),
    "loop_expr": lambda t, d: n.Loop(_span(t), _block(t.children[0], d)),
    "match_expr": _match,
    "return_expr": _return,
    "break_expr": lambda t, _: n.Jump(_span(t), "break"),
    "continue_expr": lambda t, _: n.Jump(_span(t), "continue"),
}
