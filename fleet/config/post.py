"""What is published without a person: `[post]` of a profile."""

from __future__ import annotations

from typing import Literal

from fleet.config.section import Section


class PostSection(Section):
    """Which findings a person releases before they are posted."""

    hold: tuple[Literal["critical", "high", "medium", "low", "info"], ...] = ()
    """Severities that wait for `fleet findings release`, proven and sealed meanwhile. Outages do not wait."""
