"""How busy the machine is, in one line, from whatever part of /proc there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.runs.proof.attempt import pressure
from sandbox.programs import machine

LOAD = "7.94 6.20 5.01 3/171 12345\n"
STALL = "some avg10=43.21 avg60=14.85 avg300=12.63 total=83788566\nfull avg10=0.00 avg60=0.00 total=0\n"
CORE = "50 0 50 350 20 0 20 10 0 0"
STAT = f"cpu  100 0 100 700 40 0 40 20 7 7\ncpu0 {CORE}\ncpu1 {CORE}\nctxt 9\n"
LATER = STAT.replace("cpu  100 0 100 700 40 0 40 20", "cpu  180 0 100 700 40 0 40 40")


def _proc(folder: Path, **files: str) -> str:
    (folder / "pressure").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", "/")).write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"loadavg": LOAD, "pressure_cpu": STALL, "stat": STAT},
            "load 7.9 on 2 cores, cpu pressure 43 %, steal 2 %",
        ),
        ({"loadavg": LOAD, "stat": STAT}, "load 7.9 on 2 cores, steal 2 %"),
        ({"loadavg": LOAD, "pressure_cpu": STALL}, "load 7.9, cpu pressure 43 %"),
        ({"pressure_cpu": STALL}, "cpu pressure 43 %"),
        ({"stat": STAT}, "steal 2 %"),
        ({}, ""),
        ({"loadavg": "", "pressure_cpu": "", "stat": ""}, ""),
        ({"loadavg": "no", "pressure_cpu": "some avg10=x", "stat": "cpu 1 2 3"}, ""),
        ({"loadavg": "\n", "pressure_cpu": "some avg10=", "stat": "cpu a b c d e f g h"}, ""),
    ],
)
def test_what_can_be_read_is_said(tmp_path: Path, files: dict[str, str], words: str) -> None:
    assert pressure(_proc(tmp_path, **files)) == words


def test_steal_is_that_of_the_time_since_the_call_before(tmp_path: Path) -> None:
    proc = _proc(tmp_path, stat=STAT)
    assert pressure(proc) == "steal 2 %"  # since boot
    _proc(tmp_path, stat=LATER)
    assert pressure(proc) == "steal 20 %"
    assert pressure(proc) == ""  # no time passed


def test_steal_since_a_moment_that_the_caller_kept(tmp_path: Path) -> None:
    earlier = machine.ticks(_proc(tmp_path, stat=STAT))
    assert earlier == (20, 1000)
    assert machine.pressure(earlier, _proc(tmp_path, stat=LATER)) == "steal 20 %"
    assert machine.pressure((900, 100), str(tmp_path)) == ""  # another machine's


def test_nothing_there_at_all(tmp_path: Path) -> None:
    assert pressure(str(tmp_path / "nowhere")) == ""


def test_this_machine() -> None:
    assert pressure().startswith("load ")
