"""The platform's programs, tried in a jail: by every Python that is here, and where they cannot start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from fleet.jail.model import Image, Jail
from fleet.jail.toolcheck import ToolTrial, judged, try_programs
from sandbox.programs.program import Program
from tests.jail.toolcheck import GOOD, RUSTLITE, tried
from tests.pythons import SUPPORTED, found, roll_call

pytestmark = pytest.mark.jail

ROOT = Path(__file__).parents[2]
SITE = Path(sysconfig.get_path("purelib"))
ACCEPTED = [("compiler", True, False), ("loader", True, False)]


def verdicts(lines: tuple[ToolTrial, ...]) -> list[tuple[str, bool, bool]]:
    return [(one.name, one.ok, one.ours) for one in lines]


def apart(python: str, folder: Path) -> str:
    """An environment of that Python with the one package that the programs need; not a second copy of it."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (site,) = folder.glob("lib/python3*/site-packages")
    try:
        shutil.copytree(SITE / "wasmtime", site / "wasmtime", copy_function=os.link)
    except (OSError, shutil.Error):  # another file system
        shutil.copytree(SITE / "wasmtime", site / "wasmtime", dirs_exist_ok=True)
    return str(folder / "bin" / "python")


def test_the_pythons_that_are_here(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{roll_call()}")
    assert any(found(version) for version in SUPPORTED)


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_python_compiles_and_loads_the_sample_in_its_jail(version: str, tmp_path: Path) -> None:
    """One built with a shared library among them: its jail must show that library to what it starts, too."""
    python = found(version)
    if not python:
        pytest.skip(f"there is no Python {version} here")
    done = subprocess.run(
        [apart(python, tmp_path / "venv"), "-B", "-m", "tests.jail.toolcheck"],
        cwd=ROOT,
        timeout=110,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{SITE}"},
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["version"].startswith(version)
    assert [(one["name"], one["ok"], one["ours"]) for one in answer["tried"]] == ACCEPTED, answer


def test_a_program_that_cannot_be_started_is_told_as_ours(tmp_path: Path) -> None:
    (tmp_path / "tc").mkdir()
    missing = Program(command=("/opt/tc/nothing",), loader=("/bin/sh", "-c", "exit 127"), sample="x")
    lines = tried(missing, tmp_path / "tc")
    assert verdicts(lines) == [("compiler", False, True), ("loader", False, True)]
    assert lines[0].seen == "/opt/tc/nothing cannot be started here: No such file or directory"
    (only,) = tried(Program(command=(*RUSTLITE[:-1], "/opt/tc/nowhere"), sample="x"))
    assert (only.ok, only.ours) == (False, True)
    assert "can't open file '/opt/tc/nowhere'" in only.seen


def test_a_folder_that_is_not_there_is_told_as_ours(tmp_path: Path) -> None:
    lines = tried(GOOD, tmp_path / "nowhere")
    assert verdicts(lines) == [("compiler", False, True), ("loader", False, True)]
    assert "nowhere" in lines[0].seen


def test_what_the_platform_refuses_is_not_ours() -> None:
    wrong = Program(command=GOOD.command, loader=GOOD.loader, sample="fn frame(")
    lines = tried(wrong)
    assert verdicts(lines) == [("compiler", False, False), ("loader", True, False)]
    assert lines[0].seen.startswith("[compiler] sample was expected to be accepted: clean_error: LH")


def test_without_a_sample_only_the_start_is_known() -> None:
    lines = tried(Program(command=GOOD.command, loader=GOOD.loader))
    assert verdicts(lines) == ACCEPTED
    assert all(one.seen.startswith("it starts") for one in lines)


@pytest.mark.anyio
async def test_a_platform_without_programs_needs_no_jail() -> None:
    def refuse(image: Image) -> Jail:
        raise AssertionError("no jail is needed")

    assert await try_programs(Image(), Program(sample="x"), refuse) == ()


def test_a_busy_machine_is_not_the_platform() -> None:
    (only,) = judged({"compiler": {"ours": "", "ending": "unknown", "said": ""}}, True)
    assert (only.ok, only.ours, only.jailed) == (False, True, False)


@pytest.mark.parametrize("answer", [{"compiler": {}}, {"compiler": None}, {"loader": {"ours": 1}}])
def test_nonsense_is_no_good_news(answer: dict[str, Any]) -> None:
    assert verdicts(judged(answer, True)) == [("compiler", False, True)]
