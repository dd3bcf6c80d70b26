"""Proposals of a state directory for commands, over a world that only reads."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from fleet.app.fix_parts import fix_parts
from fleet.app.reading import ReadingWorld
from fleet.errors import UsageError
from fleet.fix.permission.allow_git import allow_folder
from fleet.fix.permission.permit import ProposePermit
from fleet.fix.propose import PATCH
from fleet.fix.recovery import EVIDENCE, ProposalUpkeep
from fleet.store.rows import ProposalRow


def permit_of(world: ReadingWorld) -> ProposePermit:
    """What may be proposed."""
    return ProposePermit(world, allow_folder())


def upkeep_of(world: ReadingWorld) -> ProposalUpkeep:
    """What withdraws proposals, and answers for them."""
    parts = partial(fix_parts, world.config, world.platform, world.state)
    return ProposalUpkeep(world, parts, permit_of(world))


def evidence(world: ReadingWorld, run: str) -> dict[str, Any]:
    """What the gate of a proposal has seen, and its patch, as far as they are on this machine."""
    folder = world.folder(run) / "evidence"
    try:
        gate = json.loads((folder / EVIDENCE).read_bytes())["steps"]
    except (OSError, ValueError, KeyError):
        gate = []
    return {"gate": gate, "patch": patch_of(world.folder(run))}


def patch_of(folder: Path) -> str:
    """The patch of a proposal, from the folder of its run; "" where it is not on this machine."""
    try:
        return (folder / "evidence" / PATCH).read_text("utf-8", "replace")
    except OSError:
        return ""


async def one_of(world: ReadingWorld, begin: str) -> ProposalRow:
    """The proposal whose id, or whose item, begins so; UsageError for none or several."""
    rows = await world.journal.proposals(world.platform.name)
    found = [row for row in rows if row.proposal_id.startswith(begin)]
    found = found or [row for row in rows if row.item.startswith(begin)][-1:]
    if not begin or len(found) != 1:
        raise UsageError(f"no proposal {begin!r}, or several", remedy="fleet propose list")
    return found[0]
