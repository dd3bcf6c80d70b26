"""JSON to dataclasses, strictly: what does not fit is a mistake with a JSON pointer."""

from __future__ import annotations

import functools
import math
from dataclasses import MISSING, fields, is_dataclass
from types import GenericAlias
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from sandbox.spec import Mistake

T = TypeVar("T")
DEPTH = 16
"""Nesting of untyped JSON that an argument may have."""

_WORDS: dict[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


@functools.cache
def _hints(model: type[Any]) -> dict[str, Any]:
    return get_type_hints(model)


def build(model: type[T], data: object, pointer: str = "") -> T:
    """One JSON object to one dataclass; raises Mistake naming the first wrong place."""
    if not isinstance(data, dict):
        raise Mistake(f"{pointer or '/'}: expected an object")
    known = {item.name: item for item in fields(model)}  # type: ignore[arg-type]
    for key in data:
        if key not in known:
            where = f"{pointer}/{_escape(str(key))}"
            raise Mistake(f"{where}: unknown argument; valid here: {', '.join(sorted(known)) or 'none'}")
    hints = _hints(model)  # type: ignore[arg-type]  # a class is hashable
    values: dict[str, Any] = {}
    for name, item in known.items():
        if name in data:
            values[name] = check(hints[name], data[name], f"{pointer}/{name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise Mistake(f"{pointer}/{name}: required")
    return model(**values)


def check(kind: Any, value: object, pointer: str) -> Any:  # noqa: ANN401  a type, and a value of it
    """`value` as `kind` (str, int, float, bool, a dataclass, tuple, dict or a typed form of the last two)."""
    origin = get_origin(kind) or kind
    if origin is tuple:
        if not isinstance(value, list):
            raise Mistake(f"{pointer}: expected an array")
        inner = get_args(kind)[0] if isinstance(kind, GenericAlias) and get_args(kind) else Any
        return tuple(check(inner, item, f"{pointer}/{index}") for index, item in enumerate(value))
    if origin is dict:
        return _dict(kind, value, pointer)
    if kind is Any:
        return _json(value, pointer, DEPTH)
    if is_dataclass(kind) and isinstance(kind, type):
        return build(kind, value, pointer)
    return _scalar(kind, value, pointer)


def _scalar(kind: Any, value: object, pointer: str) -> Any:  # noqa: ANN401  a type, and a value of it
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise Mistake(f"{pointer}: expected a finite number") from None
    if kind not in _WORDS or type(value) is not kind:
        raise Mistake(f"{pointer}: expected {_WORDS.get(kind, 'another type')}")
    if isinstance(value, float) and not math.isfinite(value):
        raise Mistake(f"{pointer}: expected a finite number")
    if isinstance(value, str) and not _is_unicode(value):
        raise Mistake(f"{pointer}: not valid Unicode")
    return value


def _dict(kind: Any, value: object, pointer: str) -> dict[str, Any]:  # noqa: ANN401  a type, and a value of it
    if not isinstance(value, dict):
        raise Mistake(f"{pointer}: expected an object")
    inner = get_args(kind)[1] if len(get_args(kind)) == 2 else Any
    return {str(key): check(inner, item, f"{pointer}/{_escape(str(key))}") for key, item in value.items()}


def _json(value: object, pointer: str, depth: int) -> Any:  # noqa: ANN401  a type, and a value of it
    if depth == 0:
        raise Mistake(f"{pointer}: nested too deeply")
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_json(item, f"{pointer}/{index}", depth - 1) for index, item in enumerate(value))
    if isinstance(value, dict):
        return {
            str(key): _json(item, f"{pointer}/{_escape(str(key))}", depth - 1) for key, item in value.items()
        }
    return _scalar(type(value), value, pointer)


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(key: str) -> str:
    """RFC 6901, and short: the key is a stranger's."""
    return key[:64].encode("utf-8", "replace").decode().replace("~", "~0").replace("/", "~1")
