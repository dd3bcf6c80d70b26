"""Placeholders in a probe's arguments: they make a repro runnable in any run and on any platform.

personas/placeholders.py lists them.
The unresolved form is the reported repro, so that a defect has the same repro in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.personas.needs import strings
from fleet.personas.placeholders import FACE, TARGET, WORDS


@dataclass(frozen=True, slots=True)
class Bindings:
    """Values of the placeholders in one attempt at a probe; `face` holds `{name}`."""

    run: str
    name: str
    site: str
    proxy: str
    face: str
    listener: str = ""
    targets: Mapping[str, str] = field(default_factory=dict)

    def pointed(self, value: Any) -> Any:  # noqa: ANN401  any JSON
        """The structure with the profile's targets filled in: the repro's form, equal in every run."""
        return mapped(value, lambda text: TARGET.sub(lambda hit: self.targets.get(hit[1], hit[0]), text))

    def text(self, value: str) -> str:
        value = self.pointed(value)
        for key in WORDS:
            value = value.replace("{" + key + "}", getattr(self, key))
        return FACE.sub(lambda match: self.face.replace("{name}", match.group(1)), value)

    def resolve(self, value: Any) -> Any:  # noqa: ANN401  any JSON
        """The same structure with every string resolved; keys are unchanged."""
        return mapped(value, self.text)


def mapped(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401  any JSON
    """The same structure with every string changed; keys are unchanged."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    return value


def wants_name(value: object) -> bool:
    """Whether any string in the structure holds `{name}`."""
    return any("{name}" in text for text in strings(value))
