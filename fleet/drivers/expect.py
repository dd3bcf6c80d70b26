"""Expectations in CEL: what must hold on a healthy platform. Nothing is evaluated as Python.

The library and its grammar (0.4 s, 11 MB) are loaded by the first expectation only.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celpy import Environment, Runner
    from celpy.adapter import JSON
    from celpy.celtypes import Value
    from lark import Token, Tree

VARIABLES = ("result", "results", "history", "facts")
"""The last step's result, every step's result in order, figures of earlier runs by metric, and what the
profile promises."""

_WORDS = tomllib.loads((Path(__file__).parent / "functions.toml").read_text("utf-8"))
MACROS: Mapping[str, str] = _WORDS["macros"]
FUNCTIONS: Mapping[str, str] = _WORDS["functions"]
"""Functions of expectations: how each is written, and what it answers."""
REDUCE = "reduce"
_CLASS = re.compile(r"<class '(?:celpy\.celtypes\.)?(\w+?)(?:Type)?'>")
_OVERLOAD = re.compile(
    r"found no matching overload for (?:Token\('RULE', ')?([^' ]+)(?:'\))? applied to '(.*)'", re.S
)
OPERATORS: Mapping[str, str] = MappingProxyType(
    dict(
        zip(
            ["lt", "le", "gt", "ge", "eq", "ne", "in", "add", "sub", "mul", "div", "mod", "not", "neg"],
            ["<", "<=", ">", ">=", "==", "!=", "in", "+", "-", "*", "/", "%", "!", "-"],
            strict=True,
        )
    )
)
"""Operators by their names in the library's grammar."""

_PARTS = frozenset(("conditionalor", "conditionaland", "relation", "unary", "addition", "multiplication"))
_READS = frozenset(("member_dot", "member_dot_arg", "member_index", "ident_arg"))
_INSIDE = "undeclared reference"


class ExpectationError(Exception):
    """The expectation does not compile, or cannot be decided on these results."""


@dataclass(frozen=True, slots=True)
class Values:
    """The variables of an expectation."""

    results: Sequence[Mapping[str, Any]]
    history: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def named(self) -> dict[str, Any]:
        """By the names of VARIABLES."""
        named = {"result": self.results[-1], "results": list(self.results)}
        return named | {"history": dict(self.history), "facts": dict(self.facts)}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    import celpy

    return celpy.Environment()


@cache
def functions() -> Mapping[str, Any]:
    """What an expectation may call, by name: cel-python's functions without its operators, and our own."""
    from celpy.evaluation import base_functions

    return {name: made for name, made in base_functions.items() if name[0].isalpha()} | {"get": _get}


def operators() -> Mapping[str, Any]:
    """Operators and functions by cel-python's names."""
    from celpy.evaluation import base_functions

    return {**base_functions, **functions()}


def _get(where: Value, key: Value, otherwise: Value) -> Value:
    """The member of a map, or `otherwise`: optional access, which CEL's grammar here has no sign for."""
    if not isinstance(where, dict):
        raise TypeError("get() reads a map")
    return where.get(key, otherwise)


@lru_cache(maxsize=512)
def compiled(text: str) -> Tree[Token]:
    """The parse tree; celpy's CELParseError."""
    return _environment().compile(text)


@lru_cache(maxsize=512)
def _program(text: str) -> Runner:
    from celpy.celparser import CELParseError

    try:
        return _environment().program(compiled(text), functions={"get": _get})
    except CELParseError as error:
        lines = str(error).strip().splitlines() or ["syntax"]
        raise ExpectationError(" ".join(lines)) from None


def require(text: str) -> None:
    """ExpectationError unless the text is CEL."""
    _program(text)


def ready(text: str) -> None:
    """Compile a text ahead of its use: the first one in a process loads the library."""
    with suppress(ExpectationError):
        _program(text)


def holds(text: str, values: Values) -> bool:
    """Whether the expectation holds; ExpectationError when undecidable, which is never a finding."""
    from celpy.celtypes import BoolType

    answer = evaluate(text, values)
    if not isinstance(answer, BoolType):
        raise ExpectationError("is neither true nor false")
    return bool(answer)


def number(text: str, values: Values) -> float:
    """A figure worth keeping, such as `result.p95_ms`; ExpectationError when it is not a number."""
    from celpy.celtypes import DoubleType, IntType

    answer = evaluate(text, values)
    if not isinstance(answer, DoubleType | IntType):
        raise ExpectationError("is not a number")
    return float(answer)


def invariant(text: str, views: Mapping[str, Any]) -> bool:
    """Whether an invariant holds of these values, by their names; unlike in `holds`, no integer is too large
    to count with. ExpectationError when undecidable."""
    from celpy.celtypes import BoolType

    answer = _answer(text, {name: _wide(value) for name, value in views.items()})
    if not isinstance(answer, BoolType):
        raise ExpectationError("is neither true nor false")
    return bool(answer)


@cache
def _wide_type() -> type[Any]:
    """cel-python's integer without its limit of 64 bits: amounts of tokens have 18 decimals."""
    from celpy.celtypes import IntType

    def counted(name: str) -> Any:  # noqa: ANN401  a method
        plain = getattr(int, name)

        def method(self: int, *others: int) -> Any:  # noqa: ANN401  of the type made here
            if name.endswith(("div__", "mod__")):  # CEL divides towards zero
                one, by = (
                    (int(others[0]), int(self)) if name.startswith("__r") else (int(self), int(others[0]))
                )
                size = abs(one) // abs(by) if "div" in name else abs(one) % abs(by)
                negative = (one < 0) != (by < 0) if "div" in name else one < 0
                return int.__new__(made, -size if negative else size)
            return int.__new__(made, plain(int(self), *map(int, others)))

        return method

    pairs = [f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "floordiv", "mod")]
    methods = {name: counted(name) for name in ("__neg__", *pairs)}
    methods |= {"__truediv__": methods["__floordiv__"], "__rtruediv__": methods["__rfloordiv__"]}
    made = type("WideInt", (IntType,), methods)
    return made


def _wide(value: JSON) -> Any:  # noqa: ANN401  of the library's types
    from celpy.adapter import json_to_cel
    from celpy.celtypes import ListType

    if isinstance(value, list | tuple):
        return ListType(_wide(one) for one in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__new__(_wide_type(), value)
    return json_to_cel(value)


def evaluate(text: str, values: Values) -> object:
    """The value of an expression, of the library's types; ExpectationError when it has none."""
    from celpy.adapter import json_to_cel

    return _answer(text, {name: json_to_cel(_integers(value)) for name, value in values.named().items()})


def _answer(text: str, named: dict[str, Any]) -> object:
    from celpy.evaluation import CELEvalError

    try:
        return _program(text).evaluate(named)
    except (CELEvalError, ValueError, OverflowError, RecursionError) as error:
        # not only its own errors: an integer that overflows 64 bits is a plain ValueError
        reason = str(error.args[0] if error.args else error)
        raise ExpectationError(f"cannot be decided: {_reworded(reason)}") from None


def _integers(value: JSON) -> JSON:
    """The same with integers of any size, such as amounts in wei: compared exactly; sums may overflow."""
    from celpy.celtypes import IntType

    if isinstance(value, dict):
        return {key: _integers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_integers(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__new__(IntType, value)
    return value


def decided(text: str, values: Values) -> list[tuple[str, str]]:
    """Each part of an expectation and its value as JSON, or why it has none; the whole is last.

    Parts inside a macro's own variable have no single value, and are left out.
    """
    found: dict[str, str] = {}
    for node in reversed(list(compiled(text).iter_subtrees_topdown())):  # type: ignore[no-untyped-call]
        if node.data in _READS or (node.data in _PARTS and len(node.children) > 1):
            part = text[node.meta.start_pos : node.meta.end_pos]
            said = _value(part, values)
            if _INSIDE not in said:
                found.setdefault(part, said)
    found.pop(text, None)
    return [*found.items(), (text, _value(text, values))]


def _value(text: str, values: Values) -> str:
    from celpy.celtypes import BoolType

    try:
        value = evaluate(text, values)
    except ExpectationError as error:
        return str(error)
    return json.dumps(bool(value) if isinstance(value, BoolType) else value, ensure_ascii=False, default=str)


def _reworded(reason: str) -> str:
    """The library's reason in the words of an expectation: without its classes, and without the value."""
    if reason.endswith("does not support field selection"):
        return f"a {''.join(_CLASS.findall(reason)[-1:]).lower()} has no fields"
    if overload := _OVERLOAD.fullmatch(reason):
        kinds = " and ".join(one.lower() for one in _CLASS.findall(overload[2]))
        word = overload[1].strip("_")
        return f"{OPERATORS.get(word.rpartition('_')[2], word)} does not take {kinds}"
    return "there is no member at this index" if reason == "invalid_argument" else reason
