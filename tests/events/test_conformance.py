"""What is yielded and the file say the same, as expected; and so do the spans of both. Sinks: test_sinks.py.

Agreement alone proves nothing, so everything is also compared with a list written by hand. Fixtures belong
to this module: nothing registers itself, nothing runs at import.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fleet.clock import SystemClock
from fleet.events.live import Lagged, LiveReader
from fleet.events.model import (
    Event,
    FindingPosted,
    FindingRaised,
    FindingRepeated,
    FindingVerified,
    Footer,
    GateDenied,
    MessageSaid,
    ToolRequested,
    ToolResponded,
    TurnStarted,
    TurnUsage,
)
from fleet.events.record import STAMP
from fleet.events.spans import Observer, OpenSpan, Signal
from fleet.events.stream import Stream
from fleet.events.trajectory import TrajectoryFile, read
from tests.events.samples import (
    FOOTER,
    HEADER,
    answers,
    asks,
    denied,
    ends,
    piece,
    said,
    starts,
    turn,
)

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class LogicalDelivery:
    """What was delivered, whichever way it came."""

    kind: str
    identity: str
    payload: Mapping[str, Any]


def text(index: int | None, words: str, kind: str = "text", *, whole: bool = True) -> LogicalDelivery:
    return LogicalDelivery(kind, str(index), {"text": words, "is_complete": whole})


def asked(call: int, **args: Any) -> LogicalDelivery:
    return LogicalDelivery("tool_request", str(call), {"tool": "qa_fetch", "args": args})


def answered(call: int, *, is_error: bool = False, **result: Any) -> LogicalDelivery:
    payload = {"tool": "qa_fetch", "result": result, "is_error": is_error}
    return LogicalDelivery("tool_response", str(call), payload)


def became(event: str, **payload: Any) -> LogicalDelivery:
    return LogicalDelivery("finding", "f1", {"event": event, **payload})


def refused(call: int) -> LogicalDelivery:
    return LogicalDelivery(
        "tool_response", str(call), {"tool": "qa_call", "denied": "malformed", "is_error": True}
    )


@dataclass(frozen=True, slots=True)
class Case:
    """What a driver does, what must arrive, and which spans: `+` opens, `-` closes, `!` error, `~` cut."""

    events: tuple[Event, ...]
    deliveries: tuple[LogicalDelivery, ...]
    spans: str


WISH = (starts(9, "tool_request"), piece(9, '{"a":'))
CASES: dict[str, Case] = {
    "parallel tools, one with an error": Case(
        (asks(1, a=1), asks(2), asks(3), answers(1, ok=True), answers(2, is_error=True), answers(3)),
        (
            asked(1, a=1),
            asked(2),
            asked(3),
            answered(1, ok=True),
            answered(2, is_error=True),
            answered(3),
        ),
        "+tool:1 +tool:2 +tool:3 -tool:1 -tool:2! -tool:3",
    ),
    "answers out of order": Case(
        (asks(1), asks(2), answers(2), answers(1)),
        (asked(1), asked(2), answered(2), answered(1)),
        "+tool:1 +tool:2 -tool:2 -tool:1",
    ),
    "malformed arguments": Case(
        (*WISH, piece(9, "nonsense"), ends(9), denied(1, "malformed", _raw='{"a":nonsense')),
        (refused(1),),
        "+tool:1 -tool:1!",
    ),
    "interleaved indexes": Case(
        (starts(0, text="a"), starts(1), piece(1, "x"), piece(0, "b"), piece(5, "?"), ends(1), ends(0)),
        (text(1, "x"), text(0, "ab")),
        "",
    ),
    "early close": Case(
        (TurnStarted(index=0), starts(0, "reasoning", "I th"), *WISH, starts(1), piece(1, "hel"), asks(1)),
        (asked(1), text(0, "I th", "reasoning", whole=False), text(1, "hel", whole=False)),
        "+turn:0 +reasoning:0 +tool:1 -reasoning:0~ -tool:1~ -turn:0~",
    ),
    "reasoning": Case(
        (
            TurnStarted(index=0),
            starts(0, "reasoning"),
            piece(0, "so"),
            ends(0),
            said(1, "yes"),
            turn(0, TurnUsage(model="m", output_tokens=2)),
        ),
        (text(0, "so", "reasoning"), text(1, "yes")),
        "+turn:0 +reasoning:0 -reasoning:0 +model:0 -model:0 -turn:0",
    ),
    "whole and end of the same id": Case(
        (
            starts(0),
            piece(0, "hal"),
            said(0, "half"),
            ends(0),
            *WISH,
            asks(1),
            ends(9),
            asks(1),
            answers(1),
            ends(9),
        ),
        (text(0, "half"), asked(1), asked(1), answered(1)),
        "+tool:1 -tool:1",
    ),
    "what becomes of a finding": Case(
        (
            asks(1),
            answers(1),
            FindingRaised(fingerprint="f1", probe="p", title="it broke", times=2),
            FindingVerified(fingerprint="f1", confirmed=3, tries=3, state="confirmed"),
            FindingPosted(fingerprint="f1", tx="0x1", index=7),
            FindingRepeated(fingerprint="f1", index=7),
        ),
        (
            asked(1),
            answered(1),
            became(
                "finding.raised",
                probe="p",
                title="it broke",
                times=2,
                kind="",
                severity="",
                references=(),
                cve_references=(),
            ),
            became(
                "finding.verified",
                confirmed=3,
                tries=3,
                state="confirmed",
                evidence_hashes=(),
                kind="",
                severity="",
            ),
            became("finding.posted", tx="0x1", index=7),
            became("finding.repeated", index=7),
        ),
        "+tool:1 -tool:1",
    ),
    "no index": Case((starts(None), piece(None, "x"), ends(None), said(None, "y")), (text(None, "y"),), ""),
    "an orphan answer and a second end": Case(
        (answers(7), starts(0, text="a"), ends(0), ends(0)), (answered(7), text(0, "a")), ""
    ),
}


def normal(events: Iterable[Event]) -> list[LogicalDelivery]:
    """What a list of events delivers."""
    found = []
    for event in events:
        match event:
            case MessageSaid():
                found.append(text(event.index, event.text, event.kind, whole=event.is_complete))
            case ToolRequested():
                payload: dict[str, Any] = {"tool": event.tool, "args": event.args}
                found.append(LogicalDelivery("tool_request", str(event.call), payload))
            case ToolResponded():
                payload = {"tool": event.tool, "result": event.result, "is_error": event.is_error}
                found.append(LogicalDelivery("tool_response", str(event.call), payload))
            case FindingRaised() | FindingVerified() | FindingPosted() | FindingRepeated():
                told = event.model_dump(exclude=set(STAMP))
                payload = {"event": told.pop("type"), **told}
                found.append(LogicalDelivery("finding", payload.pop("fingerprint"), payload))
            case GateDenied():
                payload = {"tool": event.tool, "denied": event.rule, "is_error": True}
                found.append(LogicalDelivery("tool_response", str(event.call), payload))
    return found


def shown(signals: list[Signal]) -> str:
    words = []
    for signal in signals:
        if isinstance(signal, OpenSpan):
            words.append(f"+{signal.key}")
        else:
            mark = "" if signal.is_complete else "~"
            words.append(f"-{signal.key}{mark}{'!' if signal.is_error else ''}")
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class Outcome:
    deliveries: dict[str, list[LogicalDelivery]]
    signals: dict[str, list[Signal]]


async def both_ways(case: Case, path: Path) -> Outcome:
    """One run of these events: yielded, and read back from its file."""
    yielded, recorded = list[Signal](), list[Signal]()
    live, tracing = LiveReader("r1"), Observer(yielded.append)
    sink = TrajectoryFile(path)
    line = Stream("r1", clock=SystemClock(), sink=sink, readers=(live, tracing.observe))
    for event in (HEADER, *case.events, FOOTER):
        line.emit(event)
    async with aclosing(live.events()) as events:
        got = [event async for event in events if not isinstance(event, Lagged)]
    observer = Observer(recorded.append)
    for event in read(path):
        observer.observe(event)
    assert isinstance(got[-1], Footer)
    return Outcome(
        {"yield": normal(got), "file": normal(read(path))},
        {"yield": yielded, "file": recorded},
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_every_way_delivers_what_is_expected(case: Case, tmp_path: Path) -> None:
    outcome = await both_ways(case, tmp_path / "t.jsonl")
    for way, deliveries in outcome.deliveries.items():
        assert deliveries == list(case.deliveries), way


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_every_ways_tracer_gets_the_expected_spans(case: Case, tmp_path: Path) -> None:
    outcome = await both_ways(case, tmp_path / "t.jsonl")
    expected = f"+run {case.spans} -run".replace("  ", " ")
    assert shown(outcome.signals["yield"]) == expected
    live, file = outcome.signals["yield"], outcome.signals["file"]
    assert sorted(map(repr, file)) == sorted(map(repr, live))
