"""The types of an expectation's variables, derived from the tools' own result types.

A shape's kind is a word of CEL (`int`, `double`, `bool`, `string`, `list`, `map`, `null_type`), `object` for
a result with known fields, or `any` for free JSON, which is only known once an answer is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from sandbox.spec import LowerCase, OneOf
from sandbox.tools import TOOLS

_KINDS: Mapping[Any, str] = {str: "string", int: "int", float: "double", bool: "bool"}


@dataclass(frozen=True, slots=True)
class TypeShape:
    """`fields` of an object, `of`: the members of a list or a map, `items`: those of `results` or of a list
    that is written out, one by one.

    `label` names it for a person; `literal` is the value of a literal; `words` are all values that a text can
    have, () if it can have any. `lower`: what the keys of a map are, or what a text is, where all are lower
    case letters. `optional`: the field may be absent.
    """

    kind: str
    fields: Mapping[str, TypeShape] = field(default_factory=dict)
    of: TypeShape | None = None
    items: tuple[TypeShape, ...] = ()
    label: str = ""
    literal: Any = None
    words: tuple[str, ...] = ()
    lower: str = ""
    optional: bool = False

    @property
    def members(self) -> TypeShape:
        """The shape of a list's or a map's members."""
        return self.of or ANY

    def __str__(self) -> str:
        if self.kind in ("list", "map"):
            return f"{self.kind}({self.members})"
        return self.label or self.kind


ANY, BOOL, INT, DOUBLE, STRING = (TypeShape(kind) for kind in ("any", "bool", "int", "double", "string"))
UINT, BYTES, NULL = (TypeShape(kind) for kind in ("uint", "bytes", "null_type"))


def shape_of(hint: object) -> TypeShape:
    """The shape of a value of a Python type of a tool's arguments or result."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        words = next((one.words for one in inner[1:] if isinstance(one, OneOf)), ())
        lower = next((one.named for one in inner[1:] if isinstance(one, LowerCase)), "")
        return replace(shape_of(inner[0]), words=words, lower=lower)
    if origin is UnionType and NoneType in inner:
        return shape_of(next(one for one in inner if one is not NoneType))
    if origin is tuple:
        return TypeShape("list", of=shape_of(inner[0]) if inner else ANY)
    if origin is dict:
        # free JSON: which members there are is known once an answer is there
        return TypeShape("map", of=shape_of(inner[1])) if inner and inner[1] is not Any else ANY
    if is_dataclass(origin) and isinstance(origin, type):
        hints = get_type_hints(origin, include_extras=True)
        shapes = {
            one.name: replace(shape_of(hints[one.name]), optional=one.metadata.get("absent", False))
            for one in fields(origin)
        }
        return TypeShape("object", shapes)
    return TypeShape(_KINDS.get(origin, "any"))


@cache
def result_of(tool: str) -> TypeShape:
    """The shape of a tool's result; `any` for an unknown tool, which is reported on its own."""
    if (spec := TOOLS.get(tool)) is None:
        return ANY
    return TypeShape("object", shape_of(spec.result).fields, label=f"the result of {tool}")


def variables(tools: Sequence[str]) -> dict[str, TypeShape]:
    """By name, for a probe whose steps call these tools."""
    items = tuple(result_of(tool) for tool in tools)
    results = TypeShape("list", of=_either(items), items=items)
    return {
        "result": items[-1] if items else ANY,
        "results": results,
        "history": TypeShape("object", label="history"),
        "facts": ANY,
    }


def _either(items: Sequence[TypeShape]) -> TypeShape:
    """What holds for every one of these results: the fields that all of them have."""
    if not items or any(one.kind == "any" for one in items):
        return ANY
    common = set.intersection(*(set(one.fields) for one in items))
    both = {name: _common([one.fields[name] for one in items]) for name in items[0].fields if name in common}
    tools = dict.fromkeys(one.label.rpartition(" ")[2] for one in items)
    label = items[0].label if len(tools) == 1 else f"every result of {', '.join(tools)}"
    return TypeShape("object", both, label=label)


def _common(shapes: Sequence[TypeShape]) -> TypeShape:
    """What holds of a field of several results."""
    first = shapes[0]
    if any(one.kind != first.kind for one in shapes):
        return ANY
    return first if all(one == first for one in shapes) else replace(first, of=None, words=())


def one_of(words: Sequence[str]) -> str:
    """All values of a text, for a person."""
    return "one of: " + ", ".join(word or '""' for word in words)
