"""The dial file: one exact word in a file that only its owner can have written, or else observe."""

from __future__ import annotations

import itertools
import json
import os
import pwd
import stat
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.clock import Clock, SystemClock, iso
from fleet.errors import ConfigError
from fleet.gate.dial import (
    DialNote,
    DialReading,
    Moment,
    read_dial,
    read_note,
    set_by,
    this_moment,
    write_dial,
)
from fleet.gate.model import Rung

ROOT = os.geteuid() == 0


def _write(path: Path, data: bytes = b"exercise\n", mode: int = 0o600) -> Path:
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("rung", list(Rung))
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_the_exact_word_counts(state: Path, rung: Rung, end: str, mode: int) -> None:
    path = _write(state / "autonomy", (rung + end).encode(), mode)
    assert read_dial(path) == DialReading(rung, True)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"  \n", "empty"),
        (b"EXERCISE!!", "not one of"),
        (b"EXERCISE\n", "not one of"),
        (b"Exercise", "not one of"),
        (b"\xef\xbb\xbfexercise\n", "text behind a byte-order mark (the bytes EF BB BF"),
        (b"\xef\xbb\xbf", "text behind a byte-order mark"),
        ("\ufeffexercise\n".encode("utf-16-le"), "text in UTF-16 (by its byte-order mark)"),
        (b"exercise\r\n", "not one of"),
        (b"exercise\n\n", "not one of"),
        (b"exercise ", "not one of"),
        (b" exercise", "not one of"),
        (b"exercise\0", "not one of"),
        (b"exercise\npropose\n", "not one of"),
        (b"exer", "not one of"),
        (b"off", "not one of"),
        (b"ex\xc4\x9frcise", "not one of"),
        ("ехercise".encode(), "not one of"),
        (b"e\0x\0e\0r\0", "not one of"),
        (bytes(range(64)), "not one of"),
        (b"exercise" + b" " * 57, "larger than 64 bytes"),
        (b"propose\n" * 9, "larger than 64 bytes"),
    ],
)
def test_anything_else_is_observe(state: Path, data: bytes, why: str) -> None:
    reading = read_dial(_write(state / "autonomy", data))
    assert (reading.rung, reading.trusted) == (Rung.OBSERVE, False)
    assert reading.why.startswith(f"autonomy: {why}")


def _directory(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _symlink(path: Path) -> None:
    path.symlink_to(_write(path.with_name("real")))


def _dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _hard_link(path: Path) -> None:
    path.hardlink_to(_write(path.with_name("real")))


def _group_writable(path: Path) -> None:
    _write(path, mode=0o620)


def _world_writable(path: Path) -> None:
    _write(path, mode=0o666)


def _sparse(path: Path) -> None:
    _write(path)
    os.truncate(path, 1 << 30)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "missing"),
        (_directory, "not a regular file"),
        (_fifo, "not a regular file"),
        (_symlink, "a symbolic link"),
        (_dangling, "a symbolic link"),
        (_loop, "a symbolic link"),
        (_device, "a symbolic link"),
        (_hard_link, "has other names"),
        (_group_writable, "writable by others"),
        (_world_writable, "writable by others"),
        (_sparse, "larger than 64 bytes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.timeout(5)
def test_a_file_that_is_not_plainly_ours_is_observe(
    state: Path, make: Callable[[Path], None], why: str
) -> None:
    make(state / "autonomy")
    reading = read_dial(state / "autonomy")
    assert (reading.rung, reading.trusted) == (Rung.OBSERVE, False)
    assert reading.why.startswith(f"autonomy: {why}")


@pytest.mark.parametrize("bit", [1 << place for place in range(12)], ids=oct)
def test_each_bit_of_the_mode_by_itself(state: Path, bit: int) -> None:
    """One bit that lets somebody else write is enough; what lets others read or run changes nothing."""
    path = _write(state / "autonomy", mode=0o600 | bit)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 | bit
    believed = bit not in (0o020, 0o002)
    why = "" if believed else "autonomy: writable by others"
    assert read_dial(path) == DialReading(Rung.EXERCISE if believed else Rung.OBSERVE, believed, why)


@pytest.mark.parametrize("name", ["autonomy", "autonomy.json"])
@pytest.mark.parametrize("mode", [0o602, 0o620])
def test_a_note_that_others_could_write_is_not_shown(state: Path, clock: Clock, name: str, mode: int) -> None:
    write_dial(state, Rung.EXERCISE, "why", "ada", clock)
    (state / name).chmod(mode)
    assert read_note(state) is None


@pytest.mark.skipif(not ROOT, reason="only root can give a file away")
def test_a_foreign_owner_is_observe(state: Path) -> None:
    os.chown(_write(state / "autonomy"), 65534, 65534)
    assert read_dial(state / "autonomy").why == "autonomy: belongs to another user (65534)"


def test_an_unreadable_file_is_observe(state: Path) -> None:
    path = _write(state / "autonomy", mode=0o000)
    if ROOT:
        os.seteuid(65534)
    try:
        reading = read_dial(path)
    finally:
        if ROOT:
            os.seteuid(0)
    assert reading == DialReading(Rung.OBSERVE, False, "autonomy: unreadable")


@pytest.mark.skipif(not ROOT, reason="only root can read as somebody else")
def test_root_s_file_is_believed_by_another_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is closed to other users
        Path(folder).chmod(0o755)
        path = _write(Path(folder) / "autonomy", mode=0o644)
        os.seteuid(65534)
        try:
            reading = read_dial(path)
        finally:
            os.seteuid(0)
    assert reading == DialReading(Rung.EXERCISE, True)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=80))
def test_no_bytes_but_the_words_are_believed(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = _write(tmp_path_factory.getbasetemp() / "dial", data)
    words = {f"{rung}{end}".encode() for rung in Rung for end in ("", "\n")}
    assert read_dial(path).trusted == (data in words)


def _while_busy(work: Callable[[], None], path: Path) -> set[DialReading]:
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            work()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        return {read_dial(path) for _ in range(3000)}
    finally:
        over.set()
        thread.join()


def test_a_flip_flop_by_rename_is_one_word_or_the_other(state: Path) -> None:
    path, turn = _write(state / "autonomy", b"observe\n"), itertools.cycle([b"observe\n", b"propose\n"])

    def flip() -> None:
        os.replace(_write(state / "next", next(turn)), path)

    seen = _while_busy(flip, path)
    assert seen <= {DialReading(Rung.OBSERVE, True), DialReading(Rung.PROPOSE, True)} | {
        DialReading(Rung.OBSERVE, False, "autonomy: replaced repeatedly")
    }


def test_a_word_written_in_place_is_that_word_or_observe(state: Path) -> None:
    path = _write(state / "autonomy")

    def rewrite() -> None:
        with path.open("r+b", buffering=0) as handle:
            handle.truncate(0)
            handle.write(b"exer")
            handle.write(b"cise\n")

    for reading in _while_busy(rewrite, path):
        assert reading.trusted or reading.rung is Rung.OBSERVE
        assert reading.rung is not Rung.PROPOSE


def test_turning_the_dial_leaves_word_and_note(state: Path, clock: Clock) -> None:
    note = write_dial(state / "new", Rung.EXERCISE, "devnet only", "ada", clock)
    assert read_dial(state / "new" / "autonomy") == DialReading(Rung.EXERCISE, True)
    assert read_note(state / "new") == note
    assert note == DialNote(rung="exercise", who="ada", when="2026-01-01T00:16:40Z", why="devnet only")
    assert sorted(p.name for p in (state / "new").iterdir()) == ["autonomy", "autonomy.json"]
    assert {p.stat().st_mode & 0o777 for p in (state / "new").iterdir()} == {0o600}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: _write(state / "autonomy", b"observe\n"),
        lambda state: (state / "autonomy").chmod(0o666),
        lambda state: (state / "autonomy.json").unlink(),
        lambda state: (state / "autonomy.json").chmod(0o666),
        lambda state: _write(state / "autonomy.json", b"[]"),
        lambda state: _write(state / "autonomy.json", b'{"rung":'),
        lambda state: _write(state / "autonomy.json", b"[" * 4000),
        lambda state: _write(state / "autonomy.json", b'{"rung": "exercise", "who": "eve"}'),
        lambda state: _write(
            state / "autonomy.json", b'{"rung": "exercise", "who": 1, "when": "", "why": ""}'
        ),
    ],
)
def test_a_note_that_does_not_agree_is_not_shown(
    state: Path, clock: Clock, spoil: Callable[[Path], None]
) -> None:
    write_dial(state, Rung.EXERCISE, "why", "ada", clock)
    spoil(state)
    assert read_note(state) is None


def test_the_note_of_a_dial_that_is_not_believed_is_not_shown(state: Path, clock: Clock) -> None:
    write_dial(state, Rung.OBSERVE, "why", "ada", clock)
    assert read_note(state) is not None
    (state / "autonomy").chmod(0o666)
    assert read_note(state) is None


def test_a_dial_that_cannot_be_turned_says_so(state: Path, clock: Clock) -> None:
    (state / "autonomy").mkdir()
    with pytest.raises(ConfigError, match="cannot be written") as refused:
        write_dial(state, Rung.EXERCISE, "why", "ada", clock)
    assert "state directory" in refused.value.remedy
    assert sorted(p.name for p in state.iterdir()) == ["autonomy", "autonomy.json"]
    assert read_note(state) is None


def test_a_dial_flipped_by_hand_names_the_file_s_owner_and_time_and_inherits_no_reason(
    state: Path, clock: Clock
) -> None:
    assert set_by(state / "none") is None
    note = write_dial(state, Rung.EXERCISE, "devnet only", "ada", clock)
    assert set_by(state) == note
    mine = pwd.getpwuid(os.getuid()).pw_name
    for word in ("observe", "exercise"):  # back to the word of the note, too
        (state / "autonomy").write_text(word)
        os.utime(state / "autonomy", (1_000_000.25, 1_000_000.25))
        assert read_note(state) is None
        assert set_by(state) == DialNote(rung=word, who=mine, when="1970-01-12T13:46:40Z", why="by hand")
    (state / "autonomy").write_text("full speed")
    rejected = set_by(state)
    assert rejected is not None
    assert (rejected.rung, rejected.why) == (
        "observe",
        "by hand: autonomy: not one of observe, exercise, propose: 'full speed'",
    )


def test_the_same_word_written_in_the_second_of_the_command_is_by_hand(state: Path, clock: Clock) -> None:
    note = write_dial(state, Rung.EXERCISE, "devnet only", "ada", clock)
    moment = datetime.fromisoformat(note.when).timestamp()
    os.utime(state / "autonomy", (moment, moment + 0.125))
    assert read_note(state) is None


BEGAN = Moment(datetime(2026, 11, 27, 18, tzinfo=UTC), "1f0c9a2b", 1000.0)
TERM = b"exercise\nuntil 2026-11-28T02:00:00Z 1f0c9a2b:29800\n"


@pytest.mark.parametrize(
    ("hours", "up_hours", "boot", "why"),
    [
        (0, 0, "1f0c9a2b", ""),
        (7.99, 7.99, "1f0c9a2b", ""),
        (8, 8, "1f0c9a2b", "it ended at 2026-11-28T02:00:00Z"),
        (9, 1, "1f0c9a2b", "it ended at 2026-11-28T02:00:00Z"),
        (1, 1, "00000000", "this machine started again since"),
        (1, 1, "", "this machine started again since"),
        (-90, 8, "1f0c9a2b", "its length has passed, and the clock was set back"),
        (7, 8.5, "1f0c9a2b", "its length has passed, and the clock was set back"),
    ],
)
def test_a_term_ends_by_either_clock_and_with_the_boot(
    state: Path, hours: float, up_hours: float, boot: str, why: str
) -> None:
    now = Moment(BEGAN.wall + timedelta(hours=hours), boot, BEGAN.up_s + up_hours * 3600)
    reading = read_dial(_write(state / "autonomy", TERM), lambda: now)
    rung = Rung.OBSERVE if why else Rung.EXERCISE
    said = f"the term of exercise is over: {why}" if why else ""
    assert reading == DialReading(rung, True, said, "2026-11-28T02:00:00Z")
    assert (reading.written, reading.fault) == ("exercise", "")


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_a_term_is_never_longer_than_its_length(wall_s: float, up_s: float) -> None:
    now = Moment(BEGAN.wall + timedelta(seconds=wall_s), BEGAN.boot, BEGAN.up_s + up_s)
    with tempfile.TemporaryDirectory() as folder:
        reading = read_dial(_write(Path(folder) / "autonomy", TERM), lambda: now)
    assert (reading.rung is Rung.EXERCISE) == (wall_s < 8 * 3600 and up_s < 8 * 3600)


@pytest.mark.parametrize(
    "line",
    [
        b"until 2026-11-28T02:00:00Z",
        b"until 2026-11-28 1f0c9a2b:29800",
        b"until 2026-13-28T02:00:00Z 1f0c9a2b:29800",
        b"until 2026-11-28T02:00:00Z 1F0C9A2B:29800",
        b"until 2026-11-28T02:00:00Z 1f0c9a2b:-1",
        b"for 8h",
        b" until 2026-11-28T02:00:00Z 1f0c9a2b:29800",
    ],
)
def test_a_term_that_cannot_be_read_is_observe(state: Path, line: bytes) -> None:
    reading = read_dial(_write(state / "autonomy", b"exercise\n" + line + b"\n"))
    assert (reading.rung, reading.trusted) == (Rung.OBSERVE, False)


def test_a_term_that_was_set_is_read_until_it_is_over(state: Path, clock: Clock) -> None:
    here = this_moment()
    write_dial(state, Rung.EXERCISE, "tonight", "ann@desk", clock, term_s=8 * 3600)
    now = replace(here, wall=clock.now())
    reading = read_dial(state / "autonomy", lambda: now)
    assert (reading.rung, reading.until) == (Rung.EXERCISE, iso(clock.now() + timedelta(hours=8)))
    later = replace(now, up_s=here.up_s + 8 * 3600 + 1)
    assert read_dial(state / "autonomy", lambda: later).rung is Rung.OBSERVE
    write_dial(state, Rung.EXERCISE, "tonight", "ann@desk", SystemClock(), term_s=1)
    (state / "autonomy").write_bytes((state / "autonomy").read_bytes().replace(here.boot.encode(), b"0" * 8))
    os.utime(state / "autonomy", (0, datetime.fromisoformat(read_note_when(state)).timestamp()))
    said = set_by(state)
    assert said is not None
    assert (said.rung, said.who) == ("observe", "ann@desk")
    assert said.why.startswith("the term of exercise is over: ")


def read_note_when(state: Path) -> str:
    return str(json.loads((state / "autonomy.json").read_text())["when"])
