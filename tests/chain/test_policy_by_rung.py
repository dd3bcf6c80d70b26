"""Each guard of the policy refuses by its own rule, also where a later rule would refuse as well."""

from __future__ import annotations

import pytest

from fleet.chain.ports import Role, TxRequest
from fleet.chain.signing.policy import MAX_TEXT, check_text, is_disposable
from fleet.errors import Refused
from tests.chain.test_policy import DIAMOND, FACTS, MINE, POST, SPONSOR, STRANGER, TOKEN, data, rule, tx


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


def test_a_negative_tip_is_refused() -> None:
    assert rule(tx(Role.IDENTITY, POST, tip=-1)) == "fee"


def test_the_sponsor_sends_a_stipend_and_never_a_call() -> None:
    """Even to a throwaway key, and even what a contract there would take."""
    call = data("transfer", STRANGER, 1)
    assert rule(tx(Role.SPONSOR, call, to=MINE)) == "role"
    assert rule(tx(Role.SPONSOR, to=MINE, value=1)) == ""
    assert rule(tx(Role.SPONSOR, to=SPONSOR, value=1)) == "role"


def test_an_approval_carries_no_value() -> None:
    approval = data("approve", DIAMOND, FACTS.cost)
    assert rule(tx(Role.THROWAWAY, approval, to=TOKEN)) == ""
    assert rule(tx(Role.THROWAWAY, approval, to=TOKEN, value=1)) == "approve"


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
