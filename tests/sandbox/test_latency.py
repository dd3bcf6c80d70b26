"""Latency on a schedule: counted from the intended start, paired with a control, bounded and gentle."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from sandbox import http
from sandbox.errors import Deadline, Failure
from sandbox.http import HttpReply, HttpRequest
from sandbox.pages.latency import MAX_RATE, MAX_SAMPLES, WARM_UPS, measure, schedule
from tests.sandbox.doubles import bench, http_answer, read_request

pytestmark = pytest.mark.anyio
PAGE, TWIN = (HttpRequest("GET", f"http://site.test/{name}") for name in ("page", "twin"))


@pytest.mark.parametrize("paired", [False, True])
def test_each_slot_of_a_schedule_has_its_requests(paired: bool) -> None:
    plan = schedule(40, 10.0, paired=paired)
    assert [one.due for one in plan] == sorted(one.due for one in plan)
    assert len(plan) == 40 * (1 + paired)
    assert all(one.slot / 10 <= one.due < (one.slot + 1) / 10 for one in plan)
    assert {one.slot for one in plan if not one.beside} == set(range(40))
    if paired:
        due = {(one.slot, one.beside): one.due for one in plan}
        apart = {round(abs(due[slot, True] - due[slot, False]), 6) for slot in range(40)}
        assert apart == {0.05}


@pytest.mark.parametrize("period", [0.1, 0.25, 1.0, 2.0])
def test_a_schedule_is_not_in_step_with_anything(period: float) -> None:
    """Of every tenth of a period, about a tenth of the requests."""
    places = [one.due % period / period for one in schedule(100, 10.0, paired=False)]
    for tenth in range(10):
        assert 5 <= sum(1 for place in places if tenth <= 10 * place < tenth + 1) <= 15


async def test_a_stall_is_counted_for_every_request_that_it_would_have_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The site stops for half a second: a loop that waits for its answer would meet that once."""
    begun = time.monotonic()

    def stalling(request: HttpRequest, deadline: Deadline) -> HttpReply:
        time.sleep(max(0.0, begun + 0.7 - time.monotonic()) if time.monotonic() > begun + 0.2 else 0)
        return HttpReply(200, {}, b"", 1.0)

    monkeypatch.setattr(http, "send", stalling)
    found = measure(PAGE, None, 10, Deadline(20), rate=10.0)
    assert len(found.latencies) == 10
    assert sum(1 for one in found.latencies if one > 50) >= 4
    assert sorted(found.latencies) != list(found.latencies)
    assert list(found.controls) == []


async def test_pairs_of_which_one_failed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"page": 0, "twin": 0}

    def failing(request: HttpRequest, deadline: Deadline) -> HttpReply:
        name = request.target.rpartition("/")[2]
        asked[name] += 1
        counted = asked[name] - 2 * WARM_UPS
        if name == "twin" and counted == 1:
            raise Failure("unreachable", "gone")
        return HttpReply(503 if (name, counted) == ("page", 3) else 200, {}, b"", 1.0)

    monkeypatch.setattr(http, "send", failing)
    found = measure(PAGE, TWIN, 8, Deadline(20), rate=10.0)
    assert asked == {"page": 8 + 2 * WARM_UPS, "twin": 8 + 2 * WARM_UPS}
    assert 6 <= len(found.latencies) == len(found.controls) <= 7


async def test_a_page_that_does_not_answer_in_time_is_as_slow_as_that() -> None:
    served = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        mine = (await read_request(reader)).path == "/page"
        served += mine
        if mine and served == WARM_UPS * 2 + 1:
            await asyncio.sleep(60)
        writer.write(http_answer(200, b"ok", "connection: close"))

    async with bench(raw=answer) as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin", "repeat": 6, "rate": 10.0}
        result = await it.run("qa_fetch", args, deadline_s=4.0)
    assert (result["ok"], result["samples"] >= 5, result["max_ms"] > 1_500) == (True, True, True)


async def test_a_measurement_holds_its_samples_in_pairs() -> None:
    async with bench() as it:
        args = {"url": it.site.url + "/page", "control": it.site.url + "/twin", "repeat": 12, "rate": 10.0}
        result = await it.run("qa_fetch", args)
    assert sorted(got.path for got in it.site.got) == sorted(["/page", "/twin"] * (12 + 2 * WARM_UPS))
    assert len(result["samples_ms"]) == len(result["control_ms"]) == result["samples"] == 12
    assert result["max_ms"] == max(result["samples_ms"])
    assert result["control_p50_ms"] in result["control_ms"]


async def test_without_a_schedule_there_are_no_samples() -> None:
    async with bench() as it:
        result = await it.run("qa_fetch", {"url": it.site.url, "repeat": 3})
    assert (result["samples"], result["samples_ms"], result["control_ms"]) == (3, [], [])


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"rate": MAX_RATE + 1}, "/args/rate: expected 0 (one request after the other) to 10 a second"),
        ({"rate": -1.0}, "/args/rate: expected 0 (one request after the other) to 10 a second"),
        ({"rate": 10.0, "repeat": MAX_SAMPLES + 1}, "/args/repeat: expected 1 to 100"),
        ({"rate": 10.0, "repeat": 0}, "/args/repeat: expected 1 to 100"),
        ({"repeat": 51}, "/args/repeat: expected 1 to 50"),
        ({"rate": 2.0, "repeat": 30}, "/args/rate: 30 requests take more than 12 s; use a higher rate"),
    ],
)
async def test_a_measurement_is_no_load_test(args: dict[str, Any], error: str) -> None:
    async with bench() as it:
        result = await it.run("qa_fetch", {"url": it.site.url} | args)
        assert (result["error_class"], result["error"], it.site.got) == ("bad_request", error, [])
