"""The coverage of a run, from the state file in its folder; apart from `coverage`, which a status imports."""

from __future__ import annotations

from pathlib import Path

from fleet.drivers.session import RunOver
from fleet.runs.desk.coverage import Coverage
from fleet.runs.desk.plan import Plan
from fleet.runs.desk.state_file import StateFile


def coverage(folder: Path, run: str, outcome: str) -> dict[str, list[dict[str, str]]]:
    """The probes of each group; all groups are empty for a run that was never driven."""
    file = StateFile(folder, run)
    try:
        plan = file.load().plan if file.path.exists() else Plan(())
    except RunOver:
        plan = Plan(())
    return Coverage.of(plan, outcome).as_data()
