"""What proposals of killed processes leave on this machine's disk."""

from __future__ import annotations

import logging
from pathlib import Path

from anyio import to_thread

from fleet.errors import FleetError
from fleet.fix.parts import WORK
from fleet.fix.repository.trees import clear_trees
from fleet.jail.rmtree import rmtree

_LOG = logging.getLogger("fleet.fix")


async def clear_remains(state: Path) -> int:
    """Remove work trees, folders of runs and scratch files of dead processes; returns how many.

    The caller holds the lock of the state directory and has started no run yet: they are all dead. What
    cannot be removed is logged: it keeps no process from starting.
    """
    return await to_thread.run_sync(_clear, state)


def _clear(state: Path) -> int:
    count = 0
    try:
        count += clear_trees(state)
        scratch = (state / "proposals").rglob
        for path in [*state.glob(f"runs/*/{WORK}"), *scratch("index-*"), *scratch("patches")]:
            rmtree(path.parent, path.name)
            count += 1
    except (FleetError, OSError) as error:
        _LOG.warning("what proposals have left behind stays: %s", error)
    return count
