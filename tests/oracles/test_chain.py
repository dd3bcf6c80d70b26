"""The oracles of the chain: what a stranger may change, limits at their edges, views that agree, quotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.chain import fourbyte
from fleet.oracles.model import Exchange, Facts, Violation

ALICE, BOB, BY = "0x" + "a1" * 20, "0x" + "b0" * 20, "0x" + "57" * 20
ZERO = "0x" + "0" * 40
HUGE = str(1 << 75)
FACE = Facts(face="http://{name}.house.test/")


def word(value: int | str) -> str:
    return f"0x{value if isinstance(value, int) else int(value, 16):064x}"


def call(
    signature: str,
    given: list[Any],
    watch: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    ok: bool = True,
    types: tuple[str, ...] = (),
    **more: Any,
) -> Exchange:
    views = watch or {}
    args: dict[str, Any] = {"simulate": fourbyte.selector_of(signature), "args": given}
    args |= {"types": list(types), "watch": list(views)}
    args |= {key: more.pop(key) for key in ("sender", "wei", "code") if key in more}
    answer = {"ok": True, "by": BY, "succeeded": ok, "reverted": "" if ok else "too long"}
    answer |= {"before": [one[0] for one in views.values()], "after": [one[1] for one in views.values()]}
    return Exchange("qa_chain", args, answer | more)


def judged(*seen: Exchange, facts: Facts = FACE) -> tuple[Violation, ...]:
    return table.judge(seen, facts)


SET = "setRegistrationCost(uint256)"
RELAY = fourbyte.selector_of("relayFee()")
TREASURY = fourbyte.selector_of("treasury()")
UNKNOWN = "0x00c0ffee"
OFFENCES = [
    call(SET, ["7"], {"registrationCost": (5, 7)}),
    call("setRelayFee(uint256)", [HUGE], {RELAY: (word(5), word(int(HUGE)))}),
    call("setTreasury(address)", ["stranger"], {TREASURY: (word(ALICE), word(BY))}),
    call("setTreasury(address)", [ZERO], {TREASURY: (word(ALICE), word(0))}),
    call("transferOwnership(address)", ["stranger"], {"owner": (ALICE, BY)}),
    call("transferName(uint256,address)", ["1", "stranger"], {"ownerOfId(1)": (ALICE, BY)}),
    call("releaseName(uint256)", ["1"], {"ownerOf(1)": (ALICE, None)}),
    call("releaseName(uint256)", ["1"], {"nameOfId(1)": ("alpha", "")}),
    call("clearFeedback()", [], {"feedbackAt(0)": ([ALICE, 1, "x"], None)}),
    call("clearFeedback()", [], {"feedbackCount": (9, 0)}),
    call(
        "setMetadata(uint256,bytes32,bytes)",
        ["1", "app", "0x71"],
        {"metadata(1,app)": ("0x", "0x71"), "ownerOfId(1)": (ALICE, ALICE)},
    ),
    call("meter(address,uint256)", [ALICE, "1"], {f"creditOf({ALICE})": (9, 8)}),
    call("grantCredits(address,uint256)", ["stranger", HUGE], {"creditOf(stranger)": (0, HUGE)}),
    call("withdrawAll(address)", ["stranger"], {"treasuryBalance": (9, 0)}),
    call("pause()", [], {fourbyte.selector_of("paused()"): (word(0), word(1))}),
    call("clearMain(address)", [ALICE], {f"mainOf({ALICE})": (1, 0)}),
    call("setGreetingFee(uint256)", [HUGE], {"mainCost": (1, HUGE)}),
    call("diamondCut((address,uint8,bytes4[])[],address,bytes)", [], events=[f"{ALICE}:0x11"]),
]
HEALTHY = [
    call(SET, ["7"], {"registrationCost": (5, 7)}, sender="owner"),
    call(SET, ["7"], {"registrationCost": (5, 7)}, ok=False),
    call(SET, ["7"], {"registrationCost": (5, 5)}),
    call(SET, ["7"], {"registrationCost": (5, 7)}, wei="1"),
    call(SET, ["7"], {"registrationCost": (5, 7)}, code={"sender": "0x00"}),
    call("buy()", [], {"mainCost": (5, 6)}),  # a price that rises by itself
    call("submitFeedback(string)", ["x"], {"feedbackCount": (5, 6), "feedbackAt(0)": ("x", "x")}),
    call("submitFeedback(string)", ["x"], {"feedbackAt(5)": (None, [BY, 1, "x"])}),
    call("register(string)", ["fresh"], {"nextId": (5, 6), "balanceOf(stranger)": (0, 1)}),
    call("transfer(address,uint256)", [ALICE, "1"], {f"balanceOf({ALICE})": (5, 6)}),  # a gift
    call("claimDaily()", [], {"creditOf(stranger)": (0, HUGE)}),  # an amount that the caller did not choose
    call("claimDaily()", [], {"treasuryBalance": (9, 8)}, events=[f"{ALICE}:0x11"]),
    call(
        "setMetadata(uint256,bytes32,bytes)",
        ["9", "app", "0x71"],
        {"metadata(9,app)": ("0x", "0x71"), "ownerOfId(9)": (ZERO, ZERO)},
    ),
    call("transferName(uint256,address)", ["1", ALICE], {"ownerOfId(1)": (BY, ALICE)}),  # the caller's own
    call("vote(uint256)", ["7"], {UNKNOWN: (word(1), word(7))}),  # nothing is known of either
    call("keep(uint256)", [HUGE], {UNKNOWN: (word(1), word(int(HUGE)))}),
    call(SET, ["7"], dict.fromkeys(("registrationCost", "mainCost", "owner", "nextId"), (5, 7))),  # too broad
    Exchange("qa_chain", {"simulate": "0x637e9d5c"}, {"ok": False, "error_class": "http"}),
    Exchange(
        "qa_chain",
        {"simulate": "0x637e9d5c", "watch": ["owner"]},
        {"ok": True, "by": BY, "succeeded": True, "how": "call", "before": [], "after": []},
    ),
]


@pytest.mark.parametrize("exchange", OFFENCES, ids=lambda one: fourbyte.spoken(one.args["simulate"]))
def test_a_stranger_changes_what_is_anothers(exchange: Exchange) -> None:
    (found,) = judged(exchange)
    assert found.oracle == "open-to-strangers"
    assert found.sighting.whole
    assert found.sighting.signature == f"stranger {exchange.args['simulate']}"
    spoken = fourbyte.spoken(exchange.args["simulate"])
    assert found.sighting.title.startswith(f"{spoken} ")


@pytest.mark.parametrize("exchange", HEALTHY, ids=lambda one: fourbyte.spoken(one.args["simulate"]))
def test_a_healthy_call_is_no_offence(exchange: Exchange) -> None:
    assert judged(exchange) == ()


NOTE, STATED = "leaveNote(string)", fourbyte.selector_of("maxNoteLength()")


def note(text: Any, *, ok: bool = True, limit: int = 64, **more: Any) -> Exchange:
    return call(NOTE, [text], {STATED: (word(limit), word(limit))}, ok=ok, types=("string",), **more)


def long(times: int) -> dict[str, Any]:
    return {"repeat": "a", "times": times}


@pytest.mark.parametrize(
    ("seen", "oracle"),
    [
        ((note("ab"), note(long(65))), "limit-not-held"),
        ((note("ab"), note(long(64), ok=False)), "limit-not-held"),
        ((note("ab"), note(long(64))), ""),
        ((note("ab"), note(long(65), ok=False)), ""),
        ((note("ab"), note(long(64), ok=False, reverted="no reason given")), ""),  # for want of gas, perhaps
        ((note("ab", ok=False), note(long(65))), ""),  # without its control
        ((note(long(65)),), ""),
        ((note("ab"), note(long(65), sender="owner")), ""),
    ],
)
def test_a_length_that_a_view_states(seen: tuple[Exchange, ...], oracle: str) -> None:
    assert [one.oracle for one in judged(*seen)] == [oracle] * bool(oracle)
    assert [one.led for one in judged(*seen)] == [(0,)] * bool(oracle)


def name(text: Any, *, ok: bool = True) -> Exchange:
    return call("register(string)", [text], ok=ok, types=("string",))


@pytest.mark.parametrize(
    ("text", "face", "oracle"),
    [
        ("", "http://{name}.house.test/", "ghost-name"),
        ("", "", "ghost-name"),
        (long(64), "http://{name}.house.test/", "ghost-name"),
        ("a.b", "http://{name}.house.test/", "ghost-name"),
        ("-a", "http://{name}.house.test/", "ghost-name"),
        ("a.b", "http://house.test/{name}/", ""),  # a path shows other names too
        (long(63), "http://{name}.house.test/", ""),
        ("Ab", "http://{name}.house.test/", ""),  # hosts ignore case
    ],
)
def test_a_name_that_no_face_can_show(text: Any, face: str, oracle: str) -> None:
    facts = Facts(face=face)
    assert [one.oracle for one in judged(name("fresh"), name(text), facts=facts)] == [oracle] * bool(oracle)
    assert judged(name("fresh", ok=False), name(text), facts=facts) == ()
    assert judged(name("fresh"), name(text, ok=False), facts=facts) == ()


def snapshot(views: Mapping[str, Any]) -> Exchange:
    return Exchange("qa_chain", {"watch": list(views)}, {"ok": True, "before": list(views.values())})


FACET, SECOND = "0x" + "fa" * 20, "0x" + "fb" * 20
ROUTES = [[FACET, ["0x00000001", "0x00000002"]], [SECOND, ["0x00000003"]]]
HOUSE: dict[str, Any] = {
    "nextId": 3,
    **{f"ownerOfId({key})": owner for key, owner in ((1, ALICE), (2, BOB), (3, ZERO))},
    **{f"ownerOf({key})": owner for key, owner in ((1, ALICE), (2, BOB), (3, None))},
    "nameOfId(1)": "alpha",
    "idOfName(alpha)": 1,
    "ownerOfName(alpha)": ALICE,
    "isTaken(alpha)": True,
    "nameOfId(3)": "",
    "isMain(1)": True,
    "isMain(2)": False,
    f"mainOf({ALICE})": 1,
    f"mainNameOf({ALICE})": "alpha",
    f"mainOf({BOB})": 0,
    f"balanceOf({ALICE})": 1,
    "feedbackCount": 2,
    "feedbackAt(0)": [BOB, 7, "x"],
    "feedbackAt(1)": [BOB, 8, "y"],
    "feedbackAt(2)": None,
    "feedbackRange(0,5)": [[BOB, BOB], [7, 8], ["x", "y"]],
    "facets": ROUTES,
    "facetAddresses": [SECOND, FACET],
    "facetAddress(0x00000003)": SECOND,
    f"facetFunctionSelectors({FACET})": ["0x00000002", "0x00000001"],
    "supportsInterface(0x7f5828d0)": False,
    "supportsInterface(0xffffffff)": False,
}


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, ""),
        ({"ownerOf(1)": BOB}, "ownerOfId ownerOf"),
        ({"ownerOf(1)": None}, "ownerOfId ownerOf"),
        ({"ownerOf(3)": BOB}, "ownerOfId ownerOf"),
        ({"ownerOfName(alpha)": BOB}, "ownerOfName ownerOfId"),
        ({"idOfName(alpha)": 2}, "nameOfId idOfName"),
        ({"isTaken(alpha)": False}, "isTaken idOfName"),
        ({"isMain(1)": False}, "mainOf isMain"),
        ({"isMain(2)": True}, "isMain mainOf"),
        ({f"mainNameOf({ALICE})": "beta"}, "mainNameOf nameOfId"),
        ({f"balanceOf({ALICE})": 2}, "balanceOf ownerOfId"),
        ({"nextId": 2}, "nextId ownerOfId"),
        ({"feedbackAt(2)": [BOB, 9, "z"]}, "feedbackCount feedbackAt"),
        ({"feedbackAt(1)": None}, "feedbackCount feedbackAt"),
        ({"feedbackRange(0,5)": [[BOB], [7], ["x"]]}, "feedbackRange feedbackCount"),
        ({"feedbackRange(0,5)": [[BOB, BOB], [7, 8], ["x", "z"]]}, "feedbackRange feedbackAt"),
        ({"feedbackRange(0,5)": None}, "feedbackRange feedbackCount"),
        (
            {"facets": [*ROUTES, [BOB, ["0x00000001"]]], "facetAddresses": [BOB, SECOND, FACET]},
            "facets selector",
        ),
        ({"facetAddresses": [FACET]}, "facets facetAddresses"),
        ({"facetAddress(0x00000003)": FACET}, "facets facetAddress"),
        ({f"facetFunctionSelectors({FACET})": []}, "facets facetFunctionSelectors"),
        ({"supportsInterface(0xffffffff)": True}, "supportsInterface 0xffffffff"),
        ({"supportsInterface(0x7f5828d0)": True}, "supportsInterface 0x7f5828d0"),
        # what is not kept after a release, or is another's choice, is healthy
        ({f"mainOf({ALICE})": 2, "isMain(1)": False, f"mainNameOf({ALICE})": "alpha"}, ""),
        ({"nameOfId(1)": "", f"mainNameOf({ALICE})": ""}, ""),
    ],
)
def test_views_of_one_block(changed: dict[str, Any], kind: str) -> None:
    found = judged(snapshot(HOUSE | changed))
    assert kind in {one.sighting.signature.removeprefix("views ") for one in found} or not kind
    assert {one.oracle for one in found} == ({"views-disagree"} if kind else set())


def test_what_was_not_read_says_nothing() -> None:
    for view, value in HOUSE.items():
        assert judged(snapshot({view: value})) == ()
    for view in HOUSE:
        assert judged(snapshot({one: value for one, value in HOUSE.items() if one != view})) == ()


def published(used: int, quoted: int, **more: Any) -> Exchange:
    answer = {"published": True, "app_read_back": True, "gas_used": used, "gas_quote": quoted, "size": 90}
    return Exchange("qa_publish", {"name": "{name}"}, answer | more)


def unquoted(used: int) -> Exchange:
    """Of a platform that states no figure."""
    answer = published(used, 0)
    return Exchange(answer.tool, answer.args, {k: v for k, v in answer.result.items() if k != "gas_quote"})


CREATED = Exchange("qa_create", {"name": "{name}"}, {"ok": True})


@pytest.mark.parametrize(
    ("seen", "signature"),
    [
        ((published(900, 100),), "gas-quote low"),
        ((published(900, 301),), ""),
        ((CREATED, published(900, 3_600)), ""),
        ((CREATED, published(900, 3_601)), "gas-quote high"),
        ((published(900, 9_000),), ""),  # it may overwrite
        ((CREATED, published(900, 900), published(200, 900)), ""),
        ((CREATED, published(900, 0)), ""),
        ((CREATED, unquoted(900)), ""),
        ((CREATED, published(900, 100, published=False)), ""),
    ],
)
def test_quotes_are_near_what_is_used(seen: tuple[Exchange, ...], signature: str) -> None:
    assert [one.sighting.signature for one in judged(*seen)] == [signature] * bool(signature)


def test_the_dictionary_knows_common_names_and_what_is_a_view() -> None:
    assert fourbyte.spoken("0x637e9d5c") == "setRegistrationCost()"
    assert fourbyte.signature_of(fourbyte.selector_of("setRelayFee(uint256)")) == "setRelayFee(uint256)"
    assert fourbyte.is_view(fourbyte.selector_of("relayFee()"))
    assert not fourbyte.is_view(fourbyte.selector_of("withdraw()"))
    assert fourbyte.spoken("0x00c0ffee") == "0x00c0ffee"
