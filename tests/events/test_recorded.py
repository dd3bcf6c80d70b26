"""Reading back: torn, foreign, old and huge files; every whole record, flat memory, no error."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.events.model import Event, ExtensionDisabled, Footer, Header, TurnEnded
from fleet.events.recorded import BATCH, MAX_LINE, Recording, UnknownRecord, parse
from fleet.events.trajectory import TrajectoryFile, read
from tests.events.samples import FOOTER, HEADER, answers, asks


def written(path: Path, *lines: str, end: str = "\n") -> Recording:
    path.write_text("\n".join(lines) + end)
    return Recording(path)


def test_foreign_lines_come_as_what_they_are(tmp_path: Path) -> None:
    recording = written(
        tmp_path / "t",
        HEADER.model_dump_json(),
        "",
        "   ",
        "[]",
        "null",
        '{"type":"new.kind","a":1}',
        '{"a":1}',
        "{nonsense",
        '{"type":"tool.requested"}',
        FOOTER.model_dump_json(),
    )
    assert list(recording) == [
        HEADER,
        UnknownRecord("non-object", []),
        UnknownRecord("non-object", None),
        UnknownRecord("new.kind", {"type": "new.kind", "a": 1}),
        UnknownRecord("null", {"a": 1}),
        UnknownRecord("invalid", "{nonsense"),
        UnknownRecord("tool.requested", {"type": "tool.requested"}),
        FOOTER,
    ]
    assert (recording.unknown, recording.torn) == (6, False)
    assert list(read(tmp_path / "t")) == [HEADER, FOOTER]


@pytest.mark.parametrize("tail", ['{"type":"foo', FOOTER.model_dump_json(), "x" * (MAX_LINE + 9)])
def test_a_torn_tail_is_flagged_and_costs_nothing_before_it(tmp_path: Path, tail: str) -> None:
    recording = written(tmp_path / "t", HEADER.model_dump_json(), tail, end="")
    assert (list(recording), recording.torn) == ([HEADER], True)
    assert recording.offset == len(HEADER.model_dump_json()) + 1


def test_a_line_that_is_too_long_is_skipped_and_counted(tmp_path: Path) -> None:
    recording = written(
        tmp_path / "t", HEADER.model_dump_json(), "x" * (2 * MAX_LINE + 1), FOOTER.model_dump_json()
    )
    assert (list(recording), recording.too_long, recording.torn) == ([HEADER, FOOTER], 1, False)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_no_file_and_an_empty_file_have_no_records(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").touch()
    recording = Recording(tmp_path / name)
    assert (list(recording), recording.torn) == ([], False)


def test_a_file_that_grows_is_read_on_from_where_one_was(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t")
    sink.write(HEADER)
    first = Recording(tmp_path / "t")
    assert list(first) == [HEADER]
    sink.write(FOOTER)
    assert list(Recording(tmp_path / "t", start=first.offset)) == [FOOTER]


VERSION_1: list[dict[str, Any]] = [
    {
        "run": "r1",
        "at": "2026-01-01T00:00:00Z",
        "type": "run.started",
        "schema_version": 1,
        "persona": "qa-x",
        "persona_sha256": "0" * 64,
        "driver": "playbook",
        "platform": "devnet",
        "chain_id": 1,
        "rung": "observe",
        "jail": "bwrap/standard",
        "budget": {"calls": 1.0},
        "trigger": "manual",
    },
    {"run": "r1", "at": "", "type": "gate.denied", "call": 1, "tool": "t", "rule": "dial", "reason": "r"},
    {"run": "r1", "at": "", "type": "run.ended", "outcome": "done", "detail": "", "calls": 1, "seconds": 2.0},
]


def test_a_file_of_version_1_reads_as_one_of_today(tmp_path: Path) -> None:
    (header, _, footer) = written(tmp_path / "t", *map(json.dumps, VERSION_1))
    assert isinstance(header, Header)
    assert (header.schema_version, header.persona, header.run) == (1, "qa-x", "r1")
    assert isinstance(footer, Footer)
    assert (footer.outcome, footer.calls, footer.seconds) == ("done", 1, 2.0)


LEONARD: list[tuple[dict[str, Any], Event]] = [
    (
        {
            "type": "header",
            "goal": "buy",
            "agents_md_hash": "ab",
            "build_identifier": "b1",
            "model_identifier": "m",
            "harness_version": "0.3",
            "extensions": [{"namespace": "x"}],
            "config": {"turns": 3},
        },
        Header(
            schema_version=1,
            goal="buy",
            persona_sha256="ab",
            build="b1",
            model="m",
            driver="0.3",
            policy={"turns": 3},
            persona="",
            platform="",
            chain_id=0,
            rung="",
            jail="",
            budget={},
            trigger="",
        ),
    ),
    (
        {
            "type": "turn",
            "index": 2,
            "observation": {"core": 1},
            "stability": {},
            "proposed_action": {},
            "validation": {"ok": True},
            "executed_action": {"tool": "tap"},
            "summary_update": "old",
            "thinking": None,
            "model_metadata": {},
            "diff": {},
        },
        TurnEnded(
            index=2,
            validation={"ok": True},
            observation={"core": 1, "proposed_action": {}, "executed_action": {"tool": "tap"}},
        ),
    ),
    (
        {"type": "extension_disabled", "namespace": "x", "reason": "3 failures", "turn": 4, "more": 1},
        ExtensionDisabled(namespace="x", reason="3 failures", turn=4),
    ),
    (
        {
            "type": "footer",
            "outcome": "harness_error",
            "total_turns": 4,
            "total_duration_ms": 1500,
            "harness_error": "agent_stuck",
            "final_summary": "x",
        },
        Footer(outcome="harness_error", detail="agent_stuck", turns=4, seconds=1.5),
    ),
    ({"type": "footer"}, Footer(outcome="harness_error")),
    ({"type": "turn", "index": 0}, TurnEnded(index=0)),
]


@pytest.mark.parametrize(("raw", "event"), LEONARD, ids=[raw["type"] for raw, _ in LEONARD])
def test_leonards_records_read_with_fields_missing_or_extra(raw: dict[str, Any], event: Event) -> None:
    assert parse(json.dumps(raw).encode()) == event


@given(st.binary(max_size=80) | st.from_type(dict[str, int]).map(lambda raw: json.dumps(raw).encode()))
def test_no_line_raises(text: bytes) -> None:
    assert parse(text) is not None


@given(st.sampled_from(["header", "turn", "footer", "run.started", "tool.requested"]), st.data())
def test_no_field_of_a_known_record_raises(kind: str, data: st.DataObject) -> None:
    value: st.SearchStrategy[Any] = (
        st.none() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({"a": 1})
    )
    keys = st.sampled_from(
        ["index", "outcome", "persona", "observation", "config", "total_duration_ms", "call"]
    )
    raw = data.draw(st.dictionaries(keys, value))
    parse(json.dumps({**raw, "type": kind}).encode())


def test_deep_nesting_is_one_unknown_line() -> None:
    record = parse(b"[" * 100_000)
    assert isinstance(record, UnknownRecord)


def test_memory_stays_flat_over_50_megabytes(tmp_path: Path) -> None:
    path, line = tmp_path / "t", answers(1, text="x" * 50_000).model_dump_json() + "\n"
    with path.open("w") as handle:
        handle.write(HEADER.model_dump_json() + "\n")
        for _ in range(1_000):
            handle.write(line)
        handle.write(asks(1).model_dump_json() + "\n")
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(path)) == 1_002
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_what_is_new_comes_once_and_in_parts(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "t")
    assert recording.new() == []
    sink = TrajectoryFile(tmp_path / "t")
    for event in (HEADER, asks(1), asks(2)):
        sink.write(event)
    assert recording.new(2) == [HEADER, asks(1)]
    with (tmp_path / "t").open("ab") as handle:
        handle.write(b'{"type":"to')
    assert (recording.new(), recording.torn) == ([asks(2)], True)
    with (tmp_path / "t").open("ab") as handle:
        handle.write(b'rn"}\n')
    assert (recording.new(), recording.torn) == ([UnknownRecord("torn", {"type": "torn"})], False)
    assert recording.new() == []
    assert len(list(recording)) == 4


def test_nothing_comes_that_begins_at_the_end_or_behind_it(tmp_path: Path) -> None:
    first, second = HEADER.model_dump_json(), FOOTER.model_dump_json()
    written(tmp_path / "t", first, second)
    for end, count in ((0, 0), (1, 1), (len(first) + 1, 1), (len(first) + 2, 2), (1 << 20, 2)):
        recording = Recording(tmp_path / "t", end=end)
        assert len(recording.new()) == count
        assert recording.new() == []
        assert len(list(recording)) == count


@pytest.mark.anyio
@pytest.mark.parametrize("count", [BATCH - 2, BATCH - 1, BATCH, 2 * BATCH])
async def test_a_file_is_followed_past_a_footer_that_is_not_the_last(tmp_path: Path, count: int) -> None:
    path, still = tmp_path / "t", anyio.Event()
    events: list[Event] = [HEADER, *[asks(n) for n in range(count)], FOOTER, asks(1), FOOTER]
    path.write_text("".join(f"{event.model_dump_json()}\n" for event in events))
    with anyio.fail_after(60):
        assert [record async for record in Recording(path).follow(still)] == events


@pytest.mark.anyio
async def test_what_is_written_just_before_the_end_still_comes(tmp_path: Path) -> None:
    path, still, came = tmp_path / "t", anyio.Event(), list[object]()

    async def follow() -> None:
        async for record in Recording(path).follow(still, pause_s=60):
            came.append(record)

    with anyio.fail_after(50):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.sleep(0.05)
            path.write_text(HEADER.model_dump_json() + "\n")
            still.set()
    assert came == [HEADER]
