"""A batch in the guest: one result line for each call, a question's calls up to its first failure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.guest import EXIT_BAD_LINE, EXIT_BROKEN, MAX_CALLS
from tests.sandbox.doubles import Got, bench, http_answer, run_guest

pytestmark = pytest.mark.anyio
CTX = {"run": "r", "prefix": "qa-r-", "deadline_s": 5.0}


def request(calls: object, **change: Any) -> bytes:
    asked = {"v": 1, "tool": "qa_fetch", "calls": calls, "starts_s": 20.0, "ctx": CTX}
    return json.dumps(asked | change).encode() + b"\n"


def fetches(*urls: str) -> list[dict[str, Any]]:
    """Calls of these pages; one question each, but for those that begin with a number and a space."""
    return [
        {"args": {"url": url.partition(" ")[2] or url}, "group": int(url[0]) if " " in url else 100 + number}
        for number, url in enumerate(urls)
    ]


def lines(out: bytes) -> list[tuple[int, Any]]:
    said = [json.loads(line) for line in out.splitlines()]
    assert {(frozenset(one), one["v"]) for one in said} <= {(frozenset({"v", "call", "result"}), 1)}
    return [(one["call"], one["result"]["status"] or one["result"]["error_class"]) for one in said]


async def test_every_call_has_its_line() -> None:
    def answer(got: Got) -> bytes:
        return http_answer(int(got.path[1:]), b"x")

    async with bench(answer) as it:
        site = it.site.url
        calls = fetches(f"{site}/200", "nonsense", f"{site}/404", "http://other.test/x", f"{site}/201")
        code, out, _ = await run_guest(request(calls), it.address)
    assert code == 0
    assert lines(out) == [(0, 200), (1, "bad_request"), (2, 404), (3, "refused"), (4, 201)]


async def test_a_question_ends_at_its_first_failure_and_the_others_go_on() -> None:
    def answer(got: Got) -> bytes:
        return http_answer(503 if got.path == "/gone" else 500, b"x")

    async with bench(answer) as it:
        site = it.site.url
        calls = fetches(f"1 {site}/a", f"2 {site}/gone", f"1 {site}/b", f"2 {site}/c", f"3 {site}/d")
        code, out, _ = await run_guest(request(calls), it.address)
    assert (code, lines(out)) == (0, [(0, 500), (1, 503), (2, 500), (4, 500)])
    assert [got.path for got in it.site.got] == ["/a", "/gone", "/b", "/d"]


async def test_no_call_begins_after_its_time_but_the_first() -> None:
    async with bench() as it:
        calls = fetches(*[it.site.url + "/x"] * 3)
        code, out, _ = await run_guest(request(calls, starts_s=0.0), it.address)
    assert (code, lines(out)) == (0, [(0, 200)])


async def test_no_call_begins_when_there_is_no_room_for_its_answer() -> None:
    big = [{"args": {"function": "x" * 300}, "group": n} for n in range(3)]  # the answers repeat little of it
    async with bench(lambda _: http_answer(200, b"\xf0\x9f\x98\x80" * 8_000)) as it:
        calls = fetches(*[it.site.url + "/x"] * MAX_CALLS)
        code, out, _ = await run_guest(request(calls), it.address)
        assert (code, len(out) < 1 << 20, 10 < len(lines(out)) < MAX_CALLS) == (0, True, True)
        code, out, _ = await run_guest(request(big, tool="qa_chain"), it.address)
        assert [json.loads(line)["call"] for line in out.splitlines()] == [0, 1, 2]


async def test_what_was_answered_stays_answered_when_the_jail_breaks() -> None:
    calls = [{"args": {"url": "nope"}, "group": 0}, {"args": {"url": "http://a.test/"}, "group": 1}]
    code, out, err = await run_guest(request(calls))  # there is no broker
    assert (code, lines(out)) == (EXIT_BROKEN, [(0, "bad_request")])
    assert err.startswith(b"broken: ")


@pytest.mark.parametrize(
    "line",
    [
        request([]),
        request({}),
        request(fetches(*["x"] * (MAX_CALLS + 1))),
        request([{"args": {}}]),
        request([{"args": {}, "group": "0"}]),
        request([{"args": {}, "group": True}]),
        request([{"args": {}, "group": 0, "x": 1}]),
        request(fetches("x"), starts_s="1"),
        request(fetches("x"), tool="qa_create"),
        request(fetches("x"), args={}),
    ],
)
async def test_a_line_that_is_no_batch_is_refused(line: bytes) -> None:
    code, out, err = await run_guest(line)
    assert (code, out, err[:17]) == (EXIT_BAD_LINE, b"", b"bad request line:")
