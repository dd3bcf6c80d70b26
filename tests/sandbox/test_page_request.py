"""What a page is asked with: as the platform gets it, and what is never sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleet.broker.broker import Broker
from fleet.broker.pace import HostPace
from sandbox.pages.page_request import MAX_FIELDS, MAX_HEADERS, MAX_SENT, MAX_VALUE, OURS, effect_of
from sandbox.spec import OVERRIDES, SAFE, UNSAFE, Effect
from tests.sandbox.doubles import Server, bench, listener, policy_for, run_guest

anyio = pytest.mark.anyio


@anyio
async def test_a_form_a_text_and_headers_are_sent_as_given() -> None:
    async with bench() as it:
        url = it.site.url + "/x?a=1"
        sent: dict[str, Any] = {"method": "POST", "headers": {"Cookie": "s=1", "Authorization": "Bearer t"}}
        fields = {"name": "moss", "count": 2, "ratio": 0.5, "on": True}
        assert (await it.run("qa_fetch", {"url": url, **sent, "fields": fields}))["ok"]
        raw = {"url": url, "method": "POST", "body": "a=ü", "body_type": "application/x-www-form-urlencoded"}
        assert (await it.run("qa_fetch", raw))["ok"]
        assert (await it.run("qa_fetch", {"url": url, "method": "POST"}))["ok"]
        assert (await it.run("qa_fetch", {"url": url, "method": "HEAD", "origin": "https://o.test"}))["ok"]
    form, text, empty, head = it.site.got
    assert (form.method, form.path, json.loads(form.body)) == ("POST", "/x?a=1", fields)
    assert {key: form.headers[key] for key in ("cookie", "authorization", "content-type")} == {
        "cookie": "s=1",
        "authorization": "Bearer t",
        "content-type": "application/json",
    }
    assert (text.body, text.headers["content-type"]) == ("a=ü".encode(), raw["body_type"])
    assert (empty.body, empty.headers["content-length"]) == (b"", "0")
    assert (head.method, head.headers["origin"]) == ("HEAD", "https://o.test")
    assert not {"expect", "x-qa-once"} & {name for got in it.site.got for name in got.headers}


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("/args/method", {"method": "post"}),
    ("/args/method", {"method": "CONNECT"}),
    ("/args/method", {"method": "TRACE"}),
    ("/args/method", {"method": "GET /x HTTP/1.1\r\nx: y"}),
    ("/args/headers:", {"headers": {f"x-{n}": "" for n in range(MAX_HEADERS + 1)}}),
    ("/args/headers/X-A", {"headers": {"x-a": "1", "X-A": "2"}}),
    ("/args/headers/a b", {"headers": {"a b": "1"}}),
    ("/args/headers/", {"headers": {"": "1"}}),
    ("/args/headers/x-a", {"headers": {"x-a": "1\r\nhost: other"}}),
    ("/args/headers/x-a", {"headers": {"x-a": "ü"}}),
    ("/args/headers/x-a", {"headers": {"x-a": "v" * (MAX_VALUE + 1)}}),
    *(
        (f"/args/headers/{name.title()}", {"headers": {name.title(): "1"}})
        for name in sorted(OURS | OVERRIDES)
    ),
    ("/args/body", {"method": "POST", "fields": {"a": 1}, "body": "a"}),
    ("/args/body", {"body": "a"}),
    ("/args/fields", {"method": "HEAD", "fields": {"a": 1}}),
    ("/args/fields", {"method": "POST", "fields": {f"f{n}": 1 for n in range(MAX_FIELDS + 1)}}),
    ("/args/fields/a", {"method": "POST", "fields": {"a": [1]}}),
    ("/args/fields/a", {"method": "POST", "fields": {"a": None}}),
    ("/args/fields", {"method": "POST", "fields": {"a": "x" * MAX_SENT}}),
    ("/args/body", {"method": "POST", "body": "x" * (MAX_SENT + 1)}),
    ("/args/body_type", {"method": "POST", "body": "x", "body_type": "a\nb"}),
    ("/args/repeat", {"method": "POST", "repeat": 2}),
    ("/args/repeat", {"method": "DELETE", "control": "http://127.0.0.1:1/"}),
    ("/args/origin", {"origin": "https://o.test", "headers": {"origin": "https://p.test"}}),
]


@anyio
async def test_what_may_not_be_sent_is_the_callers_mistake_and_is_not_sent() -> None:
    async with bench() as it:
        calls = [
            {"args": {"url": it.site.url + "/x", **args}, "group": n} for n, (_, args) in enumerate(REFUSED)
        ]
        request = {"v": 1, "tool": "qa_fetch", "calls": calls, "starts_s": 20.0, "ctx": it.ctx()}
        code, out, _ = await it.raw_run(request)
    results = [json.loads(line)["result"] for line in out.splitlines()]
    assert (code, len(results), it.site.got) == (0, len(REFUSED), [])
    for (where, args), result in zip(REFUSED, results, strict=True):
        assert (result["error_class"], result["error"][: len(where)]) == ("bad_request", where), args


@pytest.mark.parametrize("method", SAFE)
def test_a_safe_method_looks(method: str) -> None:
    assert effect_of({"method": method}) is effect_of({}) is Effect.LOOK
    assert effect_of({"method": method, "headers": {"X-A": "1"}}) is Effect.LOOK


@pytest.mark.parametrize(
    "args", [{"method": one} for one in (*UNSAFE, "post", "TRACE", "", None, 7, ["GET"])]
)
def test_every_other_method_is_an_act(args: dict[str, Any]) -> None:
    assert effect_of(args) is Effect.ACT


@pytest.mark.parametrize("headers", [*({name.title(): "DELETE"} for name in OVERRIDES), None, ["x"]])
def test_a_header_that_may_change_the_method_makes_an_act(headers: Any) -> None:
    assert effect_of({"method": "GET", "headers": headers}) is Effect.ACT


@anyio
async def test_a_wait_for_a_turn_is_not_part_of_a_latency() -> None:
    async with Server() as site:
        broker = Broker(policy_for(site.url, pace=HostPace(1 / 3)))
        with listener() as sock:
            async with broker.egress(sock):
                ctx = {"run": "r", "prefix": "qa-r-", "deadline_s": 20.0}
                args = {"url": site.url + "/x", "repeat": 2}
                line = json.dumps({"v": 1, "tool": "qa_fetch", "args": args, "ctx": ctx}).encode()
                host, port = sock.getsockname()
                code, out, err = await run_guest(line + b"\n", f"{host}:{port}")
    result = json.loads(out)["result"]
    assert (code, result["samples"], len(site.got)) == (0, 2, 2), err
    assert result["max_ms"] < 2_500  # the second one's turn came after three seconds


@anyio
async def test_no_turn_in_time_is_our_trouble_and_not_the_platforms() -> None:
    async with Server() as site:
        broker = Broker(policy_for(site.url, pace=HostPace(0.01)))
        with listener() as sock:
            async with broker.egress(sock):
                ctx = {"run": "r", "prefix": "qa-r-", "deadline_s": 1.0}
                call = {"args": {"url": site.url + "/x"}}
                calls = [{**call, "group": 0}, {**call, "group": 1}]
                request = {"v": 1, "tool": "qa_fetch", "calls": calls, "starts_s": 9.0, "ctx": ctx}
                host, port = sock.getsockname()
                _, out, _ = await run_guest(json.dumps(request).encode() + b"\n", f"{host}:{port}")
    first, second = [json.loads(line)["result"] for line in out.splitlines()]
    assert (first["ok"], second["error_class"], len(site.got)) == (True, "busy", 1)
