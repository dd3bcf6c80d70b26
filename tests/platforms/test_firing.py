"""The helper that fires a persona: exit code, report and the log's new entries are what they say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fleet.gate.model import Rung
from tests.platforms.firing import Home, fire
from tests.platforms.full import full
from tests.platforms.stand import Stand

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(300)]

Settled = Callable[[Stand], Awaitable[Home]]


async def test_a_healthy_devnet_has_no_findings(full_stand: Stand, settled: Settled) -> None:
    fired = await fire("qa-smoke", full_stand, await settled(full_stand))
    assert fired.code == 0, fired.err
    assert fired.data["findings"] == []
    assert fired.entries == ()
    assert "platform devnet: chain 31337" in fired.err


async def test_what_it_posts_is_read_from_the_chain(settled: Settled, tmp_path: Path) -> None:
    async with full(tmp_path / "platform", defects=("sponsor-key-exposed",)) as stand:
        fired = await fire("qa-security", stand, await settled(stand), rung=Rung.EXERCISE)
    assert fired.code == 1, fired.err
    assert [row["probe"] for row in fired.data["findings"]] == ["sponsor-key-exposed"]
    assert len(fired.entries) == 1
    assert fired.data["findings"][0]["fingerprint"] in fired.entries[0].text


async def test_a_profile_that_is_wrong_is_an_error_of_the_command(
    full_stand: Stand, settled: Settled
) -> None:
    at = await settled(full_stand)
    (at.config / "platforms" / "devnet.toml").write_text("name = 1\n")
    fired = await fire("qa-smoke", full_stand, at)
    assert fired.code == 3
    assert "devnet.toml" in fired.err
    assert fired.entries == ()
