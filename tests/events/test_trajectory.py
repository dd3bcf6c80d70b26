"""The stream and its durable file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.clock import SystemClock
from fleet.errors import FleetError
from fleet.events.model import EVENTS, Event, Footer, GateDenied, Header
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile, read

HEADER = Header(
    persona="qa-x",
    persona_sha256="0" * 64,
    driver="playbook",
    platform="devnet",
    chain_id=1,
    rung="observe",
    jail="bwrap/standard",
    budget={"calls": 1},
    trigger="manual",
)
DENIED = GateDenied(call=1, tool="qa_call", rule="dial", reason="observe")
FOOTER = Footer(outcome="done")


def test_what_is_written_is_read_back_in_order(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    for event in (HEADER, DENIED, FOOTER):
        sink.write(event)
    assert list(read(tmp_path / "t.jsonl")) == [HEADER, DENIED, FOOTER]
    assert (tmp_path / "t.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [(), (HEADER, FOOTER)])
def test_nothing_comes_before_the_header_or_after_the_footer(
    tmp_path: Path, before: tuple[Event, ...]
) -> None:
    sink = TrajectoryFile(tmp_path / "t.jsonl")
    for event in before:
        sink.write(event)
    with pytest.raises(FleetError):
        sink.write(DENIED)


def test_a_second_header_is_refused_even_by_a_second_writer(tmp_path: Path) -> None:
    TrajectoryFile(tmp_path / "t.jsonl").write(HEADER)
    with pytest.raises(FleetError, match="exactly one header"):
        TrajectoryFile(tmp_path / "t.jsonl").write(HEADER)


def test_a_torn_tail_is_cut_and_the_footer_still_lands(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    TrajectoryFile(path).write(HEADER)
    with path.open("ab") as handle:
        handle.write(b'{"type":"gate.den')
    TrajectoryFile(path).write(FOOTER)
    assert list(read(path)) == [HEADER, FOOTER]


def test_foreign_lines_do_not_stop_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [HEADER.model_dump_json(), "", "[]", "null", '{"type":"new.kind"}', FOOTER.model_dump_json()]
    path.write_text("\n".join(lines) + "\n")
    assert list(read(path)) == [HEADER, FOOTER]


def test_a_broken_reader_is_dropped_and_changes_nothing(tmp_path: Path) -> None:
    seen: list[str] = []

    def broken(event: Event) -> None:
        seen.append(event.type)
        raise RuntimeError("reader")

    stream = Stream(
        "r1",
        clock=SystemClock(),
        sink=TrajectoryFile(tmp_path / "t"),
        readers=(broken, lambda e: seen.append("ok")),
    )
    stream.emit(HEADER)
    stream.emit(FOOTER)
    assert seen == ["header", "ok", "ok"]
    assert [event.run for event in read(tmp_path / "t")] == ["r1", "r1"]


KILLED = """
import os, sys, signal
from pathlib import Path
from fleet.events.model import EVENTS
from fleet.events.trajectory import TrajectoryFile
sink = TrajectoryFile(Path(sys.argv[1]))
for n, line in enumerate(sys.stdin):
    if n == int(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)
    sink.write(EVENTS.validate_json(line))
"""


@pytest.mark.crash
@pytest.mark.parametrize("k", [0, 1, 2])
def test_sigkill_after_record_k_leaves_k_records(tmp_path: Path, k: int) -> None:
    lines = "".join(event.model_dump_json() + "\n" for event in (HEADER, DENIED, DENIED, FOOTER))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "t"), str(k)],
        input=lines,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == -signal.SIGKILL
    assert list(read(tmp_path / "t")) == [HEADER, DENIED, DENIED, FOOTER][:k]
    assert EVENTS.validate_json(FOOTER.model_dump_json()) == FOOTER
