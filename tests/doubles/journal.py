"""Rows of the journal as tests begin them."""

from __future__ import annotations

from typing import Any

from fleet.store.rows import NewRun


def new_run(run_id: str, persona: str = "p", *, key: str = "", **more: Any) -> NewRun:
    """A run of the platform `d` that waits, with a key of its own."""
    usual = {"platform": "d", "trigger": "t", "rung": "observe", "budget": {}}
    return NewRun(run_id=run_id, persona=persona, key=key or run_id, **usual | more)
