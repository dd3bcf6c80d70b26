"""The coverage of a run, from the state file in its folder; apart from `coverage`, which a status imports."""

from __future__ import annotations

from pathlib import Path

from fleet.drivers.session import RunOver
from fleet.runs.desk.coverage import Coverage
from fleet.runs.desk.plan import Plan
from fleet.runs.desk.state_file import RunState, StateFile


def coverage(folder: Path, run: str, outcome: str) -> dict[str, list[dict[str, str]]]:
    """The probes of each group; all groups are empty for a run that was never driven."""
    file = StateFile(folder, run)
    try:
        state = file.load() if file.path.exists() else RunState.begin(run, Plan(()))
    except RunOver:
        state = RunState.begin(run, Plan(()))
    accounts = {f"accounts of {url}": one.reason for url, one in state.accounts.items() if one.reason}
    return Coverage.of(state.plan, outcome, accounts).as_data()
