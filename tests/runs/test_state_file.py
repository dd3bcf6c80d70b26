"""state.json: read strictly, written whole, and nobody's but the run's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.session import RunOver
from fleet.runs.desk.state import COPY, NAME, Plan, RunState, StateFile
from tests.runs.table import look

STATE = RunState.begin("r", Plan.of([look("a"), look("b")]))


def saved(folder: Path) -> StateFile:
    file = StateFile(folder, "r")
    file.save(STATE)
    return file


def bad(file: StateFile) -> str:
    with pytest.raises(RunOver) as over:
        file.check()
    assert over.value.outcome == "state_invalid"
    return over.value.detail


def test_what_was_saved_is_what_is_read(tmp_path: Path) -> None:
    file = saved(tmp_path)
    file.check()
    assert file.load() == STATE
    assert file.load().plan == Plan.of([look("a"), look("b")])
    assert (file.path.stat().st_mode & 0o777) == 0o600
    assert sorted(os.listdir(tmp_path)) == sorted([NAME, COPY])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"turns": "abc"}, "/turns: Input should be a valid integer"),
        ({"turns": "3"}, "/turns: Input should be a valid integer"),
        ({"turns": -1}, "/turns: Input should be greater than or equal to 0"),
        ({"turns": 1.5}, "/turns: Input should be a valid integer"),
        ({"turns": True}, "/turns: Input should be a valid integer"),
        ({"turns": None}, "/turns: Input should be a valid integer"),
        ({"turns": 10**12}, "/turns: Input should be less than or equal to 1000000000"),
        ({"retries_used": -5}, "/retries_used: Input should be greater than or equal to 0"),
        ({"more": 1}, "/more: Extra inputs are not permitted"),
        ({"version": 2}, "/version: Input should be 1"),
        ({"run": "other"}, "it belongs to another run, or names a probe twice"),
        ({"items": [STATE.model_dump(mode="json")["items"][0]] * 2}, "it belongs to another run"),
        ({"turns": 7}, "another process changed it"),
        ({"failed": 1}, "another process changed it"),
    ],
)
def test_a_state_that_cannot_be_ends_the_run(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file = saved(tmp_path)
    file.path.write_text(json.dumps(STATE.model_dump(mode="json") | change))
    assert says in bad(file)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"run":"r","run":"r"}', b"0" * 2_000_000],
)
def test_bytes_that_are_no_state_end_the_run(tmp_path: Path, raw: bytes) -> None:
    file = saved(tmp_path)
    for path in (file.path, tmp_path / COPY):
        path.write_bytes(raw)
    assert bad(file).startswith(f"{NAME}: ")


def test_a_truncated_state_is_mended_from_its_copy_wherever_it_was_cut(tmp_path: Path) -> None:
    file = saved(tmp_path)
    raw = file.path.read_bytes()
    for end in range(0, len(raw.rstrip()), 7):
        file.path.write_bytes(raw[:end])
        assert file.load() == STATE
        assert file.check().startswith(f"{NAME}: ")
        assert (file.path.read_bytes(), file.check()) == (raw, "")


def test_a_copy_that_is_not_what_was_written_mends_nothing(tmp_path: Path) -> None:
    file = saved(tmp_path)
    other = json.dumps(STATE.model_dump(mode="json") | {"turns": 7})
    (tmp_path / COPY).write_text(other)
    file.check()
    file.path.write_bytes(b"{")
    assert "another process changed it" in bad(file)
    assert file.path.read_bytes() == b"{"


def test_a_state_that_is_gone_or_no_file_ends_the_run(tmp_path: Path) -> None:
    file = saved(tmp_path)
    file.path.unlink()
    assert "No such file" in bad(file)
    os.mkfifo(file.path)
    assert "not a small regular file" in bad(file)
    file.path.unlink()
    file.path.symlink_to("/dev/zero")
    bad(file)


def test_a_save_that_fails_leaves_the_old_state(tmp_path: Path) -> None:
    file = saved(tmp_path)
    before = file.path.read_bytes()
    file.path.unlink()
    file.path.mkdir()  # what stands in the way of the replacement
    with pytest.raises(OSError, match="directory"):
        file.save(STATE.model_copy(update={"turns": 1}))
    file.path.rmdir()
    file.path.write_bytes(before)
    file.check()
    assert sorted(os.listdir(tmp_path)) == sorted([NAME, COPY])
