"""The signing policy as a table, and what must hold for any bytes at all."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.chain.node import abi, codec
from fleet.chain.ports import Role, TxRequest
from fleet.chain.signing.never import NEVER, parse_never
from fleet.chain.signing.policy import MAX_GAS, MAX_TEXT, SigningFacts, check, check_text, is_disposable
from fleet.errors import ConfigError, Refused

DIAMOND, TOKEN = "0x" + "d1" * 20, "0x" + "70" * 20
MINE, SPONSOR, STRANGER = "0x" + "aa" * 20, "0x" + "50" * 20, "0x" + "ee" * 20
FACTS = SigningFacts(
    chain_id=31337,
    node_chain_id=31337,
    diamond=DIAMOND,
    log=DIAMOND,
    rung="exercise",
    sender=MINE,
    max_fee=2 * 10**9,
    fee_cap=50 * 10**9,
    prefix="qa-ab12-",
    throwaways=frozenset([MINE]),
    minted={7: "qa-ab12-1", 8: "claude"},
    sponsor=SPONSOR,
    token=TOKEN,
    cost=10**18,
    stipend_left=10**18,
)


def data(name: str, *args: Any) -> bytes:
    return abi.FUNCTIONS[name].encode(*args)


def tx(role: Role, payload: bytes = b"", **fields: Any) -> TxRequest:
    values: dict[str, Any] = {"role": role, "to": DIAMOND, "gas": 1_000_000, "data": payload}
    values |= {"run": "ab12", "charge": "none"}
    return TxRequest(**(values | fields))


def rule(request: TxRequest, **facts: Any) -> str:
    """The rule that refuses, "" when it is signed."""
    try:
        check(request, dataclasses.replace(FACTS, **facts))
    except Refused as refused:
        return refused.rule
    return ""


POST = data("submitFeedback", "hello")
KEY = b"k" * 32

PERMITTED = [
    tx(Role.IDENTITY, POST),
    tx(Role.SPONSOR, to=MINE, value=10**18, gas=21_000),
    tx(Role.THROWAWAY, data("register", "qa-ab12-1")),
    tx(Role.THROWAWAY, data("register", "qa-ab12-999999")),
    tx(Role.THROWAWAY, data("approve", DIAMOND, 10**18), to=TOKEN),
    tx(Role.THROWAWAY, data("setMetadata", 7, KEY, b"x" * 400)),
    tx(Role.THROWAWAY, data("claimDaily")),
    tx(Role.THROWAWAY, data("clearMain")),
    tx(Role.THROWAWAY, data("releaseName", 7)),
    tx(Role.THROWAWAY, to=SPONSOR, value=5, cleanup=True),
    tx(Role.OPERATOR, data("setMetadata", 3, KEY, b"persona")),
    tx(Role.OPERATOR, data("register", "qa-fuzz")),
]
REFUSED = [
    ("role", tx(Role.IDENTITY, data("register", "qa-ab12-1"))),
    ("role", tx(Role.IDENTITY, data("setMetadata", 7, KEY, b""))),
    ("role", tx(Role.IDENTITY, to=MINE, value=1)),
    ("to", tx(Role.IDENTITY, POST, to=STRANGER)),
    ("value", tx(Role.IDENTITY, POST, value=1)),
    ("text", tx(Role.IDENTITY, data("submitFeedback", ""))),
    ("text", tx(Role.IDENTITY, data("submitFeedback", "é" * 1025))),
    ("args", tx(Role.IDENTITY, POST + b"\0" * 32)),
    ("args", tx(Role.IDENTITY, POST[:-1] + b"\x01")),
    ("args", tx(Role.IDENTITY, POST[:4])),
    ("selector", tx(Role.IDENTITY, b"\xde\xad\xbe\xef")),
    ("selector", tx(Role.IDENTITY, b"\xe3")),
    ("selector", tx(Role.IDENTITY, data("feedbackCount"))),
    ("role", tx(Role.SPONSOR, to=STRANGER, value=1)),
    ("role", tx(Role.SPONSOR, to=DIAMOND, value=1)),
    ("role", tx(Role.SPONSOR, POST)),
    ("role", tx(Role.SPONSOR, data("transfer", MINE, 1), to=TOKEN)),
    ("role", tx(Role.SPONSOR, data("approve", DIAMOND, 10**18), to=TOKEN)),
    ("stipend", tx(Role.SPONSOR, to=MINE, value=10**18 + 1)),
    ("value", tx(Role.SPONSOR, to=MINE, value=-1)),
    ("prefix", tx(Role.THROWAWAY, data("register", "claude"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-ab12-"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-ab12"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-other-1"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-ab12-1x"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-ab12-١"))),
    ("prefix", tx(Role.THROWAWAY, data("register", "qa-ab12-1\n"))),
    ("minted", tx(Role.THROWAWAY, data("setMetadata", 8, KEY, b""))),
    ("minted", tx(Role.THROWAWAY, data("setMetadata", 9, KEY, b""))),
    ("to", tx(Role.THROWAWAY, data("register", "qa-ab12-1"), to=STRANGER)),
    ("value", tx(Role.THROWAWAY, data("register", "qa-ab12-1"), value=1)),
    ("value", tx(Role.THROWAWAY, to=SPONSOR, value=5)),
    ("value", tx(Role.THROWAWAY, to=STRANGER, value=5, cleanup=True)),
    ("approve", tx(Role.THROWAWAY, data("approve", DIAMOND, 10**18 + 1), to=TOKEN)),
    ("approve", tx(Role.THROWAWAY, data("approve", STRANGER, 10**18), to=TOKEN)),
    ("approve", tx(Role.THROWAWAY, data("approve", DIAMOND, 10**18))),
    ("role", tx(Role.THROWAWAY, data("registerMain", 7))),
    ("role", tx(Role.THROWAWAY, POST)),
    ("to", tx(Role.THROWAWAY, data("transfer", STRANGER, 1), to=TOKEN)),
    ("role", tx(Role.THROWAWAY, data("depositCredits", 1))),
    ("never", tx(Role.THROWAWAY, data("releaseName", 8))),
    ("never", tx(Role.THROWAWAY, data("releaseName", 9))),
    ("never", tx(Role.THROWAWAY, data("releaseName", 8), cleanup=True)),
    ("never", tx(Role.IDENTITY, data("releaseName", 9))),
    ("role", tx(Role.IDENTITY, data("releaseName", 7))),
    ("to", tx(Role.IDENTITY, POST, to="")),
    ("to", tx(Role.SPONSOR, to="0x12", value=1)),
    ("gas", tx(Role.IDENTITY, POST, gas=MAX_GAS + 1)),
    ("gas", tx(Role.IDENTITY, POST, gas=20_999)),
    ("role", tx(Role.OPERATOR, data("depositCredits", 1))),
    ("to", tx(Role.OPERATOR, to=STRANGER, value=1)),
    ("fee", tx(Role.IDENTITY, POST, tip=-1)),
    ("role", tx(Role.SPONSOR, data("transfer", STRANGER, 1), to=MINE)),  # a stipend, and never a call
    ("role", tx(Role.SPONSOR, to=SPONSOR, value=1)),
    ("approve", tx(Role.THROWAWAY, data("approve", DIAMOND, 10**18), to=TOKEN, value=1)),
]


@pytest.mark.parametrize("request_", PERMITTED, ids=lambda item: f"{item.role}-{item.data[:4].hex()}")
def test_what_the_product_does_is_signed(request_: TxRequest) -> None:
    assert rule(request_) == ""


@pytest.mark.parametrize(("expected", "request_"), REFUSED)
def test_everything_else_is_refused_by_its_rule(expected: str, request_: TxRequest) -> None:
    assert rule(request_) == expected


@pytest.mark.parametrize("name", sorted(NEVER))
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("cleanup", [False, True])
def test_never_list_holds_for_every_role(name: str, role: Role, cleanup: bool) -> None:
    function = abi.FUNCTIONS[name]
    payload = function.selector + b"\0" * 32 * len(function.inputs)
    assert rule(tx(role, payload, cleanup=cleanup), sender=MINE, rung="propose") == "never"


FREE = data("releaseName", 9)


@pytest.mark.parametrize("payload", [data("clearFeedback"), data("diamondCut", [], SPONSOR, b""), FREE])
def test_an_operator_is_refused_what_is_never_signed(payload: bytes) -> None:
    assert rule(tx(Role.OPERATOR, payload)) == "never"


@pytest.mark.parametrize("request_", [item for item in PERMITTED if item.data != POST and not item.cleanup])
@pytest.mark.parametrize("rung", ["observe", "", "EXERCISE", "exercise ", "off"])
def test_below_exercise_only_reports_are_signed(request_: TxRequest, rung: str) -> None:
    assert rule(request_, rung=rung) == "dial"


def test_reports_and_clean_up_are_signed_at_observe() -> None:
    assert rule(tx(Role.IDENTITY, POST), rung="observe") == ""
    for request in (
        tx(Role.THROWAWAY, data("releaseName", 7), cleanup=True),
        tx(Role.THROWAWAY, data("clearMain"), cleanup=True),
        tx(Role.THROWAWAY, to=SPONSOR, value=5, cleanup=True),
        tx(Role.SPONSOR, to=MINE, value=5, cleanup=True),
    ):
        assert rule(request, rung="observe") == ""


@pytest.mark.parametrize("request_", PERMITTED)
def test_stop_is_below_every_rung(request_: TxRequest) -> None:
    assert rule(request_, rung="stop") == "stop"


@pytest.mark.parametrize("name", ["register", "setMetadata", "claimDaily"])
def test_clean_up_flag_opens_nothing_else(name: str) -> None:
    args = {"register": ("qa-ab12-1",), "setMetadata": (7, KEY, b""), "claimDaily": ()}[name]
    assert rule(tx(Role.THROWAWAY, data(name, *args), cleanup=True), rung="observe") == "dial"


@pytest.mark.parametrize(
    ("expected", "facts"),
    [
        ("chain", {"node_chain_id": 1}),
        ("fee", {"max_fee": 51 * 10**9}),
        ("to", {"sender": ""}),
        ("to", {"sender": "0x12"}),
        ("to", {"log": STRANGER}),
        ("to", {"log": ""}),
        ("never", {"never": frozenset([POST[:4]])}),
    ],
)
def test_facts_that_refuse_a_report(expected: str, facts: dict[str, Any]) -> None:
    assert rule(tx(Role.IDENTITY, POST), **facts) == expected


def test_throwaway_of_another_run_is_refused() -> None:
    assert rule(tx(Role.THROWAWAY, data("claimDaily")), sender=STRANGER) == "key"
    assert rule(tx(Role.THROWAWAY, data("claimDaily")), throwaways=frozenset()) == "key"


def test_tip_above_the_fee_is_refused() -> None:
    assert rule(tx(Role.IDENTITY, POST, tip=3 * 10**9)) == "fee"


def test_empty_prefix_and_missing_token_open_nothing() -> None:
    assert rule(tx(Role.THROWAWAY, data("register", "1")), prefix="") == "prefix"
    assert rule(tx(Role.THROWAWAY, data("register", "qa-1")), prefix="qa-") == "prefix"
    assert rule(tx(Role.THROWAWAY, data("approve", DIAMOND, 0), to=TOKEN), token="", cost=0) == "approve"


SELECTORS = st.sampled_from([function.selector for function in abi.TABLE]) | st.binary(min_size=4, max_size=4)
WORDS = st.sampled_from([0, 1, 7, 8, 32, 64, 96, 2**255]) | st.integers(0, 2**256 - 1)
CALLDATA = st.builds(
    lambda selector, words, tail: selector + b"".join(word.to_bytes(32, "big") for word in words) + tail,
    SELECTORS,
    st.lists(WORDS, max_size=5),
    st.binary(max_size=40),
) | st.binary(max_size=80)
REQUESTS = st.builds(
    TxRequest,
    role=st.sampled_from(Role),
    to=st.sampled_from([DIAMOND, TOKEN, MINE, SPONSOR, STRANGER]),
    gas=st.integers(0, 2 * MAX_GAS),
    data=CALLDATA | st.text(max_size=20).map(lambda text: data("submitFeedback", text)),
    value=st.sampled_from([0, 1, 10**18]),
)


@given(REQUESTS)
@example(tx(Role.IDENTITY, POST))
def test_under_observe_nothing_but_a_report_is_ever_signed(request: TxRequest) -> None:
    if rule(request, rung="observe") == "":
        assert request.role is Role.IDENTITY
        assert (request.to, request.value, request.data[:4]) == (DIAMOND, 0, POST[:4])
        assert len(codec.decode_exact(["string"], request.data[4:])[0].encode()) <= 2048


@given(REQUESTS, st.sampled_from(["observe", "exercise", "propose"]), st.booleans())
def test_nothing_never_listed_is_ever_signed(request: TxRequest, rung: str, cleanup: bool) -> None:
    request = dataclasses.replace(request, cleanup=cleanup)
    if rule(request, rung=rung) == "":
        function = abi.BY_SELECTOR.get(request.data[:4])
        assert function is None or function.name == "releaseName" or function.name not in NEVER
        if function and function.name == "releaseName":
            assert request.data[4:] == (7).to_bytes(32, "big")


@given(REQUESTS, st.booleans())
def test_each_rung_permits_what_the_one_below_does(request: TxRequest, cleanup: bool) -> None:
    request = dataclasses.replace(request, cleanup=cleanup)
    signed = [rule(request, rung=rung) == "" for rung in ("stop", "observe", "exercise", "propose")]
    assert signed == sorted(signed)


@pytest.mark.parametrize("name", ["qa-ab12-1", "qa-ab12-0", "qa-ab12-01", "qa-ab12-999999"])
def test_own_names_are_disposable(name: str) -> None:
    assert is_disposable(name, "qa-ab12-")


@pytest.mark.parametrize(
    "name",
    [
        "qa-ab12-",
        "qa-ab12",
        "qa-ab13-1",
        "qa-ab12-1-2",
        "QA-ab12-1",
        "qa-ab12-1234567",
        "",
        "qa\u2010ab12-1",
        "qa-ab12-\uff11",
        "claude",
    ],
)
def test_other_names_are_not_disposable(name: str) -> None:
    assert not is_disposable(name, "qa-ab12-")


def test_never_words_are_parsed_or_refused() -> None:
    assert parse_never(["0xAC8063ff"]) == frozenset([bytes.fromhex("ac8063ff")])
    for word in ("ac8063ff", "0xac80", "0xac8063ff00", "clearFeedback", "0xgggggggg"):
        with pytest.raises(ConfigError, match="never"):
            parse_never([word])


def test_permanent_list_is_the_documented_one() -> None:
    assert dict(NEVER) == {
        "diamondCut": "0x1f931c1c",
        "transferOwnership": "0xf2fde38b",
        "adminBurnNames": "0x74223f6d",
        "adminResetAll": "0x12597def",
        "clearFeedback": "0xac8063ff",
        "setRegistrationCost": "0x637e9d5c",
        "setMainCost": "0xb746033c",
        "withdrawTreasury": "0x0d86419a",
        "releaseName": "0x48e69e68",  # except, by clean-up, of what this run minted
    }


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(tx(Role.SPONSOR, data("register", "qa-ab12-1"), cleanup=True), id="sponsor calls"),
        pytest.param(tx(Role.OPERATOR, data("releaseName", 7), cleanup=True), id="operator releases"),
        pytest.param(tx(Role.THROWAWAY, to=STRANGER, value=5, cleanup=True), id="sweep to a stranger"),
        pytest.param(tx(Role.THROWAWAY, POST), id="report by a throwaway key"),
        pytest.param(tx(Role.IDENTITY, data("claimDaily")), id="identity does not report"),
    ],
)
def test_at_observe_the_dial_refuses_before_any_role_does(request_: TxRequest) -> None:
    assert rule(request_, rung="observe") == "dial"


def test_the_fee_cap_is_exact() -> None:
    report = tx(Role.IDENTITY, POST)
    assert rule(report, max_fee=FACTS.fee_cap) == ""
    assert rule(report, max_fee=FACTS.fee_cap + 1) == "fee"


def test_an_entry_has_at_most_2048_bytes() -> None:
    assert MAX_TEXT == 2_048
    assert len(check_text("x" * 2_048)) == 2_048
    with pytest.raises(Refused, match="2049 bytes"):
        check_text("x" * 2_049)


def test_a_name_has_at_most_63_characters() -> None:
    """As a label of a host name."""
    prefix = f"qa-{'a' * 57}-"
    assert is_disposable(f"{prefix}12", prefix)
    assert not is_disposable(f"{prefix}123", prefix)
