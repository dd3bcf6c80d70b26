"""The check that a browser starts in a jail, and the class of limits that it gets there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet.cli.check import machine
from fleet.jail import model
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.locate import BROWSER, browser_rules
from fleet.jail.model import Image
from fleet.jail.toolcheck import try_browser
from sandbox.browser.devtools import installed
from tests.sandbox.browsing import needs_browser

pytestmark = [pytest.mark.anyio, pytest.mark.jail]
GUEST = "sandbox.browser.check"


async def tried(spool: Path, *, bwrap: str | None = None) -> str:
    jail = BwrapJail(Image(guest=GUEST), pool=0, spool=spool, bwrap=bwrap)
    try:
        return await try_browser(jail)
    finally:
        await jail.aclose()


@needs_browser
async def test_it_starts_under_its_own_limits_and_not_under_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await tried(tmp_path) == ""
    scarce = replace(model.RESOURCES["browser"], processes=16)
    monkeypatch.setitem(model.RESOURCES, "browser", scarce)
    assert (await tried(tmp_path)).startswith("it does not start in a jail: exited 1")
    assert list(tmp_path.iterdir()) == []


async def test_without_a_jail_nothing_is_known(tmp_path: Path) -> None:
    assert (await tried(tmp_path, bwrap="/bin/false")).startswith("could not look: ")


@needs_browser
async def test_doctor_shows_that_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    [(name, good, seen)] = await machine.CHECKS["browser"](None)
    assert (name, good) == ("browser", True)
    assert seen.startswith(f"it starts in a jail: {installed()}, ")


async def test_doctor_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "installed", lambda: "")
    [(name, good, seen)] = await machine.CHECKS["browser"](None)
    assert (name, good) == ("browser", True)
    assert "not applicable" in seen
    assert seen.endswith(BROWSER)


def test_the_rules_are_mounted_where_npm_has_put_them(tmp_path: Path) -> None:
    assert browser_rules(tmp_path) == ()
    folder = tmp_path / "node_modules" / "axe-core"
    folder.mkdir(parents=True)
    (folder / "axe.min.js").touch()
    assert browser_rules(tmp_path) == ((folder, "axe-core"),)
