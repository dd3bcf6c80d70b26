"""Events to build runs of, and what stands for a run's sink and readers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from fleet.clock import SystemClock
from fleet.events.model import (
    Event,
    Footer,
    GateDenied,
    Header,
    Kind,
    MessageDelta,
    MessageDone,
    MessageSaid,
    MessageStarted,
    ToolRequested,
    ToolResponded,
    TurnEnded,
    TurnStarted,
    TurnUsage,
)
from fleet.events.record import STAMP
from fleet.events.stream import Reader, Stream

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
FOOTER = Footer(outcome="done")


def asks(call: int, tool: str = "qa_fetch", **args: Any) -> ToolRequested:
    return ToolRequested(call=call, call_id=f"c{call}", tool=tool, args=args)


def answers(call: int, tool: str = "qa_fetch", *, is_error: bool = False, **result: Any) -> ToolResponded:
    return ToolResponded(
        call=call, call_id=f"c{call}", tool=tool, is_error=is_error, result=result, seconds=0.1
    )


def denied(call: int, rule: str = "dial", **args: Any) -> GateDenied:
    return GateDenied(call=call, call_id=f"c{call}", tool="qa_call", rule=rule, reason="observe", args=args)


def starts(index: int | None, kind: Kind = "text", text: str = "") -> MessageStarted:
    return MessageStarted(index=index, kind=kind, text=text)


def piece(index: int | None, text: str) -> MessageDelta:
    return MessageDelta(index=index, text=text)


def ends(index: int | None) -> MessageDone:
    return MessageDone(index=index)


def said(index: int | None, text: str, kind: Kind = "text", *, whole: bool = True) -> MessageSaid:
    return MessageSaid(index=index, kind=kind, text=text, is_complete=whole)


def turn(index: int, usage: TurnUsage | None = None, failure: str = "") -> TurnEnded:
    return TurnEnded(index=index, usage=usage, failure=failure)


class Kept:
    """A sink that keeps what is recorded."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.write(event)

    def write(self, event: Event) -> None:
        self.events.append(event)


def stream(sink: Kept, *readers: Reader, run: str = "r1") -> Stream:
    return Stream(run, clock=SystemClock(), sink=sink, readers=readers)


def bare(events: list[Event]) -> list[Event]:
    """As a driver would have made them: without the stamp."""
    return [event.model_copy(update=dict.fromkeys(STAMP, "")) for event in events]


def flow(*events: Event) -> tuple[list[Event], list[Event]]:
    """What is recorded and what a reader is told of these, both without stamps."""
    sink, told = Kept(), list[Event]()
    line = stream(sink, told.append)
    for event in events:
        line.emit(event)
    return bare(sink.events), bare(told)


_index = st.one_of(st.none(), st.integers(0, 3))
_kind: st.SearchStrategy[Kind] = st.sampled_from(["text", "reasoning", "tool_request"])
_text = st.text("ab", max_size=3)
_call = st.integers(1, 4)
_anything: st.SearchStrategy[Event] = st.one_of(
    st.builds(starts, _index, _kind, _text),
    st.builds(piece, _index, _text),
    st.builds(ends, _index),
    st.builds(said, _index, _text, st.sampled_from(["text", "reasoning"])),
    st.builds(asks, _call),
    st.builds(answers, _call, is_error=st.booleans()),
    st.builds(denied, _call),
    st.builds(TurnStarted, index=st.integers(0, 2)),
    st.builds(turn, st.integers(0, 2), st.one_of(st.none(), st.just(TurnUsage(input_tokens=3)))),
)
runs: st.SearchStrategy[list[Event]] = st.lists(_anything, max_size=25).map(
    lambda mid: [HEADER, *mid, FOOTER]
)
"""Whole runs of anything in any order: what a broken or hostile driver may bring about."""
