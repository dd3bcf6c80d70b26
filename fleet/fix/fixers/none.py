"""The fixer that changes nothing: the proposal is then the failing regression test alone."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.fix.model import FixAttempt, FixTask, StepResult
from fleet.fix.ports import TreeJailPort, TreePort


class NoFixer:
    """Implements `Fixer`."""

    name = "none"

    async def fix(
        self, task: FixTask, tree: TreePort, jails: TreeJailPort, failed: Sequence[StepResult]
    ) -> FixAttempt:
        """Leave the tree as it is."""
        return FixAttempt("no fixer is configured: the proposal is the failing test")
