"""`kill -9` beside what is held and committed, and beside the vault: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from pyrage import decrypt, x25519

from fleet.clock import SystemClock
from fleet.findings.closing import is_commitment
from fleet.findings.reader import read
from fleet.runs.vault import Vault
from tests.runs.test_outbox import FP, HEADER

ROOT = Path(__file__).parents[2]


def test_what_is_held_keeps_one_hash_and_becomes_one_entry_wherever_its_process_is_killed(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "tests.runs.killed_hold", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(trials) > 10) == (0, True), done.stderr[-2000:]
    assert [one["status"] for one in trials] == [signal.SIGKILL] * (len(trials) - 1) + [0]
    for one in trials:
        assert one["again"] == 0, (one["at"], done.stderr[-2000:])
        committed, entry = one["texts"]
        assert is_commitment(read(committed)), one["at"]
        assert (FP in committed, entry) == (False, HEADER.replace("low", "critical")), one["at"]
        assert (one["state"], one["data"]["committed"]) == ("posted", 1), one["at"]


SEALS = """
import sys
from pathlib import Path
from fleet.clock import SystemClock
from fleet.runs.vault import Vault
vault = Vault(Path(sys.argv[1]), sys.argv[2], SystemClock())
for number in range(12):
    assert vault.keep("p", "r", f"web {number}", "password", f"hunter-{number}-hunter")
    print(number, flush=True)
"""


def test_a_vault_whose_process_is_killed_has_whole_values_and_each_of_them_once(tmp_path: Path) -> None:
    key, draw = x25519.Identity.generate(), Random(34)
    public = str(key.to_public())
    command = [sys.executable, "-c", SEALS, str(tmp_path), public]
    vault = Vault(tmp_path, public, SystemClock())
    for kills in (*range(4), -1):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if kills >= 0:
                for _ in range(2 * kills + 1):
                    process.stdout.readline()
                time.sleep(draw.random() * 0.04)  # within the next value
                process.kill()
            process.stdout.read()
        assert process.wait() == (-signal.SIGKILL if kills >= 0 else 0)
        kept = {one.place: vault.sealed(one.name) for one in vault.known()}
        assert len(kept) == len(vault.known()) >= 2 * kills + 1
        for place, sealed in kept.items():
            number = place.rpartition(" ")[2]
            assert decrypt(sealed or b"", [key]) == f"hunter-{number}-hunter".encode()
    assert len(vault.known()) == 12
