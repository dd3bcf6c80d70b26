"""qa_mcp through a real broker: both wires, what a server may send, and what a rung permits."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from anyio import to_thread

from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.rpc_policy import Denied
from fleet.devnet.surfaces.harbour import HIDDEN, open_office
from sandbox.agents.mcp_wire import SESSIONS, STATELESS
from sandbox.tools.qa_mcp import hidden_in
from tests.drivers.mcp_visits import asked, profile, way_out
from tests.sandbox.doubles import Got, Server, http_answer, json_answer

GREET = {"method": "tools/call", "name": "greet", "arguments": {"crew": "moss"}}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "events"])
@pytest.mark.parametrize(("wire", "spoken"), [("old", SESSIONS[0]), ("new", STATELESS)])
def test_both_wires_list_every_page_and_call(wire: str, spoken: str, stream: bool) -> None:
    with open_office(wire=wire, stream=stream) as office, way_out(profile(office.url)):
        found = asked({"url": f"{office.url}/mcp"})
        assert (found["ok"], found["wire"], found["server"]) == (True, spoken, "harbour 1.2")
        assert [len(found[kind]) for kind in ("tools", "resources", "templates", "prompts")] == [8, 1, 1, 1]
        said = asked({"url": f"{office.url}/mcp", **GREET})
        assert (said["ok"], said["text"], said["wire"]) == (True, "Hello, moss!", spoken)
        priced = asked(
            {"url": f"{office.url}/mcp", **GREET, "name": "berth_price", "arguments": {"length": 4}}
        )
        assert priced["structured"] == {"price": 10.0, "currency": "EUR"}
        refused = asked({"url": f"{office.url}/mcp", **GREET, "arguments": {}})
        assert (refused["ok"], refused["is_error"], refused["text"]) == (
            False,
            True,
            "missing argument: crew",
        )
        gone = asked({"url": f"{office.url}/mcp", "method": "resources/read", "name": "harbour://other"})
        assert (gone["ok"], gone["code"], gone["error"]) == (
            False,
            -32002 if wire == "old" else -32602,
            "Resource not found",
        )
        assert not [key for key in office.sessions if len(key) == 32]  # each session was ended


def test_at_observe_a_list_is_read_and_no_tool_is_called() -> None:
    with open_office() as office, way_out(profile(office.url), "observe"):
        assert asked({"url": f"{office.url}/mcp"})["ok"]
        refused = asked({"url": f"{office.url}/mcp", **GREET})
        assert (refused["ok"], refused["error_class"]) == (False, "refused")
        assert office.calls == []


def test_each_caller_shows_its_own_token_and_no_answer_repeats_it() -> None:
    with open_office(protected=True) as office, way_out(profile(office.url, accounts=True)):
        listed = {
            who: asked({"url": f"{office.url}/mcp", "caller": who}, accounts=True)
            for who in ("", "one", "other", "invented")
        }
        assert [one["ok"] for one in listed.values()] == [False, True, True, False]
        assert [one["status"] for one in listed.values()] == [401, 200, 200, 401]
        assert all(one["protected"] for one in listed.values())
        token = "harbour-one-4f9c2b7d8e"
        echo = asked(
            {"url": f"{office.url}/mcp", **GREET, "arguments": {"crew": token}, "caller": "one"},
            accounts=True,
        )
        assert echo["text"] == "Hello, [token]!"
        assert asked({"url": f"{office.url}/mcp", "caller": "one"})["error_class"] == "bad_request"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Writes a greeting.{HIDDEN}", ["tag characters"]),
        ("Reads \u202eeht file", ["right-to-left overrides"]),
        ("a" + "\u200b\u2060" * 8, ["a run of invisible characters"]),
        ("Flags \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f of Scotland", []),
        (
            "A crew \U0001f468\u200d\U0001f469\u200d\U0001f467, \u0645\u06cc\u200c\u062e",
            [],
        ),
        ("\ufeffwith a mark of byte order", []),
    ],
)
def test_what_a_person_does_not_see_is_named_and_proper_text_is_not(text: str, found: list[str]) -> None:
    assert list(hidden_in(text)) == found


NOTES = b'data: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n' * 60_000
"""A stream without the reply; it is not read to its end."""
LISTED = {"protocolVersion": SESSIONS[0], "capabilities": {"tools": {}}, "serverInfo": {"name": "odd"}}


def odd(answer: Callable[[dict[str, Any]], bytes]) -> Callable[[Got], bytes]:
    """A server of the older wire whose lists are answered by `answer`."""

    def service(got: Got) -> bytes:
        message = json.loads(got.body or b"{}")
        if message.get("method") == "initialize":
            return json_answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": LISTED})
        if message.get("method") == "tools/list":
            return answer(message)
        return http_answer(202, b"") if "id" not in message else http_answer(400, b"")

    return service


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        inner = {"type": "object", "properties": {"x": inner}}
    return inner


def _listing(message: dict[str, Any], **result: object) -> bytes:
    return json_answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "error", "cut"),
    [
        (
            lambda one: _listing(one, tools=[], nextCursor="again"),
            "not listed: tools: the list does not end",
            False,
        ),
        (lambda one: _listing(one, tools=[{"name": "x", "inputSchema": deep(40)}]), "", True),
        (lambda one: _listing(one, tools=[{"name": f"t{at}"} for at in range(900)]), "", True),
        (lambda one: _listing(one, tools=["x", 7, None, {"name": ["y"]}]), "", False),
        (
            lambda _: http_answer(200, b"data: {\n\n", "content-type: text/event-stream"),
            "not listed: tools: HTTP 200",
            False,
        ),
        (
            lambda _: http_answer(200, b"[" * 100_000, "content-type: application/json"),
            "not listed: tools: HTTP 200",
            False,
        ),
        (
            lambda _: http_answer(200, NOTES, "content-type: text/event-stream"),
            "not listed: tools: HTTP 200",
            False,
        ),
        (
            lambda one: _listing(one, tools=[{"name": "x", "description": "a" * 6_000_000}]),
            "more than 2097152 bytes",
            False,
        ),
        (
            lambda one: _listing(one, tools=[{"name": "x", "inputSchema": {"enum": [*range(9_000)]}}]),
            "",
            True,
        ),
        (
            lambda _: http_answer(302, b"", "location: http://127.0.0.1:1/"),
            "not listed: tools: HTTP 302",
            False,
        ),
    ],
    ids=[
        "endless-list",
        "deep",
        "many",
        "not-definitions",
        "broken-stream",
        "brackets",
        "stream",
        "giant",
        "wide",
        "redirect",
    ],
)
async def test_what_a_hostile_server_sends_is_bounded(
    answer: Callable[[dict[str, Any]], bytes], error: str, cut: bool
) -> None:
    async with Server(odd(answer)) as server:
        with way_out(profile(server.url), "observe"):
            found = await to_thread.run_sync(asked, {"url": f"{server.url}/mcp", "wire": SESSIONS[0]})
    assert (found["error"], found["cut"], len(found["tools"]) <= 200) == (error, cut, True)
    assert len(json.dumps(found)) < 400_000


@pytest.mark.anyio
async def test_what_a_server_names_in_its_refusal_is_not_asked() -> None:
    """Metadata is read at the one place that the endpoint itself decides (RFC 9728), wherever it leads."""
    inward = "http://169.254.169.254/latest/meta-data/"
    asked_for = list[str]()

    def service(got: Got) -> bytes:
        asked_for.append(got.path)
        if got.method == "GET":
            said = {"resource": inward, "authorization_servers": [inward]}
            return json_answer(200, said)
        return http_answer(401, b"", f'www-authenticate: Bearer resource_metadata="{inward}"')

    async with Server(service) as server:
        with way_out(profile(server.url), "observe"):
            found = await to_thread.run_sync(asked, {"url": f"{server.url}/mcp"})
    assert (found["ok"], found["status"], found["protected"]) == (False, 401, False)
    assert set(asked_for) == {"/mcp", "/.well-known/oauth-protected-resource/mcp"}


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("POST", "/mcp", json.dumps(LIST), True),
        ("POST", "/mcp", json.dumps(LIST | {"method": "resources/read", "params": {"uri": "x"}}), True),
        ("DELETE", "/mcp", "", True),
        ("POST", "/mcp", json.dumps(LIST | {"method": "tools/call"}), False),
        ("POST", "/mcp", json.dumps([LIST]), False),
        ("POST", "/mcp", '{"jsonrpc": "2.0", "method": "tools/list", "method": "tools/call"}', False),
        ("POST", "/mcp", '{"jsonrpc": "2.0", "method": "tools/list", "Method": "tools/call"}', False),
        ("POST", "/mcp", json.dumps(LIST | {"method": "tasks/cancel"}), False),
        ("POST", "/mcp", "", False),
        ("POST", "/mcp/x", json.dumps(LIST), False),
        ("POST", "/mcp?x=1", json.dumps(LIST), False),
        ("PUT", "/mcp", json.dumps(LIST), False),
        ("DELETE", "/mcp/x", "", False),
    ],
)
def test_the_broker_reads_what_is_posted_to_an_mcp_server(
    method: str, path: str, body: str, allowed: bool
) -> None:
    policy = EgressPolicy.of(profile("http://127.0.0.1:9"))
    target = parse_target(f"http://127.0.0.1:9{path}")
    with nullcontext() if allowed else pytest.raises(Denied, match="is not permitted there"):
        policy.check(method, target, body.encode())
