"""STOP: whatever is at that path pauses everything, until a person removes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.clock import Clock
from fleet.errors import ConfigError, Refused
from fleet.gate.stop import CHECKS, LOOKS, StopReading, fence_failed, resume, stop, stopped

ROOT = os.geteuid() == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.touch(),
        lambda path: path.write_bytes(b"\xff" * 5000),
        lambda path: path.write_text("[" * 4000),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nothing"),
        lambda path: path.symlink_to(path),
        lambda path: os.mkfifo(path),
    ],
)
@pytest.mark.timeout(5)
def test_anything_there_is_a_stop(state: Path, make: Callable[[Path], None]) -> None:
    assert stopped(state) is None
    make(state / "STOP")
    reading = stopped(state)
    assert reading is not None
    assert reading.why.startswith("STOP is set")


def test_a_missing_or_closed_state_directory_is_a_stop(state: Path) -> None:
    assert stopped(state / "nope") == StopReading("the state directory is missing")
    (state / "file").touch()
    assert "cannot be searched" in str(stopped(state / "file"))
    assert "cannot be searched" in str(stopped(Path(f"{state}\0")))
    state.chmod(0o000)
    if ROOT:
        os.seteuid(65534)
    try:
        reading = stopped(state)
    finally:
        if ROOT:
            os.seteuid(0)
        state.chmod(0o700)
    assert reading is not None
    assert "cannot be searched" in reading.why


def test_it_is_sticky_until_a_person_resumes(state: Path, clock: Clock) -> None:
    first = stop(state, "ada", "the log looks odd", clock)
    assert first.why == "STOP is set: the log looks odd (ada, 2026-01-01T00:16:40Z)"
    assert stop(state, "eve", "never mind", clock) == first
    assert stopped(state) == first
    assert resume(state)
    assert stopped(state) is None
    assert not resume(state)


def test_a_plain_word_is_shown_as_it_is(state: Path) -> None:
    (state / "STOP").write_text("lunch\n")
    reading = stopped(state)
    assert reading is not None
    assert (reading.why, len(reading.since)) == ("STOP is set: lunch", 24)


def test_stop_makes_the_state_directory(state: Path, clock: Clock) -> None:
    assert "why" in stop(state / "new", "ada", "why", clock).why


def test_a_link_is_removed_not_what_it_points_at(state: Path) -> None:
    (state / "real").touch()
    (state / "STOP").symlink_to("real")
    assert resume(state)
    assert (state / "real").exists()


@pytest.mark.parametrize("before", ["", "the pager"])
@pytest.mark.parametrize("fence", CHECKS)
def test_a_failed_fence_stops_and_says_what_to_check(
    state: Path, clock: Clock, fence: Any, before: str
) -> None:
    if before:
        stop(state, "ada", before, clock)
    reading = fence_failed(state, fence, "it leaks", clock)
    assert reading == stopped(state)
    assert reading.check == CHECKS[fence]
    assert "it leaks" in reading.why
    assert before in reading.why  # what a person said stays
    assert stop(state, "eve", "never mind", clock) == fence_failed(state, "jail", "worse", clock) == reading
    with pytest.raises(Refused, match="it leaks"):
        resume(state)
    assert stopped(state) == reading
    assert resume(state, "looked")


@pytest.mark.parametrize("text", ["[1]", '"x"', '{"who": "a", "when": "b", "why": "c", "check": 3}'])
def test_a_file_that_is_no_note_is_a_stop_like_any(state: Path, text: str) -> None:
    (state / "STOP").write_text(text)
    assert stopped(state) is not None


def test_a_directory_is_for_a_person(state: Path) -> None:
    (state / "STOP").mkdir()
    with pytest.raises(ConfigError) as refused:
        resume(state)
    assert refused.value.remedy == "remove it by hand"
    assert stopped(state) is not None


def test_a_stop_that_cannot_be_written_says_so(state: Path, clock: Clock) -> None:
    (state / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        stop(state / "file", "ada", "why", clock)


def test_stop_pauses_every_look_below_and_each_look_has_its_own(state: Path, clock: Clock) -> None:
    look = state / LOOKS / "127.0.0.1-8000"
    look.mkdir(parents=True)
    assert stopped(look) is None
    stop(state, "ada", "the pager", clock)
    found = stopped(look)
    assert found is not None
    assert "the pager" in found.why
    assert f"(in {state})" in found.why
    stop(look, "ada", "this one too", clock)
    assert resume(state)
    assert "this one too" in str(stopped(look))
    assert resume(look)
    assert stopped(look) is None
    (state / "STOP").mkdir()  # whatever it is
    assert stopped(look) is not None
    assert stopped(state / "other") is not None  # missing
