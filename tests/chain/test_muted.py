"""A muted log reads what the log has, and writes nothing."""

from __future__ import annotations

import pytest

from fleet.chain.log.choice import MutedLog
from fleet.chain.signing.judge import SigningLimits
from fleet.errors import BudgetExceeded
from tests.doubles.chain import MemoryChain


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
