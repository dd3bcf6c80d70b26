"""What a person reads while runs go on: each defect once a run, however many places show it."""

from __future__ import annotations

import pytest

from fleet.cli.progress import Progress
from fleet.events.model import FindingRaised, FindingVerified

FP = "0123456789ab"


def test_a_defect_is_said_once_a_run_however_many_instances_show_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress()
    for run, title in (("r1", "x on /a"), ("r1", "x on /b"), ("r2", "x on /b")):
        progress(FindingRaised(run=run, fingerprint=FP, probe="p", title=title))
    progress(FindingVerified(run="r1", fingerprint=FP, confirmed=3, tries=3, state="confirmed"))
    said = [line.split(maxsplit=1) for line in capsys.readouterr().err.splitlines()]
    assert said == [
        ["r1", "saw: x on /a"],
        ["r2", "saw: x on /b"],
        ["r1", "confirmed 3/3: x on /b"],
    ]
