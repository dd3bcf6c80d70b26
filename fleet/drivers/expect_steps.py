"""How an expectation was decided: its parts, each with its value."""

from __future__ import annotations

import json
from typing import Any

from fleet.drivers.expect import ExpectationError, Values, compiled, evaluate

_PARTS = frozenset(("conditionalor", "conditionaland", "relation", "unary", "addition", "multiplication"))
_READS = frozenset(("member_dot", "member_dot_arg", "member_index", "ident_arg"))
_INSIDE = "undeclared reference"


def decided(text: str, values: Values) -> list[tuple[str, str]]:
    """Each part of an expectation and its value as JSON, or why it has none; the whole is last.

    Parts inside a macro's own variable have no single value, and are left out.
    """
    found: dict[str, str] = {}
    for node in reversed(list(compiled(text).iter_subtrees_topdown())):
        if node.data in _READS or (node.data in _PARTS and len(node.children) > 1):
            part = text[node.meta.start_pos : node.meta.end_pos]
            said = _value(part, values)
            if _INSIDE not in said:
                found.setdefault(part, said)
    found.pop(text, None)
    return [*found.items(), (text, _value(text, values))]


def _value(text: str, values: Values) -> str:
    try:
        return json.dumps(_plain(evaluate(text, values)), ensure_ascii=False, default=str)
    except ExpectationError as error:
        return str(error)


def _plain(value: Any) -> Any:
    from celpy.celtypes import BoolType

    return bool(value) if isinstance(value, BoolType) else value
