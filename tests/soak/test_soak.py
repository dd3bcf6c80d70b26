"""The soak, as a process of its own: half an hour by `make soak`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.files import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.devnet, pytest.mark.jail, pytest.mark.crash]

MINUTES = float(os.environ.get("SOAK_MINUTES", "0.3"))
SEED = int(os.environ.get("SOAK_SEED", "5"))
SHORT = MINUTES < 10
MIB = 40.0 if SHORT else 16.0
"""How much more memory a daemon may hold at the end than after its first quarter, when it is warm."""
DESCRIPTORS = 16 if SHORT else 6
"""The same for descriptors: a waiting jail holds six; in a short life both may wait at its end alone."""
SLACK_S = 900.0


def apart() -> list[str]:
    """A mount namespace of its own, for a small disk that is gone with its last process; [] where none is."""
    words = ["unshare", "--mount", "--propagation", "private"]
    usable = (
        os.geteuid() == 0 and shutil.which("unshare") and subprocess.run([*words, "true"]).returncode == 0
    )
    return words if usable else []


@pytest.mark.skipif("SOAK_MINUTES" not in os.environ, reason="minutes of faults: make soak")
@pytest.mark.timeout(MINUTES * 60 + SLACK_S + 60)
def test_every_invariant_holds_while_faults_come_and_go(tmp_path: Path) -> None:
    """Bounds are on what is true once the daemon had time to mend, never on how long it took."""
    namespace = apart()
    if not namespace:
        print("soak: no small disk without root and unshare: files of the daemon may not grow, instead")
    words = [
        *namespace,
        sys.executable,
        "-m",
        "tests.soak",
        "--folder",
        str(tmp_path / "s"),
        "--minutes",
        str(MINUTES),
        "--seed",
        str(SEED),
        *(["--small-disk"] if namespace else []),
    ]
    again = f"SOAK_MINUTES={MINUTES:g} SOAK_SEED={SEED} make soak"
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        said, _ = process.communicate(timeout=MINUTES * 60 + SLACK_S)
    finally:
        if process.poll() is None:
            process.terminate()  # it ends the devnet and the daemon
            process.wait(90)
    assert said, f"the soak itself broke; again by: {again}"
    report = json.loads(said)
    print(said)
    assert (process.returncode, report["complaint"]) == (0, ""), f"again by: {again}"
    assert report["untrue"] == [], f"again by: {again}"
    growth = report["growth"]
    assert growth["descriptors"] <= DESCRIPTORS, f"{growth}; again by: {again}"
    assert growth["mib"] <= MIB, f"{growth}; again by: {again}"
    assert sum(report["faults"].values()) >= (3 if SHORT else 20)
