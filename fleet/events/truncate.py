"""Pure: one record in at most N bytes, with a mark at every omission."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic_core import PydanticSerializationError

from fleet.events.model import Event
from fleet.events.record import STAMP

_STEPS = ((8192, 512), (2048, 128), (512, 32), (128, 8), (48, 2))
"""Characters of a text and items of a list or table to keep, step by step."""
_FREE = frozenset({"args", "result", "observation", "validation", "policy"})
"""Fields of any shape; all other lists and tables of a record are kept whole."""
_FIXED = frozenset({*STAMP, "type", "schema_version", "persona", "persona_sha256", "rung", "outcome"})
DEPTH = 12


def fit(event: Event, limit: int) -> bytes:
    """The record's line without its end; longer than `limit` only when nothing is left to cut."""
    try:
        line = event.model_dump_json().encode()
    except PydanticSerializationError:  # a lone surrogate: legal in JSON, not in UTF-8
        line = _line(event.model_dump())
    if len(line) <= limit:
        return line
    record = event.model_dump(mode="json")
    for text, items in _STEPS:
        short = {
            key: value if key in _FIXED else _field(key, value, text, items) for key, value in record.items()
        }
        if len(line := _line(short)) <= limit:
            return line
    bare = {key: {"…": "[cut]"} if key in _FREE and value else short[key] for key, value in record.items()}
    return _line(bare)


def packed(record: Mapping[str, Any], limit: int) -> bytes:
    """A record of any shape as JSON; what is too long for `limit` bytes is cut, with a mark."""
    line = _line(record)
    for text, items in _STEPS:
        if len(line) <= limit:
            return line
        line = _line({key: shrink(value, text, items) for key, value in record.items()})
    if len(line) <= limit:
        return line
    return _line({key: shrink(value, _STEPS[-1][0], 0, 0) for key, value in record.items()})


def _line(record: Mapping[str, Any]) -> bytes:
    form = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text = form(record)
    except ValueError:  # NaN and the infinities are not JSON
        text = form(json.loads(json.dumps(record), parse_constant=lambda _: None))
    return text.encode("utf-8", "replace")


def _field(key: str, value: object, text: int, items: int) -> object:
    if key in _FREE:
        return shrink(value, text, items)
    if isinstance(value, str):
        return _text(value, text)
    if isinstance(value, list):  # of texts or numbers: a mark is a text, so lists of numbers only get shorter
        kept = [_text(one, text) if isinstance(one, str) else one for one in value[: items * 8]]
        if len(value) > len(kept) and isinstance(value[0], str):
            kept.append(f"…[cut {len(value) - len(kept)} items]")
        return kept
    return value


def shrink(value: object, text: int, items: int, depth: int = DEPTH) -> object:
    """The same value with texts, lists, tables and nesting cut to size, each cut marked."""
    if isinstance(value, str):
        return _text(value, text)
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return "…[cut]"
    if isinstance(value, list):
        kept = [shrink(one, text, items, depth - 1) for one in value[:items]]
        return kept if len(value) <= items else [*kept, f"…[cut {len(value) - items} items]"]
    pairs = list(value.items())
    table = {_text(key, text): shrink(one, text, items, depth - 1) for key, one in pairs[:items]}
    return table if len(pairs) <= items else {**table, "…": f"[cut {len(pairs) - items} keys]"}


def _text(value: str, limit: int) -> str:
    return value if len(value) <= limit else f"{value[:limit]}…[cut {len(value) - limit} characters]"
