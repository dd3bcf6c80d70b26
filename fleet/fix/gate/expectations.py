"""A probe's expectation as a regression test can state it: simple comparisons of one answer. Pure.

An expectation is CEL. What a test of a repository can say of an answer is a list of groups, all of which
hold; of each group one statement does: a field, an operator and a value.
"""

from __future__ import annotations

import ast
import json
import re

Statement = tuple[str, str, object]
"""A field of FIELDS, one of `== != < <= > >= in not-in has lacks`, and a value."""
FIELDS = frozenset({"status", "ok", "text", "content_type", "allow_origin", "location"})
"""What the shipped template reads from an answer."""
_OPPOSITE = {"==": "!=", "<": ">=", ">": "<=", "in": "not-in", "has": "lacks"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in"}
_WORDS = {"&&": " and ", "||": " or ", "!": " not "}
_TOKEN = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|&&|\|\||!(?!=)""")
"""Text, which stays as it is, and what Python spells as a word: the rest of simple CEL is Python as well."""


def stated(expectation: str) -> tuple[tuple[Statement, ...], ...] | None:
    """The groups of an expectation; None for one that says more than this form can."""
    text = f"({_TOKEN.sub(lambda hit: hit[1] or _WORDS[hit[0]], expectation)})"
    try:
        groups = _options(ast.parse(text, mode="eval").body, ast.And)
        return tuple(tuple(_statement(one, text) for one in _options(group, ast.Or)) for group in groups)
    except (SyntaxError, ValueError):
        return None


def _options(node: ast.expr, sign: type[ast.boolop]) -> list[ast.expr]:
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, sign) else [node]


def _statement(node: ast.expr, text: str) -> Statement:
    """ValueError for what is none."""

    def value(of: ast.expr) -> object:
        return json.loads(re.sub(r"'([^'\\\"]*)'", r'"\1"', ast.get_source_segment(text, of) or ""))

    match node:
        case ast.UnaryOp(op=ast.Not(), operand=negated):
            field, sign, wanted = _statement(negated, text)
            return field, _OPPOSITE[sign], wanted
        case ast.Compare(left=ast.Attribute(ast.Name("result"), field), ops=[op], comparators=[right]):
            found = field, _SIGNS.get(type(op), ""), value(right)
        case ast.Compare(left, [ast.In()], [ast.Attribute(ast.Name("result"), field)]):
            found = field, "has", value(left)
        case ast.Call(ast.Attribute(ast.Attribute(ast.Name("result"), field), "contains"), [argument]):
            found = field, "has", value(argument)
        case ast.Attribute(ast.Name("result"), "ok"):
            found = "ok", "==", True
        case _:
            raise ValueError(text)
    if found[0] not in FIELDS or not _fits(found):
        raise ValueError(text)
    return found


def _fits(statement: Statement) -> bool:
    """Whether a field and a value are of one type: everything else is for CEL to judge."""
    field, sign, value = statement
    if sign == "in":
        return isinstance(value, list) and bool(value) and all(_fits((field, "==", one)) for one in value)
    if field == "status":
        return type(value) in (int, float) and sign not in ("has", "lacks")
    if field == "ok":
        return type(value) is bool and sign in ("==", "!=")
    return isinstance(value, str) and sign in ("==", "!=", "has", "lacks")
