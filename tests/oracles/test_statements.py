"""Facts across sources: what two documents of a platform contradict each other in, and what they do not."""

from __future__ import annotations

import json

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts

DIAMOND = "0x" + "3c" * 20
FACTS = Facts(site="http://h.test", proxy="http://h.test", chain_id=31337, diamond=DIAMOND)


def source(path: str, text: str, kind: str = "text/plain") -> Exchange:
    return Exchange(
        "qa_fetch", {"url": "{site}/" + path}, {"status": 200, "content_type": kind, "text": text}
    )


def titles(*seen: Exchange) -> list[str]:
    return [one.sighting.title for one in table.judge(seen, FACTS) if one.oracle == "disagreement"]


GUIDE = "guide.txt"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Every message costs 0.01 credits.", "A message costs 1 credit, charged after the reply."),
        ("The price is 5 credits per call.", json.dumps({"price": "4"})),
        ("Each call costs 0.01 credits (18 decimals).", json.dumps({"price_wei": "20000000000000000"})),
        ("At most 600 calls per minute.", "You may make 60 requests a minute."),
        ("At most 600 calls per minute.", json.dumps({"limits": {"requestsPerMinute": 60}})),
        ("A token is valid for 5 minutes.", "A token expires after 600 seconds."),
        ("A token is good for 300 seconds.", json.dumps({"token_ttl_seconds": 3600})),
        ("A note may have at most 2,048 bytes.", "A note may have at most 4 KiB."),
        ("- Titles are limited to 80 characters.", "Titles are limited to **120 characters**."),
        ("A stay is at most 28 nights (maxNights() on the chain).", "A stay is at most 30 nights."),
        ("A turn costs 0.05 credits.", json.dumps({"turnPrice": "0.02 credits"})),
        ("Report faults to care@h.test, please.", "Report faults to help@h.test, please."),
        (  # a line that an editor broke
            "An agent answers to whoever signs what it gets. A message\nmay have up to 4000 characters.",
            "A message may have up to 2000 characters.",
        ),
        (
            "A message may have up to 4000 characters and costs 0.01 credits, streamed or not.",
            "- A message may have up to 2000 characters",
        ),
        ("POST /agents/v1/talk, where a message costs 0.02 credits", "Each message costs 0.002 credits."),
        ("A session lasts 12 hours.", json.dumps({"info": "seconds; a session lasts 24 hours"})),
        (f"It is kept by one contract, `0x{'aa' * 20}`, on chain.", f"- Contract: 0x{'ab' * 20} on chain 1"),
        (
            "The token contract is deployed at 0x" + "aa" * 20,
            "The token contract is deployed at 0x" + "ab" * 20,
        ),
    ],
)
def test_two_sources_contradict_each_other(one: str, two: str) -> None:
    assert len(titles(source(GUIDE, one), source("manual.md", two))) == 1
    assert len(titles(source("manual.md", two), source("x", "nothing"), source(GUIDE, one))) == 1
    assert titles(source(GUIDE, one), source("manual.md", one)) == []


@pytest.mark.parametrize(
    "text", ["The chain id is 4217.", json.dumps({"chainId": 4217}), f"diamond: 0x{'9a' * 20} on this chain"]
)
def test_a_document_contradicts_the_profile(text: str) -> None:
    assert len(titles(source(GUIDE, text))) == 1


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("A message costs 0.01 credits.", "Registering a name costs 5 credits."),
        ("A message costs 0.01 credits.", json.dumps({"price": "0.010", "price_wei": "10000000000000000"})),
        ("A message costs 0.01 credits.", json.dumps({"price": "5", "name_price": "1"})),
        ("A message costs 0.01 credits.", json.dumps({"plans": [{"price": "5"}, {"price": "9"}]})),
        ("A message costs about 0.01 credits.", "A message costs 0.02 credits."),
        ("For example, a message costs 3 credits.", "A message costs 0.02 credits."),
        ("A note may have at most 2,048 bytes.", "A page may have at most 4 KiB."),
        ("A note may have at most 2 KiB.", "A note may have at most 2048 bytes."),
        ("Uptime: 300 seconds within limits", "Uptime: 600 seconds within limits"),
        ("A boat has 3 masts.", "A boat has 4 masts."),
        ("Choose at most 5 docks of 9 harbours.", "Choose at most 5 docks of 8 harbours."),
        ("12 agents are registered", "13 agents are registered"),
        ("See /docs/a for the limits", "See /docs/b for the limits"),
        ("Updated 5 minutes ago, at most", "Updated 9 minutes ago, at most"),
        ("version 1.2 accepts 5 calls", "version 1.3 accepts 6 calls"),
        ("The chain id of mainnet is 4217.", "Sepolia has the chain id 11155111."),
        ("Rates: 5 calls per minute. Later: 9 calls per minute.", "At most 600 calls per minute."),
        ("The chain id is 31337.", f"The diamond is at {DIAMOND.upper().replace('X', 'x')}."),
    ],
)
def test_what_is_not_the_same_fact_or_not_certain_is_left_alone(one: str, two: str) -> None:
    assert titles(source(GUIDE, one), source("manual.md", two)) == []


def test_pages_of_several_things_may_differ() -> None:
    costs = ("A message costs 1 credit.", "A message costs 2 credits.")
    assert titles(source("plans/small", costs[0]), source("plans/large", costs[1])) == []
    assert titles(source("api/small?x=1", costs[0]), source("api/large", costs[1])) == []
    face = Exchange("qa_fetch", {"url": "{face:docs}"}, {"status": 200, "text": costs[0]})
    assert titles(face, source(GUIDE, costs[1])) == []


@pytest.mark.parametrize(
    ("path", "told"),
    [("data/limits", 1), ("v2/state", 1), ("moss/terms", 1), ("moss/limits", 0), ("moss/fern", 0)],
)
def test_what_an_api_states_of_all_is_compared_wherever_its_routes_are(path: str, told: int) -> None:
    stated = source(path, json.dumps({"token_ttl_seconds": 3600}), "application/json")
    assert len(titles(source(GUIDE, "A token is good for 300 seconds."), stated)) == told


def test_the_pages_of_a_handbook_speak_for_the_platform() -> None:
    costs = ("A turn costs 0.05 credits.", "A turn of an agent costs 0.02 credits.")
    assert len(titles(source("handbook/agents.txt", costs[0]), source("handbook/terms", costs[1]))) == 1


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ("docs/notes", "docs/users", 0),
        ("handbook/orders.md", "handbook/files.md", 0),
        ("docs/notes", "docs/limits", 1),
        ("docs/notes", "help/users", 1),
        ("notes.md", "users.md", 1),
    ],
)
def test_two_pages_of_a_guide_have_two_subjects(one: str, two: str, told: int) -> None:
    said = ("A listing has at most 50 entries.", "A listing has at most 100 entries.")
    assert len(titles(source(one, said[0]), source(two, said[1]))) == told


def test_a_paragraph_of_a_page_begins_a_sentence() -> None:
    page = (
        "<html><body><nav>Quay</nav><h1>Terms</h1><p>A stay is at most 30 nights. No more.</p></body></html>"
    )
    assert len(titles(source(GUIDE, "A stay is at most 28 nights."), source("terms", page, "text/html"))) == 1


def test_the_title_names_both_sources_and_both_values() -> None:
    assert titles(
        source(GUIDE, "A message costs 0.01 credits."), source("m", "A message costs 1 credit.")
    ) == ["price of one call is 0.01 credits in {site}/guide.txt, 1 credit in {site}/m"]


def test_one_drift_is_one_defect_in_however_many_sentences() -> None:
    said = "A message costs {0} credits. The limit of a gift is {0} credits per name."
    assert len(titles(source(GUIDE, said.format("0.01")), source("m", said.format("1")))) == 1


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("A session lasts 24 hours.", "A session lasts 30 minutes without activity."),
        ("A session lasts 24 hours.", "A yoga session lasts 60 minutes."),
        (  # each document means its own contract
            f"Contract: 0x{'aa' * 20}, its token is 0x{'bb' * 20}",
            f"Contract: 0x{'ab' * 20}",
        ),
        ("The token contract: 0x" + "aa" * 20, "The contract: 0x" + "ab" * 20),
        (  # the next line is another item
            "- A member may keep as many pieces in the gallery as there is room for\n- at most 5 drafts",
            "- A guest has no drafts, and may look at all that the gallery has to show\n- at most 7 drafts",
        ),
    ],
)
def test_two_sources_speak_of_two_things(one: str, two: str) -> None:
    assert titles(source(GUIDE, one), source("manual.md", two)) == []
