"""What opens and closes, exactly; and the same from the live stream as from the file."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given

from fleet.events.model import Event, ToolRequested, TurnStarted, TurnUsage
from fleet.events.spans import CloseSpan, Observer, OpenSpan, Signal, Spans, flush, fold
from tests.events.samples import (
    FOOTER,
    HEADER,
    answers,
    asks,
    denied,
    ends,
    flow,
    piece,
    runs,
    said,
    starts,
    turn,
)


def signals(*events: Event, end: bool = False) -> list[Signal]:
    spans, found = Spans(), list[Signal]()
    for event in events:
        spans, more = fold(spans, event)
        found += more
    return [*found, *(flush(spans)[1] if end else ())]


def brief(*events: Event, end: bool = False) -> list[str]:
    """`+key` and `-key`, with `!` for an error and `~` for what was cut off."""
    words = []
    for signal in signals(*events, end=end):
        if isinstance(signal, OpenSpan):
            words.append(f"+{signal.key}")
        else:
            mark = "" if signal.is_complete else "~"
            words.append(f"-{signal.key}{mark}{'!' if signal.is_error else ''}")
    return words


TABLE: dict[str, tuple[tuple[Event, ...], list[str]]] = {
    "parallel calls, answers out of order": (
        (asks(1), asks(2), answers(2), answers(1, is_error=True)),
        ["+tool:1", "+tool:2", "-tool:2", "-tool:1!"],
    ),
    "an orphan answer": ((answers(9),), []),
    "a second answer": ((asks(1), answers(1), answers(1)), ["+tool:1", "-tool:1"]),
    "the same call twice": ((asks(1), asks(1), answers(1)), ["+tool:1", "-tool:1"]),
    "a refusal": ((denied(1),), ["+tool:1", "-tool:1!"]),
    "a refusal of an open call": ((asks(1), denied(1)), ["+tool:1", "-tool:1!"]),
    "streamed arguments open nothing": ((starts(0, "tool_request"), piece(0, "{"), ends(0)), []),
    "wish, end and record of one call": (
        (starts(0, "tool_request"), ends(0), asks(1), ends(0), answers(1)),
        ["+tool:1", "-tool:1"],
    ),
    "text is no span": ((starts(0), piece(0, "x"), ends(0), said(0, "x")), []),
    "reasoning": (
        (starts(0, "reasoning"), said(0, "x", "reasoning"), ends(0)),
        ["+reasoning:0", "-reasoning:0"],
    ),
    "reasoning without its record": (
        (starts(0, "reasoning"), ends(0), ends(0)),
        ["+reasoning:0", "-reasoning:0"],
    ),
    "whole reasoning": ((said(3, "x", "reasoning"),), ["+reasoning:3", "-reasoning:3"]),
    "reasoning cut off": (
        (starts(0, "reasoning"), said(0, "x", "reasoning", whole=False)),
        ["+reasoning:0", "-reasoning:0~"],
    ),
    "interleaved reasoning": (
        (starts(0, "reasoning"), starts(1, "reasoning"), ends(0), ends(1)),
        ["+reasoning:0", "+reasoning:1", "-reasoning:0", "-reasoning:1"],
    ),
    "a second start": (
        (starts(0, "reasoning"), starts(0, "reasoning"), ends(0)),
        ["+reasoning:0", "-reasoning:0~", "+reasoning:0", "-reasoning:0"],
    ),
    "no index": ((starts(None, "reasoning"), piece(None, "x"), ends(None)), []),
    "unmatched end": ((ends(4), piece(4, "x")), []),
    "a turn": (
        (TurnStarted(index=0), asks(1), answers(1), turn(0, TurnUsage(input_tokens=1))),
        ["+turn:0", "+tool:1", "-tool:1", "+model:0", "-model:0", "-turn:0"],
    ),
    "a turn of a file without its start": ((turn(4, failure="refusal"),), ["+turn:4", "-turn:4!"]),
    "a turn that never ended": (
        (TurnStarted(index=0), asks(1), TurnStarted(index=1), turn(1)),
        ["+turn:0", "+tool:1", "-tool:1~", "-turn:0~", "+turn:1", "-turn:1"],
    ),
    "a run": ((HEADER, FOOTER), ["+run", "-run"]),
    "a run with something open": (
        (HEADER, TurnStarted(index=0), asks(1), FOOTER),
        ["+run", "+turn:0", "+tool:1", "-tool:1~", "-turn:0~", "-run"],
    ),
    "a second header": ((HEADER, HEADER), ["+run"]),
    "a footer of no run": ((FOOTER,), []),
}


@pytest.mark.parametrize(("events", "expected"), TABLE.values(), ids=TABLE)
def test_exactly_these_signals(events: tuple[Event, ...], expected: list[str]) -> None:
    assert brief(*events) == expected


def test_a_flush_closes_tools_as_opened_then_reasoning_by_index_then_turn_and_run() -> None:
    opened = (HEADER, TurnStarted(index=0), starts(5, "reasoning"), asks(2), starts(1, "reasoning"), asks(1))
    closed = [word for word in brief(*opened, end=True) if word.startswith("-")]
    assert closed == ["-tool:2~", "-tool:1~", "-reasoning:1~", "-reasoning:5~", "-turn:0~", "-run~"]


def test_parents_names_and_contents() -> None:
    usage = TurnUsage(model="small", input_tokens=7)
    found = signals(
        HEADER, asks(1, text="a"), TurnStarted(index=0), asks(2), said(0, "hm", "reasoning"), turn(0, usage)
    )
    opened = {one.key: one for one in found if isinstance(one, OpenSpan)}
    closed = {one.key: one for one in found if isinstance(one, CloseSpan)}
    parents = {key: one.parent for key, one in opened.items()}
    assert parents == {
        "run": "",
        "tool:1": "run",
        "turn:0": "run",
        "tool:2": "turn:0",
        "reasoning:0": "turn:0",
        "model:0": "turn:0",
    }
    assert (opened["run"].name, opened["tool:1"].name, opened["model:0"].name) == (
        "qa-x",
        "qa_fetch",
        "small",
    )
    assert opened["tool:1"].input == {"call_id": "c1", "args": {"text": "a"}}
    assert closed["model:0"].output == {"model": "small", "input_tokens": 7}
    assert closed["reasoning:0"].output == {"text": "hm"}


def test_an_error_is_told_only_when_it_was_reported() -> None:
    (_run, _, tool) = signals(HEADER, asks(1), answers(1))
    assert isinstance(tool, CloseSpan)
    assert tool.is_error is False
    assert [one.is_error for one in signals(HEADER, FOOTER) if isinstance(one, CloseSpan)] == [None]


def test_drivers_that_use_one_id_twice_do_not_mix_their_calls() -> None:
    twice = [ToolRequested(call=n, call_id="same", tool="qa_fetch", args={}) for n in (1, 2)]
    assert brief(*twice, answers(2), answers(1)) == ["+tool:1", "+tool:2", "-tool:2", "-tool:1"]


def by_key(found: list[Signal]) -> dict[str, list[Signal]]:
    kept = defaultdict(list)
    for signal in found:
        kept[signal.key].append(signal)
    return dict(kept)


@given(runs)
def test_the_file_gives_the_same_signals_as_the_live_stream(events: list[Event]) -> None:
    recorded, told = flow(*events)
    assert by_key(signals(*told)) == by_key(signals(*recorded))


@given(runs)
def test_what_opens_closes_once_and_inside_its_parent(events: list[Event]) -> None:
    is_open: set[str] = set()
    for signal in signals(*flow(*events)[1]):
        if isinstance(signal, OpenSpan):
            assert signal.key not in is_open
            assert not signal.parent or signal.parent in is_open
            is_open.add(signal.key)
        else:
            is_open.remove(signal.key)
    assert is_open == set()


def test_a_tracer_that_raises_every_time_is_told_everything() -> None:
    told: list[Signal] = []

    def broken(signal: Signal) -> None:
        told.append(signal)
        raise RuntimeError("tracer")

    observer = Observer(broken)
    for event in (HEADER, asks(1)):
        observer.observe(event)
    observer.flush()
    observer.flush()
    assert [signal.key for signal in told] == ["run", "tool:1", "tool:1", "run"]
