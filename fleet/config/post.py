"""What is published without a person: `[post]` of a profile."""

from __future__ import annotations

from fleet.config.section import Section
from fleet.severity import Severity


class PostSection(Section):
    """Which findings a person releases before they are posted."""

    hold: tuple[Severity, ...] = ()
    """Severities that wait for `fleet findings release`, proven and sealed meanwhile. Outages do not wait."""
