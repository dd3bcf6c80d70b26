"""Replies to a driver: masked, cleaned, and truncated with a mark at the cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fleet.drivers.desk import MAX_REPLY, Reply
from fleet.findings.redact import Redactor
from fleet.text import clean, cut_bytes
from sandbox import strict_json

CUT = "[cut]"
MAX_ARGS = 131_072
"""Most bytes in the arguments of one call."""
_SHARES = (8_192, 4_096, 2_048, 1_024, 256, 64)


def refusal(call_id: str, tool: str, error: str, pointer: str = "") -> Reply:
    """An answer that names the error and its place in the arguments."""
    return Reply(call_id, tool, {"error": clean(error, 1_000), "pointer": clean(pointer, 200)}, is_error=True)


def shaped(redactor: Redactor, tool: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's result as a driver may see it: at most MAX_REPLY bytes of JSON."""
    return fitted(redactor.answer(tool, result))


def fitted(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content cut to MAX_REPLY bytes: texts first, then everything after a point."""
    for share in _SHARES:
        shown = {str(key): _clean(value, share) for key, value in content.items()}
        if _size(shown) <= MAX_REPLY:
            return shown
    whole = json.dumps({str(key): _clean(value, 64) for key, value in content.items()}, default=str)
    return {"text": cut_bytes(whole, MAX_REPLY // 2) + CUT}


def _clean(value: object, share: int) -> Any:  # noqa: ANN401  any JSON
    if isinstance(value, str):
        shown = clean(value, len(value) + 1, newlines=True)
        raw = shown.encode("utf-8", "replace")
        if len(raw) <= share:
            return shown
        return f"{cut_bytes(shown, share)}{CUT} {len(raw) - share} bytes more"
    if isinstance(value, Mapping):
        return {clean(str(key), 200): _clean(inner, share) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner, share) for inner in value]
    return value if value is None or isinstance(value, bool | int | float) else clean(str(value), share)


def _size(content: Mapping[str, Any]) -> int:
    return len(json.dumps(content, default=str).encode())


def arguments(args: Mapping[str, Any] | str) -> dict[str, Any] | str:
    """The arguments of a call as plain JSON, or why they are invalid."""
    if isinstance(args, str):
        return f"the arguments are not a JSON object: {clean(args, 80)!r}"
    try:
        text = json.dumps(dict(args), allow_nan=False, ensure_ascii=False)
        plain: Any = strict_json.loads(text.encode())  # a lone surrogate cannot be encoded
    except (TypeError, ValueError, RecursionError) as error:
        return f"the arguments are not plain JSON: {type(error).__name__}"
    if len(text) > MAX_ARGS:
        return f"the arguments have {len(text)} bytes, at most {MAX_ARGS} are read"
    return dict(plain)


def pointed(bad: str) -> tuple[str, str]:
    """`/url: Field required` as its message and its pointer."""
    pointer, colon, message = bad.partition(": ")
    return (message, pointer) if colon and pointer.startswith("/") else (bad, "")


def small(args: Mapping[str, Any]) -> dict[str, Any]:
    """Refused arguments for the record: they are never used, so their beginnings suffice."""
    shown = {clean(str(key), 40): _clean(value, 256) for key, value in list(args.items())[:16]}
    return (
        shown if _size(shown) <= 4_096 else {"text": cut_bytes(json.dumps(shown, default=str), 2_048) + CUT}
    )
