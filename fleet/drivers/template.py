"""Placeholders in a probe's arguments: they make a repro runnable in any run and on any platform.

    {site} {proxy}     base URLs of the profile
    {face:NAME}        public face of NAME; `{face:{name}}` is the run's own disposable name
    {target:ROLE}      what the profile's `[targets]` names for a role: a name, or a URL
    {name}             a fresh disposable name of this attempt, `qa-<run>-<n>`
    {run}              the run id

The unresolved form is the reported repro, so that a defect has the same repro in every run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.personas.needs import strings

_FACE = re.compile(r"\{face:([a-z0-9-]{1,63})\}")
_TARGET = re.compile(r"\{target:([a-z][a-z0-9-]{0,31})\}")


@dataclass(frozen=True, slots=True)
class Bindings:
    """Values of the placeholders in one attempt at a probe; `face` holds `{name}`."""

    run: str
    name: str
    site: str
    proxy: str
    face: str
    targets: Mapping[str, str] = field(default_factory=dict)

    def pointed(self, value: Any) -> Any:
        """The structure with the profile's targets filled in: the repro's form, equal in every run."""
        return mapped(value, lambda text: _TARGET.sub(lambda hit: self.targets.get(hit[1], hit[0]), text))

    def text(self, value: str) -> str:
        value = self.pointed(value)
        for key in ("name", "run", "site", "proxy"):
            value = value.replace("{" + key + "}", getattr(self, key))
        return _FACE.sub(lambda match: self.face.replace("{name}", match.group(1)), value)

    def resolve(self, value: Any) -> Any:
        """The same structure with every string resolved; keys are unchanged."""
        return mapped(value, self.text)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The same structure with every string changed; keys are unchanged."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    return value


def wants_name(value: Any) -> bool:
    """Whether any string in the structure holds `{name}`."""
    return any("{name}" in text for text in strings(value))
