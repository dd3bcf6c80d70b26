"""Every shipped persona on platforms that nobody wrote it for: nothing false, nothing blind called
healthy."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleet.gate.model import Rung
from tests.platforms.bare import bare
from tests.platforms.firing import Fired, Home, fire, home
from tests.platforms.full import PARTS, without
from tests.platforms.stand import Stand

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(1800)]

PERSONAS = ("qa-smoke", "qa-security", "qa-fuzz", "qa-ux", "qa-perf")
TIMES = int(os.environ.get("PLATFORM_TIMES", "1"))
"""How often each persona is fired; `make platforms` says ten."""
GUIDE = {"targets": {"guide": "{site}/llms.txt"}}


def judged(persona: str, fired: Fired) -> str:
    """ "" when the run was quiet and left nothing out that it could have looked at, else what was wrong."""
    covered = fired.data["coverage"]
    left = {word: covered[word] for word in ("refused", "could_not") if covered[word]}
    found = [row["title"] for row in fired.data["findings"] if row["state"] not in ("dropped",)]
    if fired.code or fired.entries or found or left or not covered["looked"]:
        return (
            f"{persona}: exit {fired.code}, {fired.data['outcome']}, found {found}, left {left}\n{fired.err}"
        )
    assert all(row["reason"] for row in covered["not_applicable"]), covered
    return ""


async def rounds(stand: Stand, at: Home, times: int) -> list[str]:
    """What went wrong when every persona was fired at `exercise` that often."""
    wrong = []
    for _ in range(times):
        for persona in PERSONAS:
            wrong.append(judged(persona, await fire(persona, stand, at, rung=Rung.EXERCISE)))
    return [one for one in wrong if one]


async def test_the_bare_platform_is_quiet(tmp_path: Path) -> None:
    async with bare(tmp_path / "bare", more=GUIDE) as stand:
        assert await rounds(stand, await home(tmp_path / "fleet", stand), TIMES) == []


@pytest.mark.skipif(TIMES == 1, reason="a minute for each of a devnet's parts: make platforms")
@pytest.mark.parametrize("part", PARTS)
async def test_the_devnet_without_a_part_is_quiet(tmp_path: Path, part: str) -> None:
    async with without(part, tmp_path / "devnet") as stand:
        assert await rounds(stand, await home(tmp_path / "fleet", stand), max(1, TIMES // 5)) == []


async def test_what_is_missing_stands_in_plan_and_dry_run_with_its_reason(
    bare_stand: Stand, settled: Callable[[Stand], Awaitable[Home]]
) -> None:
    at = await settled(bare_stand)
    plan = await fire("qa-fuzz", bare_stand, at, words=("--dry-run",))
    would = {row["probe"]: row["would run"] for row in plan.data}
    assert would["stream-edge"].startswith("not applicable: the profile has no target for 'agent'")
    assert would["loader-crash"] == "not applicable: the profile names no loader"
    assert would["log-edges"] == "yes"
    fired = await fire("qa-security", bare_stand, at)
    (owned,) = [row for row in fired.data["coverage"]["not_applicable"] if row["probe"] == "diamond-owned"]
    assert "the diamond does not offer owner" in owned["reason"]
    text = (at.state / "runs" / fired.data["run"] / "PLAN.md").read_text()
    assert "- [~] diamond-owned: not_applicable: " in text
