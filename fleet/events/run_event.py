"""What every event of a run has."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class RunEvent(BaseModel):
    """`run` and `at` are set by the run's stream."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    run: str = ""
    at: str = ""  # ISO time
