"""What the pages need of a persona in use: on /readyz, so that `fleet status` need not read the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from fleet.gate.budget import Unit, day_limits
from fleet.personas.model import Persona


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewMember:
    """`looks`: its runs look at the platform, not only at the log; `day`: its limits of a day."""

    name: str
    looks: bool = True
    day: Mapping[Unit, int] = field(default_factory=dict)

    @classmethod
    def of(cls, persona: Persona) -> Self:
        day = day_limits(persona.budget.day) if persona.budget else {}
        return cls(name=persona.name, looks=persona.driver != "triage", day=day)
