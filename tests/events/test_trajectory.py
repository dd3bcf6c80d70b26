"""The durable file: one header, one footer, bounded, and what a failing disk or a kill leaves of it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.errors import FleetError, TryAgain
from fleet.events.model import EVENTS, Event, Footer, ResourceReleased, ToolResponded
from fleet.events.recorded import Recording
from fleet.events.trajectory import LARGEST, RESERVE, TrajectoryFile, read
from fleet.events.truncate import fit
from tests.events.samples import FOOTER, HEADER, answers, asks, bare, denied, said, turn


def test_what_is_written_is_read_back_in_order(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    for event in (HEADER, denied(1), FOOTER):
        sink.write(event)
    assert list(read(tmp_path / "t.jsonl")) == [HEADER, denied(1), FOOTER]
    assert (tmp_path / "t.jsonl").stat().st_mode & 0o777 == 0o600
    assert sink.size == (tmp_path / "t.jsonl").stat().st_size


@pytest.mark.parametrize("before", [(), (HEADER, FOOTER)])
def test_nothing_comes_before_the_header_or_after_the_footer(
    tmp_path: Path, before: tuple[Event, ...]
) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    for event in before:
        sink.write(event)
    with pytest.raises(FleetError):
        sink.write(denied(1))


@pytest.mark.parametrize("text", ["", '{"type":"run.started","persona":"qa-old"}\n'])
def test_a_second_header_is_refused_even_by_a_second_writer(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    if not text:
        TrajectoryFile(tmp_path / "t.jsonl").write(HEADER)
    with pytest.raises(FleetError, match="exactly one header"):
        TrajectoryFile(tmp_path / "t.jsonl").write(HEADER)


def test_a_result_that_looks_like_a_footer_closes_nothing(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    sink.write(HEADER)
    sink.write(asks(1, type="footer", text='{"type":"footer"}'))
    again = TrajectoryFile(tmp_path / "t.jsonl")
    assert (again.started, again.ended) == (True, False)


@pytest.mark.parametrize("more", [0, 5_000])
def test_a_torn_tail_is_cut_and_the_footer_still_lands(tmp_path: Path, more: int) -> None:
    path = tmp_path / "t.jsonl"
    TrajectoryFile(path).write(HEADER)
    with path.open("ab") as handle:
        handle.write(b'{"type":"gate.den' + b"x" * more)
    assert (list(read(path)), torn(path)) == ([HEADER], True)
    TrajectoryFile(path).write(FOOTER)
    assert (list(read(path)), torn(path)) == ([HEADER, FOOTER], False)


def torn(path: Path) -> bool:
    recording = Recording(path)
    list(recording)
    return recording.torn


@contextmanager
def no_room_above(size: int) -> Iterator[None]:
    """Files may grow to so many bytes: what a full disk looks like to one process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_footer_that_found_no_room_is_written_later(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    sink = TrajectoryFile(path)
    sink.write(HEADER)
    with no_room_above(sink.size + 10), pytest.raises(TryAgain, match="no space left") as refused:
        sink.write(FOOTER)
    assert refused.value.retryable
    assert (path.stat().st_size, sink.ended, torn(path)) == (sink.size, False, False)
    sink.write(FOOTER)
    assert (list(read(path)), sink.ended) == ([HEADER, FOOTER], True)


def test_a_file_that_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TryAgain):
        TrajectoryFile(tmp_path / "t.jsonl")
    assert not (tmp_path / "elsewhere").exists()


def test_a_record_beyond_its_share_is_cut_with_marks(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    sink.write(HEADER)
    sink.write(answers(1, text="x" * 200_000, ok=True))
    sink.write(answers(2, rows=[["y" * 50] * 9] * 9_000))
    (_, first, second) = read(tmp_path / "t.jsonl")
    assert isinstance(first, ToolResponded)
    assert first.result == {"text": "x" * 8192 + "…[cut 191808 characters]", "ok": True}
    assert isinstance(second, ToolResponded)
    assert str(second.result["rows"][-1]).endswith("items]")
    assert sink.size < 2 * LARGEST


def test_a_full_file_takes_no_new_call_but_every_last_word_and_the_footer(tmp_path: Path) -> None:
    path, largest = tmp_path / "t.jsonl", RESERVE + 300_000
    sink = TrajectoryFile(path, sync=False, largest=largest)
    sink.write(HEADER)

    def calls() -> None:
        for call in range(10_000):
            sink.write(asks(call, text="x" * 100_000))
            sink.write(answers(call, text="y" * 100_000))

    def last_words() -> None:
        for _ in range(100_000):
            sink.write(ResourceReleased(kind="name", ref="r" * 5_000))

    with pytest.raises(FleetError, match="is full"):
        calls()
    sink.write(turn(0))
    with pytest.raises(FleetError, match="only its footer"):
        last_words()
    sink.write(Footer(outcome="failed", detail="d" * 100_000))
    assert isinstance(list(read(path))[-1], Footer)
    assert path.stat().st_size == sink.size <= largest


def test_800_large_calls_of_half_an_hour_fit_with_room_to_spare(tmp_path: Path) -> None:
    """Row 61: at 2.25 s a call; every answer as large as it may be."""
    sink = TrajectoryFile(tmp_path / "t.jsonl", sync=False)
    sink.write(HEADER)
    for call in range(800):
        sink.write(asks(call, text="x" * 20_000))
        sink.write(answers(call, text="y" * 65_000))
    sink.write(FOOTER)
    assert sink.size < 50_000_000


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("a\u00e9\n", max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text("ab"), inner, max_size=30),
    max_leaves=20,
)


@settings(max_examples=25)
@given(st.dictionaries(st.text(max_size=30), _json, max_size=12), st.integers(1_024, 4_096))
def test_a_cut_record_fits_and_is_still_that_record(result: dict[str, object], limit: int) -> None:
    event = ToolResponded(call=1, tool="t", is_error=False, result=result, seconds=0)
    line = fit(event, limit)
    assert len(line) <= limit
    again = EVENTS.validate_json(line)
    assert isinstance(again, ToolResponded)
    assert (again.call, again.tool) == (1, "t")
    whole = event.model_dump_json().encode()
    assert line == whole or (len(whole) > limit and "[cut" in line.decode())


def test_half_a_surrogate_pair_and_no_number_do_not_stop_the_record(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    sink.write(HEADER)
    sink.write(answers(1, text="\ud800", ms=float("nan")))
    (_, event) = read(tmp_path / "t.jsonl")
    assert isinstance(event, ToolResponded)
    assert event.result["text"] == "?"


KILLED = """
import os, signal, sys
from pathlib import Path
from fleet.clock import SystemClock
from fleet.events.model import LIVE, EVENTS
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile
left = int(sys.argv[2])
def die(event):
    global left
    left -= not isinstance(event, LIVE)
    if not left: os.kill(os.getpid(), signal.SIGKILL)
sink = TrajectoryFile(Path(sys.argv[1]))
stream = Stream("r1", clock=SystemClock(), sink=sink, readers=(die,))
if not left: os.kill(os.getpid(), signal.SIGKILL)
for line in sys.stdin: stream.emit(EVENTS.validate_json(line))
"""
SCRIPT = (
    HEADER,
    asks(1),
    denied(2),
    answers(1),
    said(0, "a" * 9_000),
    turn(0),
    said(1, "b", "reasoning"),
    turn(1),
    FOOTER,
)


@pytest.mark.crash
@pytest.mark.parametrize("k", range(len(SCRIPT) + 1))
def test_sigkill_after_record_k_leaves_k_records_and_the_next_start_a_footer(tmp_path: Path, k: int) -> None:
    path = tmp_path / "t"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(k)],
        input="".join(event.model_dump_json() + "\n" for event in SCRIPT),
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == -signal.SIGKILL
    recording = Recording(path)
    assert bare(list(read(path))) == list(SCRIPT[:k])
    assert (len(list(recording)), recording.torn) == (k, False)
    sink = TrajectoryFile(path)
    if not sink.started:
        sink.write(HEADER)
    if not sink.ended:
        sink.write(Footer(outcome="crashed"))
    kinds = [event.type for event in read(path)]
    assert (kinds[0], kinds[-1]) == ("header", "footer")
    assert (kinds.count("header"), kinds.count("footer")) == (1, 1)


def test_a_group_is_written_as_one_by_one_would_be(tmp_path: Path) -> None:
    events = (HEADER, asks(1), asks(2), answers(1), answers(2), FOOTER)
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    sink.write_all(events[:3])
    sink.write_all(events[3:])
    assert (tuple(read(tmp_path / "t.jsonl")), sink.ended) == (events, True)
    assert sink.size == (tmp_path / "t.jsonl").stat().st_size


@pytest.mark.parametrize("group", [(FOOTER, denied(1)), (HEADER,), (asks(1), HEADER), (FOOTER, FOOTER)])
def test_a_group_with_a_record_out_of_place_is_refused(tmp_path: Path, group: tuple[Event, ...]) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    sink.write(HEADER)
    with pytest.raises(FleetError):
        sink.write_all(group)
    assert (list(read(tmp_path / "t.jsonl")), sink.ended) == ([HEADER], False)
    sink.write(FOOTER)
