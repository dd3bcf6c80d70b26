"""Placeholders in a probe's arguments: what makes one repro runnable on any run and platform.

    {site} {proxy}     base URLs of the profile
    {face:NAME}        public face of NAME; `{face:{name}}` is the run's own disposable name
    {name}             a fresh disposable name of this attempt, `qa-<run>-<n>`
    {run}              the run id

The unresolved form is the repro that is reported, so that the same defect reads the same in every run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")


@dataclass(frozen=True, slots=True)
class Bindings:
    """Values of the placeholders in one attempt at a probe; `face` holds `{name}`."""

    run: str
    name: str
    site: str
    proxy: str
    face: str

    def text(self, value: str) -> str:
        for key in ("name", "run", "site", "proxy"):
            value = value.replace("{" + key + "}", getattr(self, key))
        return _FACE.sub(lambda match: self.face.replace("{name}", match.group(1)), value)

    def resolve(self, value: Any) -> Any:
        """The same structure with every string resolved; keys are left alone."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.resolve(item) for item in value]
        return value


def wants_name(value: Any) -> bool:
    """Whether any string in the structure holds `{name}`."""
    if isinstance(value, str):
        return "{name}" in value
    if isinstance(value, Mapping):
        return any(wants_name(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(wants_name(item) for item in value)
    return False
