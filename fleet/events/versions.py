"""Pure: records of older writers, and of leonard's format, as current records (harness-facts 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel

from fleet.events.model import Event, Footer, Header

_MODELS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {model.model_fields["type"].default: model for model in get_args(get_args(Event)[0])}
)
_RENAMED = {"run.started": "header", "run.ended": "footer"}
_EMPTY: Mapping[str, Callable[[], Any]] = {"str": str, "int": int, "dict": dict}
_HEADER = {
    "agents_md_hash": "persona_sha256",
    "build_identifier": "build",
    "model_identifier": "model",
    "harness_version": "driver",
    "config": "policy",
}


def renewed(raw: dict[str, Any]) -> dict[str, Any]:
    """The record under its current name: removed fields are dropped, missing header fields are empty.

    A record of an unknown type is returned unchanged.
    """
    kind = _RENAMED.get(str(raw.get("type")), str(raw.get("type")))
    model = _MODELS.get(kind)
    if model is None:
        return raw
    new = _CHANGES.get(kind, dict)(raw) | {"type": kind}
    return {key: value for key, value in new.items() if key in model.model_fields}


def _header(raw: dict[str, Any]) -> dict[str, Any]:
    new = {"schema_version": 1, **{_HEADER.get(key, key): value for key, value in raw.items()}}
    for name, field in Header.model_fields.items():
        if field.is_required() and new.get(name) is None:
            annotation = field.annotation
            new[name] = _EMPTY[getattr(annotation, "__name__", "str")]()
    return new


def _turn(raw: dict[str, Any]) -> dict[str, Any]:
    """Leonard's turn contains its actions; here they have their own records."""
    new = {key: value for key, value in raw.items() if value is not None}
    for key in ("proposed", "executed"):
        if isinstance(new.get(key), dict):
            del new[key]
    if raw.get("executed_action") or raw.get("proposed_action"):
        seen = raw.get("observation") if isinstance(raw.get("observation"), dict) else {}
        acted = {key: raw[key] for key in ("proposed_action", "executed_action") if key in raw}
        new["observation"] = {**(seen or {}), **acted}
    return new


def _footer(raw: dict[str, Any]) -> dict[str, Any]:
    new = {key: value for key, value in raw.items() if value is not None}
    new.setdefault("outcome", "harness_error")
    why = ", ".join(str(raw[key]) for key in ("harness_error", "termination_detail") if raw.get(key))
    if why:
        new.setdefault("detail", why)
    if "total_turns" in new:
        new.setdefault("turns", new["total_turns"])
    if isinstance(took := new.get("total_duration_ms"), int | float):
        new.setdefault("seconds", took / 1000)
    return new


_CHANGES: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    Header.model_fields["type"].default: _header,
    Footer.model_fields["type"].default: _footer,
    "turn": _turn,
}
