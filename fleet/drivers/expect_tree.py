"""Reads parts of an expectation's parse tree: paths, literals, arguments. Loads the library."""

from __future__ import annotations

from typing import Any

from celpy.evaluation import Activation, CELEvalError, Evaluator
from lark import Token, Tree

Node = Tree[Token]
Branch = Node | Token
Path = tuple[str, ...]
"""The names of `result.headers.x`."""


def guards(tree: Node) -> set[Path]:
    """The members that the expression itself asks for, by has() or `in`."""
    found: set[Path] = set()
    for node in tree.iter_subtrees():
        if node.data == "ident_arg" and node.children[0] == "has" and len(node.children) > 1:
            found |= {path for one in arguments_of(node) if (path := path_of(one))}
        if node.data == "relation" and len(node.children) == 2:
            asked: Any = node.children[0]
            where = node.children[1]
            if asked.data == "relation_in" and (path := path_of(where)):
                key = literal_of(asked.children[0])
                found |= {(*path, key)} if isinstance(key, str) else set()
    return found


def path_of(node: Branch) -> Path:
    """The names of `result.headers.x` or `result.headers["x"]`; () for any other expression."""
    while isinstance(node, Tree) and len(node.children) == 1 and node.data not in ("ident", "literal"):
        if node.data in ("list_lit", "exprlist"):
            return ()
        node = node.children[0]
    if not isinstance(node, Tree):
        return ()
    if node.data == "ident":
        return (str(node.children[0]),)
    if node.data not in ("member_dot", "member_index") or not (path := path_of(node.children[0])):
        return ()
    key = str(node.children[1]) if node.data == "member_dot" else literal_of(node.children[1])
    return () if key is None else (*path, str(key))


def literal_of(node: Branch) -> str | int | None:
    """The value of a literal as Python has it; None for any other expression."""
    while isinstance(node, Tree) and len(node.children) == 1 and node.data != "literal":
        node = node.children[0]
    if not isinstance(node, Tree) or node.data != "literal":
        return None
    token: Any = node.children[0]
    try:
        value = Evaluator(node, Activation()).evaluate()
    except (ValueError, CELEvalError):
        return None
    return {"STRING_LIT": str, "MLSTRING_LIT": str, "INT_LIT": int}.get(token.type, lambda _: None)(value)


def arguments_of(node: Node) -> list[Branch]:
    """The arguments of a call."""
    last = node.children[-1] if node.children else None
    return list(last.children) if isinstance(last, Tree) and last.data == "exprlist" else []
