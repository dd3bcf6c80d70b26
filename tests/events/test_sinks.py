"""A run at its sinks: all of it, signed, masked; and no sink that a run ever notices."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fleet.config import SinkSection
from fleet.events.model import Event, FindingPosted, Footer, TurnUsage
from fleet.events.outbox import CAP, LARGEST, Item, Outbox, Sender, batches, body
from fleet.events.sinks import Sink, sinking
from fleet.events.stream import Reader
from fleet.findings.redact import Redactor
from fleet.triggers import hook
from tests.events.receiver import NEVER, Receiver, receiving, seal
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
from tests.events.test_conformance import CASES, Case

pytestmark = pytest.mark.anyio
RUN: tuple[Event, ...] = (HEADER, asks(1), answers(1, ok=True), said(0, "all is well"), FOOTER)
DONE = {"outcome": "done", "detail": "", "final_text": "all is well", "usage": None}


@asynccontextmanager
async def sent(
    *receivers: Receiver, kinds: Sequence[str] | None = None, **limits: float
) -> AsyncIterator[tuple[Reader, ...]]:
    """Sinks for these, named by their number."""
    more = {} if kinds is None else {"kinds": kinds}
    sections = {
        f"sink-{number}": SinkSection.model_validate({"url": receiver.url, **more})
        for number, receiver in enumerate(receivers)
    }
    async with sinking(sections, seal=seal, mask=Redactor(["a well kept secret"]).value, **limits) as readers:
        yield readers


async def send(
    *receivers: Receiver, events: Sequence[Event] = RUN, kinds: Sequence[str] | None = None, **limits: float
) -> list[Event]:
    """These happen, at once; what was written down of them."""
    sink = Kept()
    async with sent(*receivers, kinds=kinds, **limits) as readers:
        line = stream(sink, *readers)
        for event in events:
            line.emit(event)
    return sink.events


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fleet.sinks"]


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
    expected = [{"kind": d.kind, "identity": d.identity, "payload": d.payload} for d in case.deliveries]
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
    secret = "a well kept secret"
    events = (
        HEADER, asks(1, url=f"http://x/{secret}", args={secret: 1}), answers(1, text=[secret], tx=tx),
        said(0, secret), Footer(outcome="failed", detail=f"because of {secret}"),
    )  # fmt: skip
    async with receiving() as receiver:
        await send(receiver, events=events)
    assert secret not in str(receiver.batches())
    assert receiver.ends()[0]["final_text"] == "[redacted:secret]"
    assert receiver.deliveries()[1]["payload"]["result"] == {"text": ["[redacted:secret]"], "tx": tx}


async def test_a_body_is_always_json_and_never_more_than_a_webhook_takes() -> None:
    odd = {"nan": float("nan"), "half": "\ud800", "deep": [[[float("inf")]]]}
    wide = {f"k{n}" * 40: ["x" * 999] * 40 for n in range(40)}
    events = [asks(n, text="y" * 50_000) for n in range(40)]
    async with receiving() as receiver:
        await send(receiver, events=(HEADER, asks(98, args=odd), asks(99, args=wide), *events, FOOTER))
    assert max(len(post.body) for post in receiver.posts) <= LARGEST == hook.LARGEST
    first, second, *rest = receiver.deliveries()
    assert first["payload"]["args"]["args"] == {"nan": None, "half": "?", "deep": [[[None]]]}
    assert second["payload"]["args"]["args"]["…"] == "[cut 32 keys]"
    assert [one["payload"]["args"]["text"][-24:] for one in rest] == [
        "…[cut 41808 characters]".rjust(24, "y")
    ] * 40
    assert len(receiver.posts) > 1


MOVED = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "HTTP 500"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "HTTP 401"),
        (MOVED % b"http://127.0.0.1:9/", "HTTP 307: redirects are not followed"),
        (b"\x16\x03\x01 nonsense\r\n\r\n", "RemoteProtocolError"),
    ],
)  # fmt: skip
async def test_a_failure_is_told_once_and_what_it_lost_is_counted(
    answer: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    events = [asks(n, text="y" * 8_000) for n in range(60)]
    async with receiving(answer) as receiver:
        recorded = await send(receiver, events=(HEADER, *events, FOOTER))
    assert len(receiver.posts) > 1
    assert len(recorded) == 62
    first, last = told(caplog)
    assert first.startswith(f"sink sink-0: {why}")
    assert first.endswith("; runs go on")
    assert last == "sink sink-0: 61 of 61 deliveries were lost"
    batch_of = receiver.batches()
    before = [sum(len(batch["deliveries"]) for batch in batch_of[:n]) for n in range(len(batch_of))]
    assert [batch["lost"] for batch in batch_of] == before


async def test_a_redirect_leads_nowhere() -> None:
    async with receiving() as other, receiving(MOVED % other.url.encode()) as receiver:
        await send(receiver)
    assert (len(receiver.posts), other.posts) == (1, [])


async def test_a_sink_that_is_away_or_silent_costs_the_other_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as line:
        away = Receiver(url=f"http://127.0.0.1:{line.getsockname()[1]}/")
    async with receiving(NEVER) as silent, receiving() as well:
        recorded = await send(away, silent, well, deadline_s=0.2)
    assert (len(recorded), len(silent.posts), len(well.deliveries()), well.ends()) == (5, 1, 3, [DONE])
    assert sorted(told(caplog)) == [
        "sink sink-0: 4 of 4 deliveries were lost",
        "sink sink-0: ConnectError: All connection attempts failed; runs go on",
        "sink sink-1: 4 of 4 deliveries were lost",
        "sink sink-1: no answer within 0.2 s; runs go on",
    ]


async def test_what_has_not_been_posted_soon_after_the_end_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with receiving(NEVER) as silent:
        await send(silent, flush_s=0.3)
    assert len(silent.posts) == 1
    assert told(caplog) == ["sink sink-0: 4 of 4 deliveries were lost"]


async def test_of_an_answer_nothing_is_read_but_its_status(caplog: pytest.LogCaptureFixture) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with receiving(head, endless=b"10000\r\n" + b"x" * 0x10000 + b"\r\n") as receiver:
        await send(receiver)
    assert receiver.ends() == [DONE]
    assert told(caplog) == []


async def test_a_secret_that_is_gone_is_told_like_any_failure(caplog: pytest.LogCaptureFixture) -> None:
    def unsigned(name: str, body_: bytes) -> dict[str, str]:
        raise OSError(f"no secret for {name}")

    async with receiving() as receiver:
        section = SinkSection.model_validate({"url": receiver.url})
        async with sinking({"ci": section}, seal=unsigned, mask=lambda value: value) as readers:
            line = stream(Kept(), *readers)
            for event in RUN:
                line.emit(event)
    assert receiver.posts == []
    assert told(caplog)[0] == "sink ci: OSError: no secret for ci; runs go on"


class TestQueue:
    """Nobody is posting yet: what a run puts in while a sink is slow."""

    @pytest.fixture
    async def outbox(self) -> AsyncIterator[tuple[Outbox, Receiver]]:
        async with receiving() as receiver:
            yield Outbox("ci", receiver.url, lambda content: seal("ci", content), room=3), receiver

    async def test_what_finds_no_room_is_dropped_and_counted_and_told_once(
        self, outbox: tuple[Outbox, Receiver], caplog: pytest.LogCaptureFixture
    ) -> None:
        box, receiver = outbox
        sink = Sink(box, SinkSection.model_fields["kinds"].default, lambda value: value)
        record = Kept()
        line = stream(record, sink)
        events: list[Event] = [HEADER, *[asks(n) for n in range(10)], FOOTER]
        for event in events:
            line.emit(event)
        assert len(record.events) == 12
        assert told(caplog) == ["sink ci: its queue is full, deliveries are dropped; runs go on"]
        sink.close()
        await box.run()
        box.sum_up()
        (batch,) = receiver.batches()
        assert [one["identity"] for one in batch["deliveries"]] == ["0", "1", "2"]
        assert (batch["lost"], batch["end"]["outcome"]) == (7, "done")
        assert told(caplog)[1:] == ["sink ci: 7 of 11 deliveries were lost"]

    async def test_even_ends_have_a_bound(self, outbox: tuple[Outbox, Receiver]) -> None:
        box, receiver = outbox
        for n in range(2_000):
            box.put(Sender(run=f"r{n}"), lambda: b"{}", is_end=True)
        box.close()
        await box.run()
        assert box.taken == 2_000
        assert box.arrived == len(receiver.posts) == 515


async def test_a_run_that_is_over_is_forgotten() -> None:
    async with receiving() as receiver, sent(receiver) as (reader,):
        line = stream(Kept(), reader)
        for event in RUN:
            line.emit(event)
        assert isinstance(reader, Sink)
        assert reader.runs == {}
    assert receiver.ends() == [DONE]


async def test_a_run_that_another_process_began_has_its_end() -> None:
    async with receiving() as receiver:
        late = FindingPosted(fingerprint="f1", tx="0x1", index=7)
        await send(receiver, events=(late, Footer(outcome="crashed", detail="reaped")))
    (batch,) = receiver.batches()
    assert [one["identity"] for one in batch["deliveries"]] == ["f1"]
    assert (batch["persona"], batch["seq"], batch["end"]["outcome"]) == ("", 0, "crashed")


def test_batches_keep_the_order_of_each_run_and_their_size() -> None:
    one, two = Sender(run="r1", persona="a"), Sender(run="r2")
    items = [
        Item(sender, b'"%d"' % number + b" " * (CAP - 4)) for number in range(10, 40) for sender in (one, two)
    ]
    made = list(batches(items))
    for sender in (one, two):
        mine = [item for batch in made for item in batch if item.sender is sender]
        assert [item.content[1:3] for item in mine] == [b"%d" % number for number in range(10, 40)]
    assert all(len({item.sender for item in batch}) == 1 for batch in made)
    assert max(len(body(batch)) for batch in made) <= LARGEST
    assert len(made) == 2 * 5
