"""A run at its sinks: all of it, signed, masked, cut to size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fleet.config import SinkSection
from fleet.events.model import Event, FindingPosted, Footer, TurnUsage, total_usage
from fleet.events.sinks import CAP, LARGEST, Sender, SinkReader, sinking
from fleet.events.truncate import packed
from fleet.triggers.hooks import webhook
from tests.events.receiver import DONE, MASKED, RUN, receiving, seal, send, sent, told
from tests.events.samples import (
    FOOTER,
    HEADER,
    Kept,
    answers,
    asks,
    denied,
    ends,
    piece,
    said,
    starts,
    stream,
    turn,
)
from tests.events.test_conformance import CASES, Case

pytestmark = pytest.mark.anyio


def bare(delivery: dict[str, Any]) -> dict[str, Any]:
    """A call's delivery as the hand-written list has it: whole, always."""
    payload = delivery["payload"]
    if "text" in payload:
        payload = payload | {"is_complete": delivery["is_complete"]}
    return {"kind": delivery["kind"], "identity": delivery["identity"], "payload": payload}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_sink_gets_what_every_other_way_delivers(case: Case) -> None:
    async with receiving() as receiver:
        await send(receiver, events=(HEADER, *case.events, FOOTER))
    expected = [
        {"kind": d.kind, "identity": d.identity, "payload": json.loads(json.dumps(d.payload))}
        for d in case.deliveries
    ]
    assert [bare(delivery) for delivery in receiver.deliveries()] == expected
    batch_of = receiver.batches()
    assert [batch["seq"] for batch in batch_of] == list(range(len(batch_of)))
    assert {(batch["v"], batch["run"], batch["persona"], batch["lost"]) for batch in batch_of} == {
        (1, "r1", "qa-x", 0)
    }
    assert [bool(batch["end"]) for batch in batch_of] == [False] * (len(batch_of) - 1) + [True]


async def test_the_last_batch_says_what_the_run_came_to(caplog: pytest.LogCaptureFixture) -> None:
    used = TurnUsage(model="m", input_tokens=3)
    async with receiving() as receiver:
        last = Footer(outcome="stopped", detail="enough")
        await send(receiver, events=(HEADER, said(0, "so far"), turn(0, used), last))
        usage = {"model": "m", "input_tokens": 3}
        assert receiver.ends() == [
            {"outcome": "stopped", "detail": "enough", "final_text": "so far", "usage": usage}
        ]
        assert receiver.lines[0] == "POST /hooks/deploy HTTP/1.1"
        assert ("content-type", "application/json") in receiver.posts[0].headers
    assert told(caplog) == []


async def test_an_early_close_sends_what_is_open_as_cut_off_and_no_end() -> None:
    async with receiving() as receiver:
        await send(receiver, events=(HEADER, asks(1), starts(0), piece(0, "I th")))
    cut = [(one["kind"], one["payload"].get("text"), one["is_complete"]) for one in receiver.deliveries()]
    assert cut == [("tool_request", None, True), ("text", "I th", False)]
    assert receiver.ends() == []


async def test_a_batch_is_of_one_run_each_with_its_own_count() -> None:
    async with receiving() as receiver, sent(receiver) as readers:
        lines = [stream(Kept(), *readers, run=run) for run in ("r1", "r2")]
        for event in RUN:
            for line in lines:
                line.emit(event)
    seen = {(batch["run"], batch["seq"], len(batch["deliveries"])) for batch in receiver.batches()}
    assert seen == {("r1", 0, 3), ("r2", 0, 3)}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["text"], ["text"]),
        (["tool_response", "tool_request"], ["tool_request", "tool_response", "tool_response"]),
        (["reasoning"], ["reasoning"]),
        ([], []),
    ],
)
async def test_only_the_wanted_kinds_are_sent_and_the_end_always(
    kinds: list[str], expected: list[str]
) -> None:
    async with receiving() as receiver:
        await send(receiver, events=(*RUN[:-1], said(1, "hm", "reasoning"), denied(2), FOOTER), kinds=kinds)
    assert [delivery["kind"] for delivery in receiver.deliveries()] == expected
    assert receiver.ends() == [DONE]


async def test_nothing_leaves_unmasked_and_a_public_hash_stays() -> None:
    tx = "0x" + "ab" * 32
    events = (
        HEADER,
        asks(1, url=f"http://x/{MASKED}", args={MASKED: 1}),
        answers(1, text=[MASKED], tx=tx),
        said(0, MASKED),
        Footer(outcome="failed", detail=f"because of {MASKED}"),
    )
    async with receiving() as receiver:
        await send(receiver, events=events)
    assert MASKED not in str(receiver.batches())
    assert receiver.ends()[0]["final_text"] == "[redacted:secret]"
    assert receiver.deliveries()[1]["payload"]["result"] == {"text": ["[redacted:secret]"], "tx": tx}


async def test_a_body_is_always_json_and_never_more_than_a_webhook_takes() -> None:
    odd = {"nan": float("nan"), "half": "\ud800", "deep": [[[float("inf")]]]}
    wide = {f"k{n}" * 40: ["x" * 999] * 40 for n in range(40)}
    events = [asks(n, text="y" * 50_000) for n in range(40)]
    async with receiving() as receiver:
        await send(receiver, events=(HEADER, asks(98, args=odd), asks(99, args=wide), *events, FOOTER))
    assert max(len(post.body) for post in receiver.posts) <= LARGEST == webhook.LARGEST
    first, second, *rest = receiver.deliveries()
    assert first["payload"]["args"]["args"] == {"nan": None, "half": "?", "deep": [[[None]]]}
    assert second["payload"]["args"]["args"]["…"] == "[cut 32 keys]"
    assert [one["payload"]["args"]["text"][-24:] for one in rest] == [
        "…[cut 41808 characters]".rjust(24, "y")
    ] * 40
    assert len(receiver.posts) > 1


async def test_of_a_text_without_end_only_so_much_is_looked_at() -> None:
    seen: list[int] = []

    def mask(value: dict[str, Any]) -> dict[str, Any]:
        seen.append(len(json.dumps(value)))
        return value

    async with receiving() as receiver:
        section = SinkSection.model_validate({"url": receiver.url})
        async with sinking({"ci": section}, seal=seal, mask=mask) as (reader,):
            reader(asks(1, text="y" * 5_000_000).model_copy(update={"run": "r1"}))
    assert 2 * CAP < max(seen) < 3 * CAP
    assert len(receiver.deliveries()) == 1


def _tree(depth: int) -> Any:
    return {"a" * 40: _tree(depth - 1), "b" * 40: _tree(depth - 1)} if depth else "x" * 40


def test_whatever_shape_a_record_has_it_is_packed() -> None:
    record = {"kind": "tool_request", "identity": "1", "payload": _tree(12), "is_complete": True}
    line = packed(record, CAP)
    assert len(line) <= CAP
    assert json.loads(line) == {**record, "payload": "…[cut]"}


async def test_a_run_that_is_over_is_forgotten() -> None:
    async with receiving() as receiver, sent(receiver) as (reader,):
        line = stream(Kept(), reader)
        for event in RUN:
            line.emit(event)
        assert isinstance(reader, SinkReader)
        assert reader._runs == {}
    assert receiver.ends() == [DONE]


async def test_a_run_that_another_process_began_has_its_end() -> None:
    async with receiving() as receiver:
        late = FindingPosted(fingerprint="f1", tx="0x1", index=7)
        await send(receiver, events=(late, Footer(outcome="crashed", detail="reaped")))
    (batch,) = receiver.batches()
    assert [one["identity"] for one in batch["deliveries"]] == ["f1"]
    assert (batch["persona"], batch["seq"], batch["end"]["outcome"]) == ("", 0, "crashed")


class Outbox:
    """Keeps the ends of runs, in place of a queue; `broken` kinds raise."""

    def __init__(self, broken: str = "") -> None:
        self.broken, self.got = broken, list[dict[str, Any]]()

    def put(self, sender: Sender, pack: Callable[[], bytes], *, is_end: bool = False) -> None:
        record = json.loads(pack())
        if record.get("kind") == self.broken:
            raise RuntimeError(self.broken)
        self.got.append(record)


def delivered(*events: Event, broken: str = "") -> list[dict[str, Any]]:
    outbox: Any = Outbox(broken)
    line = stream(Kept(), SinkReader(outbox, ("text", "reasoning", "tool_request"), lambda one: one))
    for event in events:
        line.emit(event)
    kept: list[dict[str, Any]] = outbox.got
    return kept


@pytest.mark.parametrize(
    ("events", "final"),
    [
        ((starts(0, text="on the start"), ends(0)), "on the start"),
        ((starts(0), starts(1), piece(0, "a"), piece(1, "b"), piece(0, "c"), ends(1), ends(0)), "ac"),
        ((starts(0), piece(0, "first"), ends(0), said(1, "second"), said(2, "hm", "reasoning")), "second"),
        ((starts(0), piece(0, "cut o")), "cut o"),
        ((), ""),
    ],
)
def test_the_final_text_is_the_last_that_was_said(events: tuple[Event, ...], final: str) -> None:
    assert delivered(HEADER, *events, FOOTER)[-1]["final_text"] == final


def test_usage_is_the_sum_of_the_turns_unless_the_footer_says_it() -> None:
    one = TurnUsage(model="m", input_tokens=3, cost_usd="0.10")
    two = TurnUsage(input_tokens=4, cost_usd="0.2")
    summed = {"model": "m", "input_tokens": 7, "cost_usd": "0.30"}
    assert delivered(HEADER, turn(0, one), turn(1, two), FOOTER)[-1]["usage"] == summed
    last = Footer(outcome="done", usage=TurnUsage(input_tokens=9))
    assert delivered(HEADER, turn(0, one), last)[-1]["usage"] == {"model": "", "input_tokens": 9}
    assert delivered(HEADER, turn(0), FOOTER)[-1]["usage"] is None
    partly = [TurnUsage(input_tokens=1, output_tokens=2), TurnUsage(input_tokens=1)]
    assert total_usage(partly) == TurnUsage(input_tokens=2)


def test_a_delivery_that_fails_is_lost_and_nothing_else() -> None:
    got = delivered(HEADER, said(0, "a"), asks(1), FOOTER, broken="text")
    assert [one.get("kind") for one in got] == ["tool_request", None]
    assert got[-1]["final_text"] == "a"
