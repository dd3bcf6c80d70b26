"""An earlier run's calls asked again by a new run, and where the answers differ."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fleet.drivers.compare import compare
from fleet.drivers.replay import Replay, recorded, repeatable
from fleet.personas.load import LoadedPersona
from fleet.personas.model import PolicySection
from fleet.runs.driver_choice import DriverChoice

AROUND = ("persona_sha256", "platform", "chain_id", "rung", "jail", "build")
"""What may have changed around the calls."""


def again(path: Path, persona: LoadedPersona) -> tuple[LoadedPersona, DriverChoice]:
    """The persona with its grant and budget, without probes, one turn per call of this trajectory; and its
    driver. UsageError for a file that is not a trajectory."""
    was = recorded(path)
    policy = PolicySection(max_turns_per_run=len(repeatable(was.calls)) + 1)
    plan = persona.persona.model_copy(update={"probe": (), "policy": policy})
    driver = DriverChoice(name="replay", drive=Replay(was), patience=len(was.calls) + 1)
    return replace(persona, persona=plan), driver


def compared(before: Path, after: Path) -> dict[str, Any]:
    """Two trajectories, call by call: `changed` around them, `calls`, and how many are `different` or
    `unseen`. UsageError for a file that is not a trajectory."""
    was, now = recorded(before), recorded(after)
    calls = [asdict(row) for row in compare(was, now)]
    return {
        "changed": {
            key: (old, new)
            for key in AROUND
            if (old := getattr(was.header, key)) != (new := getattr(now.header, key))
        },
        "calls": calls,
        "different": sum(row["state"] == "different" for row in calls),
        "unseen": sum(row["state"] in ("no answer", "refused") for row in calls),
    }
