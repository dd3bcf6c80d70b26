"""Which types an operator or a function of CEL takes: asked of cel-python with a sample of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from celpy import celtypes
from celpy.evaluation import CELEvalError

from fleet.drivers.expect import operators
from fleet.drivers.expect_shapes import ANY, TypeShape

NO_OVERLOAD = TypeShape("nothing")

_SAMPLES: dict[str, Any] = {
    "int": celtypes.IntType(1),
    "uint": celtypes.UintType(1),
    "double": celtypes.DoubleType(1.5),
    "bool": celtypes.BoolType(True),
    "string": celtypes.StringType("1"),
    "bytes": celtypes.BytesType(b"1"),
    "null_type": None,
}
_KINDS = {type(value): kind for kind, value in _SAMPLES.items()} | {bool: "bool"}
_ANSWERS_TRUTH = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_in_"})


def applied(name: str, shapes: Sequence[TypeShape]) -> TypeShape:
    """The shape of an operator's or a function's answer to these types; NO_OVERLOAD if it has none."""
    if any(_open(shape) for shape in shapes):
        return TypeShape("bool") if name in _ANSWERS_TRUTH else ANY
    try:
        answer = operators()[name](*map(_sample, shapes))
    except (TypeError, AttributeError):
        return NO_OVERLOAD
    except (ValueError, ArithmeticError, LookupError):
        return ANY  # it takes the type, but not the sample
    if isinstance(answer, CELEvalError):
        return NO_OVERLOAD if issubclass(answer.args[1], TypeError | AttributeError) else ANY
    if isinstance(answer, list) and shapes[0].kind == "list":
        return TypeShape("list", of=replace(shapes[0].members, words=()))
    return TypeShape(_KINDS.get(type(answer), "any"))


def _open(shape: TypeShape) -> bool:
    """Whether nothing is known of it before an answer is there."""
    return shape.kind == "any" or (shape.kind == "list" and _open(shape.members))


def _sample(shape: TypeShape) -> Any:
    if shape.kind == "list":
        return celtypes.ListType([_sample(shape.members)])
    if shape.kind == "map":
        return celtypes.MapType({celtypes.StringType("1"): _sample(shape.members)})
    if shape.kind == "object":
        return celtypes.MapType({celtypes.StringType(name): None for name in shape.fields})
    return _SAMPLES[shape.kind]
