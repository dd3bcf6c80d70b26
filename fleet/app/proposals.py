"""Proposals of a state directory for commands: its world without a lock, a jail or a key that signs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fleet.app.fix_parts import fix_parts
from fleet.app.reading import ReadingWorld, reading_world
from fleet.errors import UsageError
from fleet.findings.redact import Redactor
from fleet.fix.permission.allow_git import allow_folder
from fleet.fix.permission.permit import ProposePermit
from fleet.fix.propose import PATCH
from fleet.fix.recovery import EVIDENCE, ProposalUpkeep
from fleet.store.proposal_rows import ProposalRow


class _Everyone:
    """A person owns every run that has ended."""

    async def mine(self, run: str, /) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ProposalWorld(ReadingWorld):
    """A FixWorld that can look, and withdraw for a person."""

    @property
    def source(self) -> _Everyone:
        return _Everyone()

    @property
    def redactor(self) -> Redactor:
        return Redactor()

    @property
    def item(self) -> str:
        return ""

    def folder(self, run: str) -> Path:
        return self.state / "runs" / run

    @property
    def permit(self) -> ProposePermit:
        return ProposePermit(self, allow_folder())

    @property
    def upkeep(self) -> ProposalUpkeep:
        return ProposalUpkeep(self, partial(fix_parts, self.config, self.platform, self.state), self.permit)

    def evidence(self, run: str) -> dict[str, Any]:
        """What the gate of a proposal has seen, and its patch, as far as they are on this machine."""
        folder = self.folder(run) / "evidence"
        try:
            gate = json.loads((folder / EVIDENCE).read_bytes())["steps"]
        except (OSError, ValueError, KeyError):
            gate = []
        try:
            patch = (folder / PATCH).read_text("utf-8", "replace")
        except OSError:
            patch = ""
        return {"gate": gate, "patch": patch}

    async def one(self, begin: str) -> ProposalRow:
        """The proposal whose id, or whose item, begins so; UsageError for none or several."""
        rows = await self.journal.proposals(self.platform.name)
        found = [row for row in rows if row.proposal_id.startswith(begin)]
        found = found or [row for row in rows if row.item.startswith(begin)][-1:]
        if not begin or len(found) != 1:
            raise UsageError(f"no proposal {begin!r}, or several", remedy="fleet proposals list")
        return found[0]


@asynccontextmanager
async def proposal_world(state: Path, platform: str | None = None) -> AsyncIterator[ProposalWorld]:
    """Open it; raises ConfigError, UsageError, TryAgain."""
    async with reading_world(state, platform, ask=False) as world:
        yield ProposalWorld(
            world.state, world.config, world.platform, world.journal, world.chain, world.clock
        )
