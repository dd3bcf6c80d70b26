"""`make release`: no wheel of a tree whose safety controls do not hold (`python -m tests.release -- BUILD…`).

Each control has its tests, those that came from faults among them. The result stands in `docs/releases/`, for
a year at least, whether it held or not; the build is run only where all of them held.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fleet import __version__
from fleet.clock import iso
from fleet.files import ROOT

CONTROLS: Mapping[str, Sequence[str]] = {
    "scope enforcement": (
        "tests/gate",
        "tests/config/test_url_list.py",
        "tests/config/test_ranges.py",
        "tests/jail/test_broker_policy.py",
        "tests/jail/test_broker_forward.py",
        "tests/jail/test_broker_acts.py",
        "tests/runs/test_signed_scope.py",
        "tests/acceptance/test_apts.py",
    ),
    "kill switch": (
        "tests/service/test_stop_times.py",
        "tests/cli/test_stop_command.py",
        "tests/acceptance/test_rows_stop.py",
    ),
    "escalation triggers": (
        "tests/runs/test_questions.py",
        "tests/runs/test_sightings.py",
        "tests/cli/test_incident.py",
    ),
    "rate limiting": (
        "tests/jail/test_pace.py",
        "tests/runs/test_measures.py",
        "tests/runs/test_target_health.py",
    ),
    "data isolation": (
        "tests/jail/test_battery.py",
        "tests/jail/test_selfcheck.py",
        "tests/findings",
        "tests/runs/test_vault.py",
    ),
    "manipulation resistance": (
        "tests/findings/test_instructions.py",
        "tests/runs/test_claims.py",
        "tests/events/test_chain.py",
    ),
}
"""Tests by control, as APTS-AR-017 names them."""
RELEASES = ROOT / "docs" / "releases"


def held(paths: Sequence[str]) -> bool:
    """Whether these tests pass."""
    return (
        subprocess.run([sys.executable, "-m", "pytest", "-q", *paths], cwd=ROOT, check=False).returncode == 0
    )


def release(
    build: Sequence[str],
    *,
    controls: Mapping[str, Sequence[str]] = CONTROLS,
    folder: Path = RELEASES,
    holds: Callable[[Sequence[str]], bool] = held,
) -> int:
    """Try each control, keep what came of it, and build where all held; the exit status."""
    head = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    results = {name: holds(paths) for name, paths in controls.items()}
    name = f"{__version__}-{commit or 'unknown'}"
    at = iso(datetime.now(UTC))
    record = {"version": __version__, "commit": commit, "at": at, "controls": results}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    if failed := [control for control, well in results.items() if not well]:
        print(f"release: {', '.join(failed)} did not hold: nothing is built", file=sys.stderr)
        return 1
    return subprocess.run(build, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(release(sys.argv[sys.argv.index("--") + 1 :]))
