"""A request line into a jail; out of it a checked answer, or one for each call of a batch; and its file."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import pydantic
import pydantic.dataclasses
from pydantic import TypeAdapter, ValidationError

from fleet.errors import FleetError, JailError
from fleet.files import disk_errors, write_atomic
from fleet.jail.model import End, Outcome
from fleet.text import suggestion
from sandbox import strict_json
from sandbox.spec import PROTOCOL, Context, ToolSpec, as_record

MAX_DEPTH = 32
"""Deepest nesting in a result; later readers walk it by recursion."""
_GARBAGE = (ValueError, KeyError, TypeError, RecursionError)
MAX_WRONG = 5
"""Most wrong arguments that one complaint names."""
MAX_FILE_BYTES = 256 << 10
MAX_FILES = 200
"""Most files that one run keeps."""
_PNG = b"\x89PNG\r\n\x1a\n"
_LOG = logging.getLogger("fleet.attachment")
MAX_VALUES = 10_000
"""Most members of all lists and tables in a result: each is checked, masked, recorded and shown."""


def request_line(spec: ToolSpec, args: Mapping[str, Any], context: Context) -> bytes:
    """The request line that a guest reads."""
    request = {"v": PROTOCOL, "tool": spec.name, "args": dict(args), "ctx": asdict(context)}
    return json.dumps(request, ensure_ascii=True).encode() + b"\n"


def batch_line(
    spec: ToolSpec, calls: Sequence[tuple[int, Mapping[str, Any]]], context: Context, starts_s: float
) -> bytes:
    """The request line of several calls: (question, arguments) of each; none begins after `starts_s`."""
    batch = [{"group": group, "args": dict(args)} for group, args in calls]
    request = {"v": PROTOCOL, "tool": spec.name, "calls": batch, "starts_s": starts_s, "ctx": asdict(context)}
    return json.dumps(request, ensure_ascii=True).encode() + b"\n"


@lru_cache(maxsize=64)
def _adapter(model: type) -> TypeAdapter[Any]:
    strict = pydantic.dataclasses.dataclass(model, frozen=True, config=pydantic.ConfigDict(extra="forbid"))
    return TypeAdapter(strict)


def bad_args(spec: ToolSpec, args: Mapping[str, Any]) -> str | None:
    """Why these arguments are invalid for the tool, each with a JSON pointer, or None."""
    try:
        _adapter(spec.args).validate_python(dict(args))
    except ValidationError as error:
        wrong = []
        for one in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_WRONG]:
            loc, why = one["loc"], one["msg"]
            if one["type"] == "unexpected_keyword_argument":
                known = [field.name for field in fields(spec.args)]
                why = f"unknown argument{suggestion(str(loc[-1]), known)}"
            wrong.append(f"/{'/'.join(str(part) for part in loc)}: {why}")
        return "; ".join(wrong)
    return None


def schema(spec: ToolSpec) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, as strict as `bad_args`."""
    return _adapter(spec.args).json_schema()


def answer(spec: ToolSpec, outcome: Outcome) -> dict[str, Any]:
    """The call's answer; JailError when the jail itself broke.

    The process's exit decides: only exit status 0 makes its output an answer, and the output is untrusted
    until it parses as the tool's own result type.
    """
    if outcome.end is End.TIMEOUT:
        return _failure("timeout", f"{spec.name} did not end within {outcome.seconds:.1f} s", outcome)
    if outcome.end is End.FLOOD:
        return _failure("too_large", f"{spec.name} printed more than its cap", outcome)
    if outcome.end is End.LOST:
        raise JailError(f"the jail of {spec.name} ended without a status")
    if outcome.end is End.SIGNALED or outcome.code != 0:
        how = f"signal {outcome.code}" if outcome.end is End.SIGNALED else f"status {outcome.code}"
        tail = outcome.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return _failure(
            "internal", f"the guest of {spec.name} ended with {how}: {''.join(tail)}"[:500], outcome
        )
    try:
        return result_of(spec, strict_json.loads(outcome.stdout, values=MAX_VALUES))
    except _GARBAGE as error:
        return _failure(
            "internal", f"the guest of {spec.name} returned garbage: {type(error).__name__}", outcome
        )


def answers(spec: ToolSpec, outcome: Outcome) -> tuple[dict[int, dict[str, Any]], bool]:
    """The results of a batch by number of the call, and whether the guest ended as it should.

    What was written in order before a guest broke, was killed or wrote garbage are answers; nothing after.
    """
    found: dict[int, dict[str, Any]] = {}
    whole = outcome.end is End.EXITED and outcome.code == 0
    for text in outcome.stdout.split(b"\n")[:-1]:
        try:
            line = strict_json.loads(text, values=MAX_VALUES)
            result, number = result_of(spec, line), line["call"]
            if type(number) is not int or number <= max(found, default=-1):
                raise ValueError("out of order")
        except _GARBAGE:
            return found, False
        found[number] = result
    return found, whole and outcome.stdout.endswith(b"\n")


def result_of(spec: ToolSpec, line: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    """The checked result of one line of a guest; ValueError, KeyError or TypeError for anything else."""
    if line["v"] != PROTOCOL:
        raise ValueError("another protocol")
    result = _adapter(spec.result).validate_python(line["result"], strict=False)
    plain: dict[str, Any] = json_safe(as_record(result))
    if spec.caps:
        _capped(plain, spec.caps)
    return plain


def _capped(value: object, caps: Mapping[str, int], key: str = "") -> None:
    """ValueError for a text or a list that is longer than its field may be."""
    if isinstance(value, str | list) and len(value) > caps.get(key, len(value)):
        raise ValueError(f"{key}: too long")
    if isinstance(value, dict):
        for name, inner in value.items():
            _capped(inner, caps, name)
    elif isinstance(value, list):
        for inner in value:
            _capped(inner, caps, "")


def json_safe(value: object) -> Any:  # noqa: ANN401  any JSON
    """Tuples become lists, so that a result is equal before and after a file.

    ValueError for what our files cannot hold: NaN, a lone surrogate, too deep nesting.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    text.encode()
    plain: Any = json.loads(text)
    if _deeper(plain, MAX_DEPTH):
        raise ValueError("nested too deep")
    return plain


def _deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(not levels or _deeper(one, levels - 1) for one in inner)


def _failure(error_class: str, error: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "ok": False,
        "latency_ms": round(outcome.seconds * 1000, 3),
        "error": error,
        "error_class": error_class,
        "hint": "",
    }


def attached(spec: ToolSpec, result: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The answer without its file, which is kept as `folder/<sha256>.png`.

    The file is a stranger's: stored, bounded, and never opened. The answer's `sha256` names it; one that
    cannot be kept (a full disk) costs the file, not the answer.
    """
    text = result.get(spec.attaches)
    if not spec.attaches or not isinstance(text, str) or not text:
        return dict(result)
    kept = dict(result) | {spec.attaches: ""}
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return kept
    name = hashlib.sha256(data).hexdigest()
    if not data.startswith(_PNG) or len(data) > MAX_FILE_BYTES or name != result.get("sha256"):
        return kept
    path = folder / f"{name}.png"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists() and sum(1 for _ in folder.glob("*.png")) < MAX_FILES:
            with disk_errors(path):
                write_atomic(path, data)
    except (OSError, FleetError) as error:
        _LOG.warning("%s: not kept: %s", path, error)
    return kept
