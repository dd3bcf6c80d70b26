"""What people and programs see of a run: in its own process, from its file, while it grows and after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from typer.testing import CliRunner, Result

from fleet.cli.run.follow import followed, show, tail
from fleet.cli.run.runs import app
from fleet.events.live import Lagged
from fleet.events.model import LIVE, Event, Footer, TurnStarted, TurnUsage
from fleet.events.recorded import UnknownRecord
from fleet.events.timeline import words
from fleet.events.trajectory import TrajectoryFile
from fleet.store.journal import Journal
from tests.doubles.journal import new_run
from tests.events.samples import (
    FOOTER,
    HEADER,
    Kept,
    answers,
    asks,
    denied,
    piece,
    said,
    starts,
    stream,
    turn,
)

pytestmark = pytest.mark.anyio
RUN: tuple[Event, ...] = (
    HEADER,
    TurnStarted(index=0),
    said(0, "I look at \x1b[31mthe page"),
    asks(1, url="http://127.0.0.1/"),
    answers(1, ok=True),
    denied(2),
    turn(0, TurnUsage(input_tokens=7)),
    Footer(outcome="done", turns=1, calls=2, seconds=1.5, usage=TurnUsage(input_tokens=7, cost_usd="0.01")),
)


def test_every_kind_of_record_has_its_line_and_only_pieces_have_none() -> None:
    for model in get_args(get_args(Event)[0]):
        values = {name: _sample(str(field.annotation)) for name, field in model.model_fields.items()}
        record = model.model_construct(
            **{**values, "type": model.model_fields["type"].default, "usage": None}
        )
        assert bool(words(record)) is not issubclass(model, LIVE), model


def _sample(annotation: str) -> Any:
    if "tuple" in annotation:
        return ()
    return 1 if "int" in annotation or "float" in annotation else {} if "dict" in annotation else "text"


def test_the_lines_of_a_run() -> None:
    assert [words(event) for event in RUN] == [
        "qa-x by playbook on devnet at observe",
        "turn 0",
        "text: I look at the page",
        'call 1: qa_fetch {"url": "http://127.0.0.1/"}',
        'call 1: ok in 0.10 s {"ok": true}',
        "call 2: qa_call refused by dial: observe",
        "turn 0 over: 0 calls, tokens 7 input",
        "end: done (1 turn, 2 calls, 1.5 s; tokens 7 input, $0.01)",
    ]
    assert (
        words(UnknownRecord("new.kind", {"a": "\x1b[2J"})) == 'unknown record new.kind: {"a": "\\u001b[2J"}'
    )
    assert words(Lagged(3)) == "… 3 events came too fast to show"


async def test_a_run_in_this_process_is_shown_as_it_happens(capsys: pytest.CaptureFixture[str]) -> None:
    async with followed(as_json=False) as live:
        line = stream(Kept(), live)
        for event in (HEADER, starts(0), piece(0, "x"), FOOTER):
            line.emit(event)
            await anyio.sleep(0.01)
    out, err = capsys.readouterr()
    assert out == ""
    assert [row.split(" ", 4)[4] for row in err.splitlines()] == [
        "qa-x by playbook on devnet at observe",
        "text: x (cut off)",
        "end: done (0 turns, 0 calls, 0.0 s)",
    ]


async def test_as_json_every_event_is_a_line_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    async with followed(as_json=True) as live:
        line = stream(Kept(), live)
        for event in (HEADER, starts(0), piece(0, "x"), FOOTER):
            line.emit(event)
        live(FOOTER)
        await anyio.sleep(0.05)
    kinds = [json.loads(row)["type"] for row in capsys.readouterr().out.splitlines()]
    assert kinds == ["header", "message.started", "message.delta", "message.said", "footer", "footer"]


def test_what_has_no_model_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    show(Lagged(2), as_json=True)
    show(UnknownRecord("null", {"a": 1}), as_json=True)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"type": "lagged", "count": 2}
    assert second == {"type": "unknown", "raw_type": "null", "raw": {"a": 1}}


async def test_a_file_is_followed_from_its_beginning_until_its_footer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, ended = tmp_path / "t", list[bool]()

    async def follow() -> None:
        ended.append(await tail(path, as_json=True, still=anyio.Event()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await anyio.sleep(0.05)
        sink = TrajectoryFile(path)
        for event in (HEADER, asks(1)):
            sink.write(event)
        with path.open("ab") as handle:
            handle.write(b'{"type":"torn')
        await anyio.sleep(0.3)
        TrajectoryFile(path).write(FOOTER)
    assert ended == [True]
    kinds = [json.loads(row)["type"] for row in capsys.readouterr().out.splitlines()]
    assert kinds == ["header", "tool.requested", "footer"]


async def test_a_file_of_a_run_that_is_over_is_not_waited_for(tmp_path: Path) -> None:
    over = anyio.Event()
    over.set()
    with anyio.fail_after(20):
        assert await tail(tmp_path / "missing", as_json=True, still=over) is False


async def recorded(state: Path, lines: list[str]) -> None:
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.trigger(new_run("r1", "qa-x", key="k", platform="devnet", trigger="manual", rung=""))
        await journal.finish("r1", "done", "")
    folder = state / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "trajectory.jsonl").write_text("".join(lines))


def ask(state: Path, *args: str) -> Result:
    result = CliRunner().invoke(app, list(args), env={"STATE_DIRECTORY": str(state)})
    assert result.exit_code == 0, result.output
    return result


def told(*events: Event) -> list[str]:
    return [event.model_dump_json() + "\n" for event in events]


def test_show_tells_the_timeline_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    anyio.run(recorded, tmp_path, [*told(*RUN[:-1]), '{"type":"new.kind"}\n', '{"type":"torn'])
    said_ = ask(tmp_path, "show", "r1").stdout
    for line in (
        "call 2: qa_call refused by dial: observe",
        "refused: 1 by dial",
        "1 records of an unknown kind",
        "unknown record new.kind",
        "the last record is torn",
        "no footer yet",
        "turn 0 over",
    ):
        assert line in said_
    assert "\x1b" not in said_
    data = json.loads(ask(tmp_path, "show", "r1", "--json").stdout)
    assert (data["torn"], data["closed"], data["unknown"], data["turns"]) == (True, False, 1, 1)
    assert data["refusals"] == {"dial": 1}
    assert [event.get("type") for event in data["events"]][:3] == ["header", "turn.started", "message.said"]


def test_show_of_a_whole_run_tells_what_it_used(tmp_path: Path) -> None:
    anyio.run(recorded, tmp_path, told(*RUN))
    said_ = ask(tmp_path, "show", "r1").stdout
    assert "used tokens 7 input, $0.01" in said_
    assert "torn" not in said_
    data = json.loads(ask(tmp_path, "show", "r1", "--json").stdout)
    assert (data["torn"], data["closed"], data["usage"]["cost_usd"]) == (False, True, "0.01")


def test_follow_of_a_run_that_has_ended_shows_all_of_it(tmp_path: Path) -> None:
    anyio.run(recorded, tmp_path, told(*RUN))
    assert len(ask(tmp_path, "follow", "r1", "--json").stdout.splitlines()) == len(RUN)
