"""The persona files as the morning page shows them where no daemon runs: `personas check` judges them."""

from __future__ import annotations

from pathlib import Path

from fleet.config import ROOT
from fleet.personas.load import load_all
from fleet.service.crew import CrewMember
from sandbox.tools import TOOLS

FOLDER = ROOT / "personas"


def personas() -> tuple[list[CrewMember], list[tuple[str, str]]]:
    """The valid files, and name and reason of each other one; expectations are not judged, for the time."""
    good, errors = load_all(FOLDER, tools=TOOLS, bad_args=lambda *_: None, bad_expectation=lambda *_: ())
    return [CrewMember.of(one.persona) for one in good], [(Path(one.file).stem, str(one)) for one in errors]
