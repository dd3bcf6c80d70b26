"""Proposals that a killed process left halfway, settled as soon as its run has ended, on any daemon."""

from __future__ import annotations

import logging

import anyio

from fleet.errors import FleetError
from fleet.fix.recovery import ProposalUpkeep
from fleet.retry import PROPOSAL

_LOG = logging.getLogger("fleet.fix")


class ProposalWatch:
    """Looks at a start and then ever more rarely; below `propose` nothing leaves this machine."""

    def __init__(self, upkeep: ProposalUpkeep) -> None:
        self._upkeep = upkeep

    async def run(self) -> None:
        """Look until cancelled."""
        looks = 0
        while True:
            changed = await self.look()
            looks = 0 if changed else looks + 1
            await anyio.sleep(PROPOSAL.pause(max(looks - 1, 0)))

    async def look(self) -> bool:
        """One look; whether anything has changed."""
        try:
            said = await self._upkeep.settle()
        except FleetError as error:  # the journal does not answer: the next look is soon
            _LOG.warning("proposals: %s", error)
            return False
        for line in said:
            _LOG.info("%s", line)
        return bool(said)
