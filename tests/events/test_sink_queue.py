"""A sink that is slow, away, wrong or hostile: told once, counted, and never a run's business."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import anyio
import pytest

from fleet.config import SinkSection
from fleet.events.model import Event
from fleet.events.sinks import (
    CAP,
    LARGEST,
    QueuedDelivery,
    Sender,
    SinkQueue,
    SinkReader,
    batches,
    body,
    sinking,
)
from tests.events.receiver import DONE, NEVER, RUN, Receiver, receiving, seal, send, sent, told
from tests.events.samples import FOOTER, HEADER, Kept, asks, stream

pytestmark = pytest.mark.anyio
MOVED = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "HTTP 500"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "HTTP 401"),
        (MOVED % b"http://127.0.0.1:9/", "HTTP 307: redirects are not followed"),
        (b"\x16\x03\x01 nonsense\r\n\r\n", "RemoteProtocolError"),
    ],
)
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
    assert first.endswith("; runs continue")
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
        "sink sink-0: ConnectError: All connection attempts failed; runs continue",
        "sink sink-1: 4 of 4 deliveries were lost",
        "sink sink-1: no answer within 0.2 s; runs continue",
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


async def test_what_is_delivered_soon_after_goes_with_it() -> None:
    async with receiving() as receiver, sent(receiver) as (reader,):
        line = stream(Kept(), reader)
        for event in RUN:
            line.emit(event)
            await anyio.sleep(0.01)
    assert len(receiver.posts) == 1


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
    assert told(caplog)[0] == "sink ci: OSError: no secret for ci; runs continue"


class TestQueue:
    """Nobody is posting yet: what a run puts in while a sink is slow."""

    @pytest.fixture
    async def outbox(self) -> AsyncIterator[tuple[SinkQueue, Receiver]]:
        async with receiving() as receiver:
            yield SinkQueue("ci", receiver.url, lambda content: seal("ci", content), room=3), receiver

    async def test_what_finds_no_room_is_dropped_and_counted_and_told_once(
        self, outbox: tuple[SinkQueue, Receiver], caplog: pytest.LogCaptureFixture
    ) -> None:
        box, receiver = outbox
        sink = SinkReader(box, SinkSection.model_fields["kinds"].default, lambda value: value)
        record = Kept()
        line = stream(record, sink)
        events: list[Event] = [HEADER, *[asks(n) for n in range(10)], FOOTER]
        for event in events:
            line.emit(event)
        assert len(record.events) == 12
        assert told(caplog) == ["sink ci: its queue is full, deliveries are dropped; runs continue"]
        sink.close()
        await box.run()
        box.sum_up()
        (batch,) = receiver.batches()
        assert [one["identity"] for one in batch["deliveries"]] == ["0", "1", "2"]
        assert (batch["lost"], batch["end"]["outcome"]) == (7, "done")
        assert told(caplog)[1:] == ["sink ci: 7 of 11 deliveries were lost"]

    async def test_even_ends_have_a_bound(self, outbox: tuple[SinkQueue, Receiver]) -> None:
        box, receiver = outbox
        for n in range(2_000):
            box.put(Sender(run=f"r{n}"), lambda: b"{}", is_end=True)
        box.close()
        await box.run()
        assert box.taken == 2_000
        assert box.arrived == len(receiver.posts) == 515


def test_batches_keep_the_order_of_each_run_and_their_size() -> None:
    one, two = Sender(run="r1", persona="a"), Sender(run="r2")
    items = [
        QueuedDelivery(sender, b'"%d"' % number + b" " * (CAP - 4))
        for number in range(10, 40)
        for sender in (one, two)
    ]
    made = list(batches(items))
    for sender in (one, two):
        mine = [item for batch in made for item in batch if item.sender is sender]
        assert [item.content[1:3] for item in mine] == [b"%d" % number for number in range(10, 40)]
    assert all(len({item.sender for item in batch}) == 1 for batch in made)
    assert max(len(body(batch)) for batch in made) <= LARGEST
    assert len(made) == 2 * 5
