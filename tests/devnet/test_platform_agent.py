"""The agent behind the proxy, and its replies as a stream."""

from __future__ import annotations

import json

import httpx
import pytest

from fleet.chain.keys import address_of
from fleet.devnet.platform.chain import PERSONA, DiamondDouble
from fleet.devnet.platform.site import CREDIT
from tests.devnet.platform_server import (
    CALLER,
    GENERATE,
    OTHER,
    STREAM,
    Client,
    saying,
)

PRICE = CREDIT // 100


def text_of(response: httpx.Response) -> str:
    return "".join(part.get("text", "") for part in response.json()["candidates"][0]["content"]["parts"])


def test_the_caller_is_who_signed_whatever_the_body_claims(client: Client) -> None:
    response = client.say("What is my address?", **{"from": "0x" + "de" * 20, "caller": "0x" + "de" * 20})
    assert text_of(response) == f"You are {address_of(CALLER)}."
    assert response.json()["caller"] == address_of(CALLER)


def test_a_greeting_is_kept_per_caller_and_agent(client: Client, chain: DiamondDouble) -> None:
    chain.credits[address_of(OTHER)] = CREDIT
    assert "is saved" in text_of(client.say("set greeting <i>moss</i>"))
    assert text_of(client.say("show my greeting")) == "Your greeting is: <i>moss</i>"
    other = client.post(saying("show my greeting"), token=client.token(OTHER))
    assert text_of(other) == "You have no greeting here yet."
    assert text_of(client.say("show my greeting", "docs")) == "You have no greeting here yet."
    page = client.get(f"/face/claude/greeting?of={address_of(CALLER)}").text
    assert "&lt;i&gt;moss&lt;/i&gt;" in page
    assert "<i>moss" not in page


@pytest.mark.parametrize("tool", ["delete_file", "transfer_credits", "release_name"])
def test_a_stranger_gets_no_destructive_tool(client: Client, tool: str) -> None:
    response = client.say(f"/tool {tool} qa-x.txt")
    assert response.json()["candidates"][0]["content"]["parts"] == [{"text": text_of(response)}]
    assert text_of(response) == f"I will not run {tool} for a remote caller: only my owner can ask for that."


def test_the_owner_gets_it_and_harmless_tools_are_for_all(client: Client, chain: DiamondDouble) -> None:
    assert client.say("/tool list_files").json()["candidates"][0]["content"]["parts"][0] == {
        "functionCall": {"name": "list_files", "args": {"value": ""}}
    }
    chain.names["own"] = address_of(CALLER)
    parts = client.say("/tool delete_file a.txt", "own").json()["candidates"][0]["content"]["parts"]
    assert parts[0] == {"functionCall": {"name": "delete_file", "args": {"value": "a.txt"}}}
    assert text_of(client.say("/tool fly")) == "I have no tool named fly."


@pytest.mark.parametrize(("last", "turns"), [(0, 1), (1, 1), (2, 2), (3, 3), (4, 2), (10, 3), (99, 3)])
def test_counting_takes_three_turns_at_most(client: Client, last: int, turns: int) -> None:
    response = client.say(f"count to {last} slowly")
    assert text_of(response).split() == [str(number) for number in range(1, last + 1)] or last == 0
    assert response.json()["turns"] == turns


def test_help_shows_the_persona_from_the_chain(client: Client, chain: DiamondDouble) -> None:
    chain.values[1, PERSONA] = b"You are <b>claude</b>."
    assert text_of(client.say("help")).startswith("I am claude. You are <b>claude</b>. Ask me: ")


def test_text_with_lone_surrogates_is_no_server_error(client: Client) -> None:
    body = b'{"agent": "claude", "contents": [{"parts": [{"text": "a\\ud800b"}]}]}'
    assert [client.post(body, path).status_code for path in (GENERATE, STREAM)] == [200, 200]
    assert client.post(b'{"agent": "\\ud800", "contents": [{"parts": [{"text": "a"}]}]}').status_code == 404


def frames(raw: bytes) -> list[dict[str, object]]:
    """The events of a stream that keeps every rule: whole frames, one `data:` line each, UTF-8 by itself."""
    assert raw.endswith(b"\n\n")
    lines = raw[:-2].split(b"\n\n")
    assert all(line.startswith(b"data: ") and b"\n" not in line and b"\r" not in line for line in lines)
    return [json.loads(line[6:].decode("utf-8", "strict")) for line in lines]


@pytest.mark.parametrize(
    "message",
    [
        "x",
        "plain " * 40,
        "世界の皆さん、こんにちは。お元気ですか。",
        "🦊" * 33,
        "two\nlines\r\nand\u2028more",
        "é" * 17,
    ],
)
def test_a_stream_is_the_whole_reply_in_whole_characters(client: Client, message: str) -> None:
    response = client.say(message, path=STREAM)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = frames(response.content)
    said = "".join(part["text"] for event in events for part in event["candidates"][0]["content"]["parts"])  # type: ignore[index]
    assert said == f"claude heard you say: {message.strip()}"
    finishes = [event["candidates"][0].get("finishReason") for event in events]  # type: ignore[index]
    assert finishes == [None] * (len(events) - 1) + ["STOP"]
    assert (events[-1]["caller"], events[-1]["turns"]) == (address_of(CALLER), 1)


def test_a_stream_is_charged_once_and_only_when_it_says_something(
    chain: DiamondDouble, client: Client
) -> None:
    chain.metered.clear()
    client.say("hello", path=STREAM)
    assert chain.metered == [(address_of(CALLER), PRICE)]
