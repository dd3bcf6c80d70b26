"""A transaction that no block holds when its run is settled: not taken for done, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleet.runs.run import fire, recover
from tests.acceptance.conftest import CREATE, House, persona, probe
from tests.acceptance.doubles import between

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]


async def test_a_stipend_in_the_air_keeps_its_run_open_and_its_key_here(house: House, tmp_path: Path) -> None:
    async def tamper(method: str, params: list[Any], real: Any) -> Any:
        if method == "eth_estimateGas":  # the last that the tool asks before it acts
            await house.rpc.call("evm_setAutomine", [False])
        return real

    one = persona(
        tmp_path,
        'tools = ["qa_create"]\nbudget = { calls = 9, writes = 4 }',
        probe("mint", CREATE, expect="size(result.error_class) < 99"),
    )
    async with between(house.rpc, tamper) as url:
        state = await house.state(tmp_path, (house.devnet.chain.url, url))
        try:
            async with house.world(state, one) as world:
                world.chain.signer._receipts._deadline_s = 0.5
                report = await fire(world, one)
                (key,) = (world.folder(report.run) / "keys").iterdir()
                (owner,) = [e.data["owner"] for e in await world.journal.effects(report.run, ["name"])]
                (stipend,) = await world.journal.effects(report.run, ["tx"])
                row = await world.journal.run(report.run)
                assert (report.settled, row.state, row.outcome) == (False, "settling", "")
                assert (stipend.data["purpose"], stipend.state) == (f"stipend {key.name}", "open")
                assert f"transaction {stipend.ref} of run {report.run} is in no block yet" in report.detail
                assert house.said("footer") == []
                (again,) = await recover(world)  # still in no block
                assert (again.settled, key.is_file()) == (False, True)
        finally:
            await house.rpc.call("evm_setAutomine", [True])
            await house.rpc.call("evm_mine", [])
        assert int(await house.rpc.call("eth_getBalance", [owner, "latest"]), 16) > 0
        async with house.world(state, one) as world:
            (last,) = await recover(world)
            assert (last.settled, key.parent.exists()) == (True, False)
            (stipend, *_) = await world.journal.effects(report.run, ["tx"])
            assert (stipend.state, stipend.data["status"]) == ("done", 1)
    assert int(await house.rpc.call("eth_getBalance", [owner, "latest"]), 16) == 0
