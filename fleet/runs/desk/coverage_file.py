"""The coverage of a run, from the state file in its folder; apart from `coverage`, which a status imports."""

from __future__ import annotations

from pathlib import Path

from fleet.drivers.session import RunOver
from fleet.runs.desk.coverage import Coverage, CoverageData, LeftPart
from fleet.runs.desk.plan import Plan
from fleet.runs.desk.state_file import RunState, StateFile


def coverage(folder: Path, run: str, outcome: str) -> CoverageData:
    """The probes of each group, and what was left; all groups are empty for a run that was never driven."""
    file = StateFile(folder, run)
    try:
        state = file.load() if file.path.exists() else RunState.begin(run, Plan(()))
    except RunOver:
        state = RunState.begin(run, Plan(()))
    parts = {f"accounts of {url}": one.reason for url, one in state.accounts.items() if one.reason}
    parts |= {one.part: one.reason for one in state.left if one.kind == "unexplored"}
    left = (LeftPart(one.part, one.reason, one.kind == "cut") for one in state.left if one.part not in parts)
    return Coverage.of(state.plan, outcome, parts, left).as_data()
