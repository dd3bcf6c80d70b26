"""A muted log reads what the log has, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from fleet.chain.log.choice import MutedLog, log_of
from fleet.chain.node.rpc import Rpc
from fleet.chain.ports import PostedEntry
from fleet.chain.signing.judge import SigningLimits
from fleet.config import Platform, parse
from fleet.errors import BudgetExceeded, Refused
from tests.doubles.chain import MemoryChain


@pytest.mark.anyio
async def test_a_log_refuses_what_its_profile_withholds_whoever_composed_it(tmp_path: Path) -> None:
    memory = MemoryChain(SigningLimits(rung=lambda: "observe"))
    text = (
        'name = "shop"\nlog = "file"\n[web]\nsite = "https://shop.test"\n[post]\nmask = ["{site}/billing"]\n'
    )
    profile, rpc = parse(Platform, text, file="shop.toml"), cast(Rpc, None)
    log = log_of(profile, tmp_path, rpc, memory.signer)
    for named in ("see /billing", "at https://shop.test/%62illing?x=1"):
        with pytest.raises(Refused, match="mask withholds"):
            await log.post(named)
    one, two, three = await log.post_many(["a", "b /billing", "c"])
    assert (type(one), type(two), type(three)) == (PostedEntry, Refused, PostedEntry)
    assert [entry.text for entry in await log_of(profile, tmp_path, rpc).range(0, 9)] == ["a", "c"]


@pytest.mark.anyio
async def test_a_muted_log_reads_and_never_writes() -> None:
    log = MemoryChain(SigningLimits(rung=lambda: "observe")).log
    await log.post("an entry")
    muted = MutedLog(log)
    with pytest.raises(BudgetExceeded, match="posts nothing"):
        await muted.post("another")
    assert [type(one) for one in await muted.post_many(["a", "b"])] == [BudgetExceeded] * 2
    assert await muted.count() == await log.count() == 1
    assert await muted.range(0, 9) == await log.range(0, 9)
    assert await muted.head() == await log.head()
