"""Who outside gets something of the fleet's, and who vetted them: `[providers.NAME]` of a profile."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, StringConstraints, model_validator

from fleet.config.section import Section

Factor = Literal[
    "certificates",
    "penetration-tests",
    "incidents",
    "encryption",
    "retention",
    "residency",
    "separation",
    "availability",
    "recovery",
    "contract",
    "breach-notice",
    "audit-rights",
    "termination",
]
"""What is looked at of every provider."""
ModelFactor = Literal[
    "origin", "training-data", "fine-tuning", "customer-data", "prompt-logs", "update-notice"
]
"""What is looked at of one whose model drives, besides."""
Words = Annotated[str, StringConstraints(min_length=3, max_length=1_000)]
YEAR = timedelta(days=366)


class ProviderSection(Section):
    """One provider as somebody vetted it. Secrets are masked before anything is sent."""

    hosts: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:-]{0,252}$")], ...] = Field(
        min_length=1
    )
    """Its hosts, as `fleet.toml` has them; of Apprise URLs without a host their scheme, such as `tgram`."""
    sends: tuple[Literal["public", "internal", "confidential"], ...] = Field(min_length=1)
    """Which data it gets: notices and figures (internal), findings and events of runs (confidential)."""
    regions: tuple[Words, ...] = Field(min_length=1)
    """Where it may keep them, by its contract."""
    found: dict[Factor | ModelFactor, Words]
    """What was found of each factor."""
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    """The model that this was found of, as `[model] name` has it: another version is vetted anew."""
    decision: Literal["approved", "denied", "compromised"]
    """Nothing runs while one that is not approved gets anything."""
    by: Words
    """Who decided."""
    on: date
    """When."""
    reason: Annotated[str, StringConstraints(min_length=10, max_length=1_000)]
    """Why."""
    again: date
    """By when it is looked at again, at most a year later."""
    key_since: date | None = None
    """When the key for it was last changed; None without a key."""
    key_days: int = Field(default=90, ge=1, le=366)
    """After how many days it is changed."""
    without: Words
    """Whether and how tests go on when it is away or compromised."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if lacking := sorted({*get_args(Factor)} - self.found.keys()):
            raise ValueError(f"found lacks {', '.join(lacking)}")
        if not self.on <= self.again <= self.on + YEAR:
            raise ValueError("again is within a year after on")
        return self

    def faults(self, today: date, model: str) -> list[str]:
        """Why nothing may go to it today; `model` is the one that it runs for us, "" for none."""
        found = []
        if self.decision != "approved":
            found.append(f"it is {self.decision}: {self.reason}")
        if today > self.again:
            found.append(f"it was to be looked at again by {self.again}")
        if self.key_since and today > self.key_since + timedelta(days=self.key_days):
            found.append(f"its key of {self.key_since} was to be changed after {self.key_days} days")
        if model and (lacking := sorted({*get_args(ModelFactor)} - self.found.keys())):
            found.append(f"found lacks {', '.join(lacking)}")
        if model and model != self.model:
            found.append(f"{model} was not vetted, but {self.model or 'no model'}")
        return found
