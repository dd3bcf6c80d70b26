"""Rows 9, 10 and 11 at every rung, told by the chain itself: its transactions, events and state by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.node import abi
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.gate.model import Rung
from fleet.runs.run import RunReport, fire
from tests.acceptance.conftest import CREATE, GOOD, House, persona, probe, step

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]

BUDGET = "budget = { calls = 30, writes = 10 }"
PUBLISH = step("qa_publish", name="{name}", source=GOOD)
FETCH = step("qa_fetch", url="{site}/llms.txt")
NOBODY = "0x" + "0" * 40
ACTS = (Rung.EXERCISE, Rung.PROPOSE)


@dataclass(frozen=True)
class Minted:
    """One `Registered` event of the chain, and what the chain says of it in that block and now."""

    owner: str
    then: str
    main: int
    now: str


async def view(house: House, diamond: str, block: str, name: str, *args: object) -> Any:
    function = abi.FUNCTIONS[name]
    asked = {"to": diamond, "data": "0x" + function.encode(*args).hex()}
    return function.decode(as_bytes(await house.rpc.call("eth_call", [asked, block])))[0]


async def minted(house: House, diamond: str, name: str) -> list[Minted]:
    """Everything that was registered since the world was opened."""
    query = {"address": diamond, "fromBlock": hex(house.head), "topics": [abi.REGISTERED]}
    found = []
    for log in await house.rpc.call("eth_getLogs", [query]):
        owner, block = "0x" + log["topics"][2][-40:], log["blockNumber"]
        if as_int(block) == house.head:
            continue
        found.append(
            Minted(
                owner=owner,
                then=await view(house, diamond, block, "ownerOfName", name),
                main=int(await view(house, diamond, block, "mainOf", owner)),
                now=await view(house, diamond, "latest", "ownerOfName", name),
            )
        )
    return found


@pytest.mark.parametrize("rung", Rung)
async def test_row_9_what_was_not_granted_is_refused_and_nothing_reaches_the_chain(
    house: House, tmp_path: Path, rung: Rung
) -> None:
    full = persona(
        tmp_path,
        f'tools = ["qa_call", "qa_fetch", "qa_create", "qa_publish", "qa_chain"]\n{BUDGET}',
        probe("publish", PUBLISH, expect="result.ok"),
        probe("mint", CREATE, expect="result.ok"),
        probe("read", step("qa_chain", function="nextId"), expect="result.ok"),
        probe("look", FETCH, expect="result.status == 200"),
    )
    few = replace(full, persona=full.persona.model_copy(update={"tools": ("qa_call", "qa_fetch")}))
    state = await house.state(tmp_path, rung=rung)
    async with house.world(state, few) as world:
        report = await fire(world, few)
        assert (report.outcome, report.findings, await house.signed()) == ("done", (), [])
        assert await minted(house, world.platform.chain.diamond, f"qa-{report.run}-1") == []
    denied = [(one.tool, one.rule) for one in house.said("gate.denied")]
    act = "dial" if rung is Rung.OBSERVE else "grant"  # which of the two fences stands in front
    assert denied == [("qa_publish", act), ("qa_create", act), ("qa_chain", "grant")]
    assert [one.tool for one in house.said("tool.requested")] == ["qa_fetch"]


async def create(house: House, root: Path, rung: Rung) -> tuple[RunReport, list[Minted], str]:
    one = persona(
        root,
        f'tools = ["qa_create", "qa_fetch"]\n{BUDGET}',
        probe("mint", CREATE, expect="result.ok"),
        probe("look", FETCH, expect="result.status == 200"),
    )
    state = await house.state(root, rung=rung)
    async with house.world(state, one) as world:
        report = await fire(world, one)
        assert report.settled
        return (
            report,
            await minted(house, world.platform.chain.diamond, f"qa-{report.run}-1"),
            world.chain.identity,
        )


async def test_row_10_at_observe_no_name_is_minted_and_nobody_is_paid(house: House, tmp_path: Path) -> None:
    report, found, _ = await create(house, tmp_path, Rung.OBSERVE)
    assert (report.outcome, report.findings) == ("done", ())
    assert (found, await house.signed()) == ([], [])
    assert [(one.tool, one.rule) for one in house.said("gate.denied")] == [("qa_create", "dial")]
    assert [one.tool for one in house.said("tool.requested")] == ["qa_fetch"]


@pytest.mark.parametrize("rung", ACTS)
async def test_rows_10_and_11_the_chain_says_that_the_throwaway_owned_it_without_main_and_that_it_is_free(
    house: House, tmp_path: Path, rung: Rung
) -> None:
    report, found, identity = await create(house, tmp_path, rung)
    (said, _) = [one.result for one in house.said("tool.responded")]
    assert (report.outcome, report.findings) == ("done", ())
    signed = await house.signed()
    (registered,) = [tx.sender for tx in signed if tx.function == "register"]
    assert found == [Minted(owner=registered, then=registered, main=0, now=NOBODY)]
    assert (said["ok"], said["name"], said["owner"]) == (True, f"qa-{report.run}-1", registered)
    assert registered != identity
    ours = [tx.function for tx in signed if tx.sender == registered]
    assert ours == ["register", "releaseName", ""]  # and what is left goes back to the sponsor
    (receipt,) = [await house.rpc.call("eth_getTransactionReceipt", [said["tx"]])]
    assert (receipt["from"], receipt["status"]) == (registered, "0x1")
    assert as_int(await house.rpc.call("eth_getBalance", [registered, "latest"])) == 0
