"""What the watch of the contracts last saw and told, from the journal alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fleet.store.journal import Journal
from fleet.triggers.chain.telling import KEY, TOLD, expected, tellings


async def posture_seen(journal: Journal, platform: str) -> dict[str, Any]:
    """The parts at the last block that was looked at (None before the first), the changes that were told,
    newest first, with the number of the one that a reorganisation took back, and what a person announced."""
    text = await journal.get(KEY + platform)
    state = json.loads(text) if text else None
    told = tellings(await journal.facts(f"{TOLD}{platform}:"))
    return {
        "platform": platform,
        "block": state["trail"][-1]["number"] if state else None,
        "parts": dict(sorted(state["parts"].items())) if state else {},
        "changes": [
            {"number": one.seq, "at": at, "block": one.block, "undoes": one.undoes or None, **asdict(change)}
            for at, one in reversed(told)
            for change in one.changes
        ],
        "announced": await expected(journal, platform, datetime.now(UTC)),
    }
