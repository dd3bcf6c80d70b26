"""Scope and inventory: what is new is named and not tested, what is gone is left out, all on record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.app.asset_check import ScopeDelta, revalidate
from fleet.app.integrity import CannotLook
from fleet.clock import SystemClock
from fleet.config import FleetConfig, Platform, WebSection
from fleet.config.integrity import IntegritySection
from fleet.gate.steering import left_out, read_steering, write_steering
from fleet.runs.call.sightings import SIGHTED
from fleet.store.journal import Journal

pytestmark = pytest.mark.anyio
CLOCK = SystemClock()
PLATFORM = Platform(name="paper", web=WebSection(site="http://site.test", proxy="http://proxy.test"))


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with await Journal.open(tmp_path / "fleet.db") as opened:
        yield opened


async def test_what_is_new_is_not_tested_and_what_is_gone_is_left_out_until_a_person_takes_it_in(
    tmp_path: Path, journal: Journal
) -> None:
    listed = tmp_path / "inventory"
    config = FleetConfig(integrity=IntegritySection(assets=("cat", str(listed))))

    async def look(text: str) -> ScopeDelta:
        listed.write_text(text)
        found = await revalidate(tmp_path, config, PLATFORM, journal, CLOCK)
        assert found is not None
        return found

    assert await look("site.test web-team\nproxy.test web-team\n") == ScopeDelta()
    assert await look("site.test web-team\nproxy.test sales\nshop.test web-team\n") == ScopeDelta(
        added=("shop.test",), changed=("proxy.test",), untested=("shop.test",)
    )
    assert left_out(tmp_path).match("http://shop.test/") == ""  # no scope has it: the gate refuses it
    delta = await look("site.test web-team\nshop.test web-team\n")
    assert delta == ScopeDelta(removed=("proxy.test",), untested=("shop.test",), left_out=("proxy.test",))
    assert delta.words() == (
        "gone: proxy.test; not in scope, not tested: shop.test; left out of the tests: proxy.test"
    )
    assert left_out(tmp_path).match("http://proxy.test/page") == "proxy.test"
    assert left_out(tmp_path).match("http://site.test/page") == ""
    assert await look("site.test web-team\nshop.test web-team\n") == ScopeDelta(untested=("shop.test",))
    back = await look("site.test web-team\nproxy.test web-team\nshop.test web-team\n")
    assert (back.added, left_out(tmp_path).match("http://proxy.test/")) == (("proxy.test",), "proxy.test")
    write_steering(tmp_path, read_steering(tmp_path).model_copy(update={"leave": ()}))
    assert (await look("site.test web-team\nproxy.test web-team\nshop.test web-team\n")).left_out == ()
    said = (tmp_path / "DECISIONS.md").read_text()
    assert said.count("the scope of paper beside its inventory") == 4
    assert delta.words() in said
    told = await journal.facts(f"{SIGHTED}paper:fence:inventory")
    assert "left out of the tests: proxy.test" in "".join(json.loads(one)["what"] for one in told.values())


@pytest.mark.parametrize("command", [("false",), ("true",), ("/nowhere",)])
async def test_an_inventory_that_cannot_be_asked_or_is_empty_is_a_fault(
    tmp_path: Path, journal: Journal, command: tuple[str, ...]
) -> None:
    config = FleetConfig(integrity=IntegritySection(assets=command))
    with pytest.raises((CannotLook, OSError)):
        await revalidate(tmp_path, config, PLATFORM, journal, CLOCK)
    assert left_out(tmp_path).match("http://site.test/") == ""
    assert await revalidate(tmp_path, FleetConfig(), PLATFORM, journal, CLOCK) is None
