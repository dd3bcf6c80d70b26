"""SIGKILL at each step of the two ways in which a throwaway key holds nothing (decision 90).

What a key does is signed, written down, sent, mined and recorded: a name is made, and released; with EIP-7702
its delegate is deployed before and taken away after. Whatever the moment, the next start leaves no delegate
and no fund, and the name was made once or not at all. `make test` has the moments around the key's own words.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import pytest

from fleet.chain.node.rpc import Rpc
from fleet.devnet import node
from fleet.devnet.devnet import Devnet
from fleet.store.journal import Journal
from tests import tempo
from tests.crash import course
from tests.crash.farm import Farm, Zygotes
from tests.crash.pauses import WITHIN_S, Life
from tests.crash.promises import check, never_less, spent
from tests.crash.trials import Trial

pytestmark = course.MARKS

INTEND = "effect.intend.tx"
POOLED = {"pending": "0x1", "queued": "0x0"}


@dataclass(frozen=True, slots=True)
class Way:
    """A chain, and what a sponsored key's transactions are for there, as their purposes begin."""

    devnet: type[Devnet]
    steps: tuple[str, ...]


WAYS = {
    "EIP-7702": Way(Devnet, ("deploy the delegate", "tool", "release", "clear")),
    "Tempo": Way(tempo.TempoDevnet, ("tool", "release")),
}
SHORT = ("tool mined", "clear written", "clear mined")
"""What `make test` tries: the key has spoken, and nobody knows what became of it."""


@dataclass(frozen=True, slots=True)
class Field:
    """A farm, the journal steps of a run that nobody killed there, and the number of its first transaction
    for each purpose."""

    farm: Farm
    names: list[str]
    number: dict[str, int]


@pytest.fixture(scope="module", params=["EIP-7702", pytest.param("Tempo", marks=course.LONG)])
async def field(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zygotes: Zygotes
) -> AsyncIterator[Field]:
    way, root = WAYS[request.param], tmp_path_factory.mktemp("zero")
    async with way.devnet(root / "devnet", keys=root / "keys") as devnet:
        fund = tempo.fund if way.devnet is tempo.TempoDevnet else node.fund
        farm = Farm(root, devnet, "hand", None, zygotes, sponsored=True, fund=fund)
        home = await farm.home()
        code, names = await farm.live(home)
        assert code == 0, home.log
        await check([home], "a clean run")
        async with await Journal.open(home.place) as journal:
            sent = [one.data["purpose"].partition(" qa-")[0] for one in await journal.effects(None, ["tx"])]
        assert [one for one in sent if one != "post"] == list(way.steps)
        yield Field(farm, names, {purpose: sent.index(purpose) + 1 for purpose in way.steps})


async def test_at_each_step(field: Field) -> None:
    names = field.names
    intends = [at for at, name in enumerate(names, 1) if name == INTEND]
    table = {"settling": str(names.index("run.settle") + 1)}
    for purpose, number in field.number.items():
        at = intends[number - 1]
        then = names.index("effect.resolve", at) + 1
        table |= {
            f"{purpose} signed": f"b{at}",
            f"{purpose} written": str(at),
            f"{purpose} mined": f"b{then}",
            f"{purpose} recorded": str(then),
        }
    trials = [Trial(at) for what, at in table.items() if course.FULL or what in SHORT]
    await course.tried(field.farm, trials, f"{len(trials)} of {len(table)} steps")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fate", ["mined", "forgotten"])
async def test_while_it_is_in_no_block(field: Field, fate: str) -> None:
    """The node has it when its sender dies, and mines it later, or forgets it."""
    async with Rpc(field.farm.devnet.chain.url) as rpc:
        for purpose, number in field.number.items():
            if course.FULL or purpose == "tool":
                await killed_while_pending(field.farm, rpc, number, fate, f"{purpose}, {fate}")


async def killed_while_pending(farm: Farm, rpc: Rpc, number: int, fate: str, where: str) -> None:
    home = await farm.home()
    life = Life(home)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(life.run, farm, f"after {INTEND}#{number}")
        assert await life.stopped(), (where, home.log)
        await rpc.call("evm_setAutomine", [False])
        try:
            life.go_on()
            with anyio.fail_after(WITHIN_S):
                while await rpc.call("txpool_status") != POOLED:  # noqa: ASYNC110 -- anvil says nothing by itself
                    await anyio.sleep(0.02)
        finally:
            life.kill()
            await life.ended()
            if fate == "forgotten":
                await rpc.call("anvil_dropAllTransactions")
            await rpc.call("evm_setAutomine", [True])
            await rpc.call("evm_mine")
    before = await spent(home)
    code, _ = await farm.live(home)
    assert code == 0, (where, home.log)
    await check([home], where)
    never_less(before, await spent(home), where)
