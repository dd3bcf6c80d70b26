"""Whether any answer could change what an expectation says, decided by evaluating its parts.

An expectation is taken apart at `&&`, `||`, `!` and `? :` only. A part that compares one quantity, such as
`result.status` or `size(result.text)`, with literals is evaluated with every value that can matter: the
literals, their neighbours, and one that is none of them. A part without a variable has the value it has. Any
other part may be true or false. Only what is the same in every case is constant, so that no expectation is
refused for an answer that was not thought of. Loads the library: imported by the first check only.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lark import Token, Tree

from fleet.drivers.expect import OPERATORS, VARIABLES, ExpectationError, Values, compiled, holds
from fleet.drivers.expect_tree import Branch, Node, arguments_of, path_of

MOST_CASES = 20_000
"""Cases of one expectation; one with more is not taken for constant."""
MOST_PARTS = 12
"""The same for the comparisons of one quantity."""
_NO_ANSWER = Values([{}])
_TEXTS = frozenset(("STRING_LIT", "MLSTRING_LIT"))
_NUMBERS = frozenset(("INT_LIT", "FLOAT_LIT"))
_ORDERS = frozenset(("<", "<=", ">", ">="))
_SIZE = re.compile(r"size\([\w.\[\]\"']+\)|[\w.\[\]\"']+\.size\(\)")
_PASSED = frozenset(("expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication"))
_PASSED |= {"unary", "member", "primary", "paren_expr"}
_READS = frozenset(("member_dot", "member_index"))


def constant(text: str) -> bool | None:
    """What a sound expectation always is; None for one that an answer can change, and for one in doubt."""
    parts = _Parts(text)
    parts.collect(tree := compiled(text))
    found: set[bool] = set()
    for case in parts.cases():
        found.add(_value(tree, case))
        if len(found) > 1:
            break
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Two sides, spelled out; a side that is the `quantity` takes its values."""

    left: str
    word: str
    right: str
    quantity: str
    literals: tuple[Token, ...]

    def holds(self, value: str) -> bool | None:
        """Whether it holds for a value of its quantity; None if that cannot be decided."""
        left, right = (f"({value})" if one == self.quantity else one for one in (self.left, self.right))
        return _held(f"{left} {self.word} {right}")


@dataclass(slots=True)
class _Parts:
    """The parts of one expectation. The same tree is the same part."""

    text: str
    fixed: dict[Node, bool] = field(default_factory=dict)
    free: set[Node] = field(default_factory=set)
    """Those that may be either."""
    compared: dict[str, dict[Node, _Comparison]] = field(default_factory=dict)
    """By quantity: its comparisons, which depend on one another."""

    def collect(self, node: Node) -> None:
        """Sort all parts of a tree."""
        node = _core(node)
        if inner := _joined(node):
            for one in inner:
                self.collect(one)
            return
        comparison = self._comparison(node)
        if comparison and comparison.quantity:
            self.compared.setdefault(comparison.quantity, {})[node] = comparison
            return
        spelled = f"{comparison.left} {comparison.word} {comparison.right}" if comparison else ""
        spelled = spelled or self._source(node)
        alone = not any(_is_variable(one) for one in node.iter_subtrees())
        if alone and spelled and (value := _held(spelled)) is not None:
            self.fixed[node] = value
        else:
            self.free.add(node)

    def cases(self) -> Iterator[Mapping[Node, bool]]:
        """Every case of all parts together; none if there are too many."""
        if any(len(parts) > MOST_PARTS for parts in self.compared.values()):
            return
        each = [[{part: True}, {part: False}] for part in self.free]
        each += [_of_quantity(quantity, parts) for quantity, parts in self.compared.items()]
        if math.prod(map(len, each)) > MOST_CASES:
            return
        for case in itertools.product(*each):
            yield self.fixed | {part: value for one in case for part, value in one.items()}

    def _comparison(self, node: Node) -> _Comparison | None:
        """A comparison of at most one quantity with literals, or of it with itself."""
        if node.data != "relation" or len(node.children) != 2:
            return None
        operator, right = node.children
        assert isinstance(operator, Tree)
        sides = [self._side(one) for one in (operator.children[0], right)]
        (left, of_left), (right_, of_right) = sides
        fields = {one for one, literals in sides if not literals}
        if not (left and right_) or len(fields) > 1:
            return None
        word = OPERATORS[str(operator.data).rpartition("_")[2]]
        ordered = word in _ORDERS and any(one.type in _TEXTS for one in (*of_left, *of_right))
        if ordered or (word == "in" and not right_.startswith("[")):
            return None
        return _Comparison(left, word, right_, "".join(fields), (*of_left, *of_right))

    def _side(self, node: Branch) -> tuple[str, tuple[Token, ...]]:
        """A literal or a list of literals with these, or a quantity; "" for anything else."""
        assert isinstance(node, Tree)
        node = _core(node)
        if node.data == "literal" and isinstance(token := node.children[0], Token):
            return str(token), (token,)
        if node.data == "list_lit":
            items = [self._side(one) for one in arguments_of(node)]
            listed = f"[{', '.join(text for text, _ in items)}]"
            known = items and all(literals for _, literals in items)
            return (listed, tuple(one for _, literals in items for one in literals)) if known else ("", ())
        source = self._source(node)
        is_field = node.data in _READS and path_of(node)[:1] in {(name,) for name in VARIABLES}
        is_size = _SIZE.fullmatch(source) and any(map(_is_variable, node.iter_subtrees()))
        return (source if is_field or is_size else "", ())

    def _source(self, node: Node) -> str:
        """The text of a node; "" where the library does not say where it ends."""
        if node.data == "literal":
            return str(node.children[0])
        start, end = node.meta.start_pos, node.meta.end_pos
        return "" if start is None or end is None else self.text[start:end]


def _value(node: Node, case: Mapping[Node, bool]) -> bool:
    """What an expectation is in a case."""
    node = _core(node)
    inner = _joined(node)
    if not inner:
        return case[node]
    if node.data == "expr":
        return _value(inner[1 if _value(inner[0], case) else 2], case)
    if node.data == "unary":
        return not _value(inner[0], case)
    either = node.data == "conditionalor"
    return (any if either else all)(_value(one, case) for one in inner)


def _of_quantity(quantity: str, parts: Mapping[Node, _Comparison]) -> list[dict[Node, bool]]:
    """Every case of the comparisons of one quantity; any, where they cannot be decided by values."""
    counts = _SIZE.fullmatch(quantity) is not None
    found: dict[tuple[bool | None, ...], None] = {}
    for value in _values([token for one in parts.values() for token in one.literals], counts=counts):
        found[tuple(one.holds(value) for one in parts.values())] = None
    if not found or any(None in case for case in found):
        found = dict.fromkeys(itertools.product((True, False), repeat=len(parts)))
    return [dict(zip(parts, map(bool, case), strict=True)) for case in found]


def _values(literals: list[Token], *, counts: bool) -> list[str]:
    """Values of a quantity as literals: those that it is compared with, and others between and beside them.

    None where that is not all that can matter.
    """
    kinds = {one.type for one in literals}
    if not kinds:
        return ["1"]
    if kinds == {"BOOL_LIT"}:
        return ["true", "false"]
    if kinds <= _TEXTS:
        return [*map(str, literals), json.dumps("".join(map(str, literals)) + "?")]
    if not kinds <= _NUMBERS:
        return []
    given = sorted({(float if "FLOAT_LIT" in kinds else int)(one) for one in literals})
    found = {one + step for one in given for step in (-1, 0, 1)}
    if "FLOAT_LIT" in kinds:
        found |= {(one + other) / 2 for one, other in itertools.pairwise(given)}
    return [repr(one) for one in sorted(found) if one >= 0 or not counts]


def _core(node: Node) -> Node:
    """The node that says something, inside of those that pass on their only child."""
    while node.data in _PASSED and len(node.children) == 1 and isinstance(inner := node.children[0], Tree):
        node = inner
    return node


def _joined(node: Node) -> list[Node]:
    """What `&&`, `||`, `!` or `? :` join; [] for a part of its own."""
    trees = [one for one in node.children if isinstance(one, Tree)]
    if len(trees) == 3 and node.data == "expr":
        return trees
    if len(trees) == 2 and node.data in ("conditionalor", "conditionaland"):
        return trees
    return trees[1:] if len(trees) == 2 and trees[0].data == "unary_not" else []


def _is_variable(node: Node) -> bool:
    return node.data == "ident" and str(node.children[0]) in VARIABLES


def _held(text: str) -> bool | None:
    """Whether a part without variables holds; None if that cannot be decided."""
    try:
        return holds(text, _NO_ANSWER)
    except ExpectationError:
        return None
