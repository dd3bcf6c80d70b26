"""What is paid for, on a real chain with a real token: the explorer, and every fence before a payment."""

from __future__ import annotations

import base64
import http.client
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.broker.egress_policy import EgressPolicy, parse_target
from fleet.broker.services import MAX_KEPT_ANSWERS, Services
from fleet.chain.keys import address_of, write_new
from fleet.chain.signing.payment import MOVES
from fleet.cli.check import machine
from fleet.config import Platform
from fleet.devnet.surfaces.tollhouse import PaymentRefused, Tollhouse, served
from fleet.drivers.explore.agent.payments import PaymentExplorer
from sandbox.payment_offers import MPP, V1, V2
from tests.drivers.pay_visits import (
    HOLDS,
    PAYEE,
    Mint,
    PurseDoor,
    asked,
    door,
    minted,
    profile,
    visited,
    way_out,
)

MIXED = {"terms-trusted": 0, "settled-first": 1, "replayed": 2, "price-differs": 1}


@pytest.fixture(scope="module")
def mint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mint]:
    with minted(tmp_path_factory.mktemp("mint")) as made:
        yield made


@pytest.fixture
def house(mint: Mint) -> Tollhouse:
    return Tollhouse(mint.rpc.url, mint.token, PAYEE, seed=11)


@pytest.fixture
def site(house: Tollhouse) -> Iterator[str]:
    with served(house) as url:
        yield url


@pytest.fixture
def stand(mint: Mint, house: Tollhouse, site: str) -> Iterator[tuple[Platform, PurseDoor, str]]:
    """A platform, the way to the purse, and a resource of it that takes no query."""
    platform = profile(site, mint, house)
    made = door(platform, mint)
    with way_out(platform, made):
        yield platform, made, site + house.sold[0].path


def service(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The broker's answer to what a jail asks the purse for."""
    place = os.environ["QA_BROKER"].removeprefix("http://")
    connection = http.client.HTTPConnection(place, timeout=10)
    connection.request("POST", "/pay", json.dumps(body))
    reply = connection.getresponse()
    said: dict[str, Any] = json.loads(reply.read())
    connection.close()
    return reply.status, said


def test_a_healthy_house_is_paid_and_nothing_is_found(mint: Mint, house: Tollhouse, site: str) -> None:
    platform = profile(site, mint, house)
    made, before = door(platform, mint), mint.held(PAYEE)
    with way_out(platform, made):
        found, explorer, _ = visited(platform)
    assert [(one.oracle, one.sighting.title) for one in found] == []
    assert mint.held(PAYEE) > before
    assert len(made.journal.payments) == len(made.budget.spent) > 30
    assert explorer.state()["asked"]


def test_each_form_of_terms_is_paid_and_a_defect_of_one_is_found(mint: Mint) -> None:
    """Beside each other, one form may be checked and another not."""
    healthy = Tollhouse(mint.rpc.url, mint.token, PAYEE, seed=3, mixed=True)
    assert {form for one in healthy.sold for form in one.forms} == {V1, V2, MPP}
    with served(healthy) as site:
        platform = profile(site, mint, healthy)
        with way_out(platform, door(platform, mint)):
            found, explorer, _ = visited(platform)
            assert [(one.oracle, one.sighting.title) for one in found] == []
            assert isinstance(explorer, PaymentExplorer)
            assert explorer.left() == []
            for sold in healthy.sold:
                for form in sold.forms:
                    url = f"{site}{sold.path}?{sold.parameter}={(*sold.known, '')[0]}"
                    paid = asked(platform, {"url": url, "form": form, "pay": "whole"})
                    told = (paid["status_paid"], paid["receipt"], paid["receipt_holds"], paid["taken"])
                    assert told == (200, "paid", True, sold.price)
    at = next(at for at, one in enumerate(healthy.sold) if len(one.forms) > 1)
    house = Tollhouse(mint.rpc.url, mint.token, PAYEE, seed=3, mixed=True, defects={"underpaid": at})
    with served(house) as site:
        platform = profile(site, mint, house)
        with way_out(platform, door(platform, mint)):
            url = f"{site}{house.sold[at].path}?{house.sold[at].parameter}={(*house.sold[at].known, '')[0]}"
            served_by = {
                form: asked(platform, {"url": url, "form": form, "pay": "less"})["served"]
                for form in house.sold[at].forms
            }
    *others, last = house.sold[at].forms
    assert served_by == dict.fromkeys(others, 0) | {last: 1}


def test_a_tool_and_an_agent_are_paid_as_a_page_is(mint: Mint) -> None:
    house = Tollhouse(
        mint.rpc.url, mint.token, PAYEE, seed=13, defects={"replayed": 0}, mixed=True, wired=True
    )
    message, tool, _ = house.sold
    assert [one.wire for one in house.sold] == ["message", "tool", "message"]
    with served(house) as site:
        platform = profile(site, mint, house)
        calls: dict[str, dict[str, Any]] = {
            "tool": {
                "url": f"{site}/mcp",
                "name": tool.path.rsplit("/", 1)[-1],
                "fields": {"lot": tool.known[0]},
            },
            "message": {"url": f"{site}/a2a", "message": f"sell me {message.path.rsplit('/', 1)[-1]}"},
        }
        with way_out(platform, door(platform, mint)):
            for one, args in zip((tool, message), calls.values(), strict=True):
                paid = asked(platform, args | {"pay": "whole", "then": "again"})
                told = [
                    paid[key] for key in ("status", "amount", "served", "taken", "receipt", "receipt_holds")
                ]
                assert told == [402, one.price, 1, one.price, "paid", True]
                assert paid["status_then"] == (200 if one is message else 402)
                assert asked(platform, args | {"pay": "own"})["status_paid"] == 402
            failed = asked(platform, calls["tool"] | {"pay": "whole", "fields": {}})
            assert (failed["status_paid"], failed["taken"]) == (400, 0)
            tools = asked(platform, {"url": f"{site}/mcp"}, "qa_mcp")["tools"]
        made, words = door(platform, mint), "it takes the rung exercise"
        made.word = "observe"
        with way_out(platform, made):
            found, explorer, _ = visited(platform, acts=False)
            shut = asked(platform, calls["tool"])
    assert isinstance(explorer, PaymentExplorer)
    assert [one["name"] for one in tools] == [calls["tool"]["name"]]
    assert (found, shut["ok"], shut["error_class"]) == ([], False, "refused")
    left = {one.part: one.reason for one in explorer.left()}
    assert all(words in left[f"payments at {{site}}{path}"] for path in ("/mcp", "/a2a"))


def test_a_right_payment_that_is_refused_is_said(mint: Mint) -> None:
    class Shut(Tollhouse):
        def verify(self, one: Any, said: dict[str, Any]) -> None:
            raise PaymentRefused("closed for today")

    house = Shut(mint.rpc.url, mint.token, PAYEE, seed=11)
    with served(house) as site:
        platform = profile(site, mint, house, resources=[f"{{site}}{house.sold[0].path}"], prices={})
        with way_out(platform, door(platform, mint)):
            found, explorer, _ = visited(platform)
    assert isinstance(explorer, PaymentExplorer)
    why = "a payment of what was quoted is refused: HTTP 402: closed for today"
    part = f"payments for {{site}}{house.sold[0].path}"
    assert (found, [(one.part, one.reason) for one in explorer.left()]) == ([], [(part, why)])


def test_each_defect_of_a_house_is_found_where_it_is(mint: Mint) -> None:
    house = Tollhouse(mint.rpc.url, mint.token, PAYEE, seed=12, defects=MIXED | {"card-differs": 0})
    paths = [f"{{site}}{one.path}" for one in house.sold]
    with served(house) as site:
        platform = profile(site, mint, house)
        with way_out(platform, door(platform, mint)):
            found, _, _ = visited(platform)
    seen = {(one.oracle, one.sighting.where["route"], one.sighting.where.get("claim", "")) for one in found}
    card = ("payment-terms", paths[0], "the card")
    assert {one for one in seen if one[1] == paths[0]} == {("unpaid-service", paths[0], "changed"), card}
    kept, terms = ("payment-kept", paths[1], "refused"), ("payment-terms", paths[1], "price")
    assert {one for one in seen if one[1] == paths[1]} == {kept, terms}
    assert {("payment-reused", paths[2], "again"), ("payment-reused", paths[2], "together")} <= seen


def test_a_payment_is_what_was_quoted_and_the_chain_says_so(
    mint: Mint, house: Tollhouse, stand: tuple[Platform, PurseDoor, str]
) -> None:
    platform, made, url = stand
    before = mint.held(address_of(mint.purse))
    result = asked(platform, {"url": url, "pay": "whole"})
    told = (result["ok"], result["status"], result["status_paid"], result["receipt"], result["receipt_holds"])
    assert told == (True, 402, 200, "paid", True)
    assert (
        result["amount"]
        == result["taken"]
        == house.sold[0].price
        == before - mint.held(address_of(mint.purse))
    )
    (noted,) = made.journal.payments
    assert (noted["payee"], noted["value"]) == (PAYEE, house.sold[0].price)


@pytest.mark.parametrize(
    ("word", "facts", "limits", "why"),
    [
        ("observe", {}, {}, "a payment needs a rung that permits acts"),
        ("stop", {}, {}, "everything is paused"),
        ("exercise", {"never": frozenset({MOVES})}, {}, "never-list"),
        ("exercise", {}, {"holds": HOLDS // 2, "per_run": 5_000}, "the purse holds"),
        ("exercise", {}, {"most": 1, "per_run": 1}, "payments.most is 1"),
        ("exercise", {}, {"payee": "0x" + "11" * 20}, "is not who is paid here"),
    ],
)
def test_a_closed_fence_leaves_the_purse_as_it_is(
    mint: Mint, house: Tollhouse, site: str, word: str, facts: Any, limits: Any, why: str
) -> None:
    platform = profile(site, mint, house, **limits)
    made, before = door(platform, mint, **facts), mint.held(address_of(mint.purse))
    made.word = word
    with way_out(platform, made):
        result = asked(platform, {"url": site + house.sold[0].path, "pay": "whole"})
    assert (result["ok"], result["error_class"]) == (False, "refused")
    assert why in result["error"]
    assert (mint.held(address_of(mint.purse)), made.journal.payments) == (before, [])


def test_a_run_signs_for_no_more_than_its_share(
    mint: Mint, house: Tollhouse, stand: tuple[Platform, PurseDoor, str]
) -> None:
    _, _, url = stand
    price = house.sold[0].price
    platform = profile(url.removesuffix(house.sold[0].path), mint, house, most=price, per_run=price * 2)
    made = door(platform, mint)
    made.journal.payments.append({"run": "t0", "value": price})  # before it was cut off
    with way_out(platform, made):
        first = asked(platform, {"url": url, "pay": "less"})
        second = asked(platform, {"url": url, "pay": "whole"})
    assert (first["status_paid"], second["error_class"]) == (402, "refused")
    assert f"for {price - 1} units more" in second["error"]


def test_the_purse_believes_the_platform_and_not_the_jail(
    mint: Mint, house: Tollhouse, stand: tuple[Platform, PurseDoor, str]
) -> None:
    platform, made, url = stand
    never_quoted = (403, "quote")
    for body in ({"url": url, "option": 0}, {"url": url + "/x", "option": 0}):
        status, said = service(body)
        assert (status, said["rule"]) == never_quoted
    assert asked(platform, {"url": url})["quoted"] is True
    status, said = service({"url": url, "option": 1, "value": house.sold[0].price + 1})
    assert (status, said["rule"]) == (403, "amount")
    for body in ({"url": url, "option": 9}, {"url": url, "option": -1}):
        status, said = service(body)
        assert (status, said["rule"]) == never_quoted
    for bad in (
        {"option": 0, "payee": "0x" + "11" * 20},
        {"option": "0"},
        {"option": True},
        {"option": 0, "value": 1.5},
    ):
        assert service({"url": url} | bad)[0] == 400
    assert made.journal.payments == []


@pytest.mark.parametrize(
    ("limits", "good", "why"),
    [
        ({}, True, "units; payments.holds is 500000"),
        ({"holds": 1_000, "per_run": 1_000, "most": 10}, False, "nothing is signed until some are taken out"),
        ({"holds": 600_000, "per_run": 600_000, "most": 600_000}, False, "send it 600000 units or more"),
        ({"version": "2"}, False, "payments.name and payments.version are not those of"),
        ({"asset": PAYEE}, False, "says no balance: it is not a token"),
    ],
)
def test_the_purse_is_looked_at_before_a_run(
    mint: Mint,
    house: Tollhouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, Any],
    good: bool,
    why: str,
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    write_new(tmp_path / "purse", mint.purse.reveal().hex().encode())
    platform = profile("http://127.0.0.1:1", mint, house, **limits)
    monkeypatch.setattr(machine, "profile", lambda _: platform)
    monkeypatch.setattr(machine, "key_file", lambda *_: tmp_path / "purse")
    ((name, ok, seen),) = mint.portal.call(machine.purse, None)
    assert (name, ok) == ("purse", good)
    assert why in seen


def test_answers_are_kept_apart_and_few(mint: Mint, house: Tollhouse) -> None:
    services = Services(EgressPolicy.of(profile("http://127.0.0.1:1", mint, house)), None)
    path = f"http://127.0.0.1:1{house.sold[0].path}"
    first, second = (services.keeping(path, parse_target(path)) for _ in range(2))
    assert first is not None
    assert first is not second  # two at once cannot make one answer
    assert services.keeping("http://127.0.0.1:1/", parse_target("http://127.0.0.1:1/")) is None
    for number in range(MAX_KEPT_ANSWERS + 5):
        one = f"{path}?{number}"
        services.keeping(one, parse_target(one))
    assert len(services._answers) == MAX_KEPT_ANSWERS


def test_terms_for_another_network_or_token_are_not_paid(mint: Mint) -> None:
    class Elsewhere(Tollhouse):
        def terms(self, one: Any) -> dict[str, Any]:
            return super().terms(one) | {"network": "eip155:1"}

    house = Elsewhere(mint.rpc.url, mint.token, PAYEE, seed=12)
    with served(house) as site:
        platform = profile(site, mint, house)
        made = door(platform, mint)
        with way_out(platform, made):
            url = site + house.sold[0].path
            result = asked(platform, {"url": url, "pay": "whole"})
            assert (result["quoted"], made.journal.payments) == (False, [])
            status, said = service({"url": url, "option": 0})  # as a jail that lies would
        assert (status, said["rule"], made.journal.payments) == (403, "network", [])


def test_terms_in_the_words_of_another_version_are_no_terms(mint: Mint) -> None:
    class Older(Tollhouse):
        def terms(self, one: Any) -> dict[str, Any]:
            said = super().terms(one)
            amount = said.pop("amount")
            return {**said, "maxAmountRequired": amount}

    house = Older(mint.rpc.url, mint.token, PAYEE, seed=12)
    with served(house) as site:
        platform = profile(site, mint, house)
        made = door(platform, mint)
        with way_out(platform, made):
            result = asked(platform, {"url": site + house.sold[0].path, "pay": "whole"})
    assert (result["status"], result["quoted"], made.journal.payments) == (402, False, [])


@pytest.mark.parametrize("header", ["", "e30=", "%%%", base64.b64encode(b"[" * 5_000).decode(), "A" * 15_000])
def test_terms_that_cannot_be_read_are_no_terms(mint: Mint, header: str) -> None:
    class Odd(Tollhouse):
        def required(self, one: Any, why: str = "") -> tuple[int, dict[str, Any], dict[str, str]]:
            return 402, {"error": why}, {"payment-required": header}

    house = Odd(mint.rpc.url, mint.token, PAYEE, seed=11)
    with served(house) as site:
        platform = profile(site, mint, house)
        made = door(platform, mint)
        with way_out(platform, made):
            url = site + house.sold[0].path
            result = asked(platform, {"url": url, "pay": "whole"})
            status, said = service({"url": url, "option": 0})
    assert (result["status"], result["quoted"], result["ok"]) == (402, False, False)
    assert (status, said["rule"], made.journal.payments) == (403, "quote", [])
