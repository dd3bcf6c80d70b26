"""Under a signed scope only hosts are asked that have shown to be of who signed it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.app.ownership import LASTS, PROOF, read_proof, require_owned, unowned
from fleet.broker.egress_policy import EgressPolicy, Origin
from fleet.clock import SystemClock, iso
from fleet.config import FleetConfig, Platform, parse
from fleet.config.fleet import AuthoritySection
from fleet.errors import ConfigError
from fleet.store.journal import MEMORY, Journal
from tests.sandbox.doubles import Server, http_answer

pytestmark = pytest.mark.anyio
SIGNER = "0x" + "aB" * 20
SIGNED = FleetConfig(authority=AuthoritySection(signers=(SIGNER,)))
SHOP = """name = "shop"
[web]
site = "https://shop.example"
hosts = ["api.shop.example:443", "cdn.example:443", "127.0.0.1:9"]
[hosts."cdn.example"]
third_party = "ada, contract 7 with the network"
"""


async def public(_: Origin) -> tuple[str, ...]:
    return ("93.184.216.34",)


PLATFORM = parse(Platform, SHOP, file="shop.toml")
POLICY = replace(EgressPolicy.of(PLATFORM), resolve=public)


async def test_a_host_without_the_address_of_a_signer_is_not_tested() -> None:
    asked = list[str]()
    answers: dict[str, str | None] = {
        "https://shop.example": f"# ours\n{SIGNER.upper()}\n".replace("0X", "0x")
    }

    async def read(url: str) -> str | None:
        asked.append(url)
        return answers.get(url.removesuffix(PROOF), "a page for everything")

    async with await Journal.open(MEMORY) as journal:
        clock = SystemClock()
        assert await unowned(SIGNED, PLATFORM, POLICY, journal, clock, read) == ["api.shop.example"]
        assert sorted(asked) == [f"https://{one}{PROOF}" for one in ("api.shop.example", "shop.example")]
        assert await unowned(FleetConfig(), PLATFORM, POLICY, journal, clock, read) == []
        answers |= {"https://shop.example": None, "https://api.shop.example": None}  # an outage
        assert await unowned(SIGNED, PLATFORM, POLICY, journal, clock, read) == ["api.shop.example"]
        past = iso(clock.now() - LASTS - timedelta(seconds=2))
        await journal.put("owned:shop:shop.example", past)
        assert await unowned(SIGNED, PLATFORM, POLICY, journal, clock, read) == [
            "api.shop.example",
            "shop.example",
        ]
        policy = replace(POLICY, resolve=_nowhere)
        with pytest.raises(ConfigError, match="nobody has shown to own") as caught:
            await require_owned(SIGNED, PLATFORM, policy, journal, clock)
        assert PROOF in caught.value.remedy


async def _nowhere(_: Origin) -> tuple[str, ...]:
    return ("10.0.0.1",)  # a private address is not asked for a proof either


async def test_a_proof_is_a_page_that_is_there_and_no_redirect_is_followed() -> None:
    pages = {PROOF: http_answer(200, SIGNER.encode()), "/moved": http_answer(302, b"x")}
    async with Server(lambda request: pages.get(request.path, http_answer(404, b"no"))) as site:
        assert await read_proof(site.url + PROOF) == SIGNER
        assert await read_proof(site.url + "/moved") == ""
        assert await read_proof(site.url + "/none") == ""
    assert await read_proof(site.url + PROOF) is None
