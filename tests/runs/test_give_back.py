"""Settling: transactions are looked up, what the keys hold is given back, and the keys go last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from fleet.chain.node import abi
from fleet.chain.ports import Paid, Receipt, Role, RunScope, Settlement, TxRequest
from fleet.chain.signing.judge import SigningLimits
from fleet.clock import SystemClock
from fleet.config import GasSection
from fleet.errors import ConfigError, TryAgain
from fleet.events.model import Event, ResourceReleased
from fleet.events.stream import Stream
from fleet.runs.call.wallet import Wallet
from fleet.runs.context import FleetContext, RunContext
from fleet.runs.settlement.settle import ROUNDS, give_back, release_left, settle, transactions
from fleet.store.journal import Journal
from fleet.store.rows import EffectState, NewRun
from tests.doubles.chain import DIAMOND, MemoryChain

pytestmark = pytest.mark.anyio
RUN, NAME = "ab12cd34", "qa-ab12cd34-1"


class Told(list[Event]):
    def write_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self.write(event)

    def write(self, event: Event) -> None:
        self.append(event)


class Rich:
    """A budget without an end."""

    async def spend(self, unit: Paid, /) -> int:
        return 99


@dataclass
class Rig:
    """One run with one name of its own on a chain in memory. `reorgs` sweeps are followed by a reorg."""

    chain: MemoryChain
    journal: Journal
    wallet: Wallet
    told: Told
    world: FleetContext
    reorgs: int = 0
    token: int = 0

    async def sweep(self, scope: RunScope, label: str) -> int:
        swept = await self.chain.sponsor.sweep(scope, label)
        if self.reorgs:
            self.reorgs -= 1
            self.back()
        return swept

    def back(self) -> None:
        """The block of the release is gone."""
        self.chain.state.names[self.token] = NAME
        self.chain.state.owners[self.token] = self.wallet.keys.addresses()[NAME]

    async def mint(self, state: EffectState) -> None:
        """The name is on the chain, and in the journal as that."""
        await self.wallet.ready("qa_create", {"name": NAME})
        await self.chain.sponsor.fund(self.wallet.scope, NAME, gas=21_000)
        data = abi.FUNCTIONS["register"].encode(NAME)
        await self.chain.signer.submit(
            TxRequest(
                role=Role.THROWAWAY, to=DIAMOND, gas=10**6, charge="writes", data=data, run=RUN, key=NAME
            )
        )
        self.token = await self.chain.names.id_of_name(NAME)
        (name,) = await self.journal.effects(RUN, ["name"])
        await self.journal.resolve(name.effect_id, state)

    async def give_back(self) -> None:
        await give_back(self.world, RUN, Stream(RUN, clock=SystemClock(), sink=self.told), self.wallet)

    @property
    def releases(self) -> int:
        return sum(isinstance(event, ResourceReleased) for event in self.told)


@pytest.fixture
async def rig(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Rig]:
    chain = MemoryChain(SigningLimits(rung=lambda: "exercise"))
    async with await Journal.open(tmp_path / "fleet.db") as journal:
        await journal.trigger(
            NewRun(
                run_id=RUN,
                persona="qa-a",
                key="qa-a@1",
                platform="devnet",
                trigger="a test",
                rung="",
                budget={},
            )
        )
        parts = SimpleNamespace(
            journal=journal,
            chain=SimpleNamespace(signer=chain.signer, names=chain.names),
            folder=lambda _: tmp_path / RUN,
            clock=SystemClock(),
            config=SimpleNamespace(store=SimpleNamespace(stalled_s=2.0)),
            platform=SimpleNamespace(gas=GasSection(), chain=SimpleNamespace(diamond=DIAMOND)),
        )
        world = cast(FleetContext, parts)
        made = Rig(chain, journal, Wallet(world, RUN, payer=Rich()), Told(), world)
        parts.chain.sponsor = SimpleNamespace(act=chain.sponsor.act, sweep=made.sweep)
        chain.signer.open_run(made.wallet.scope)
        yield made


@pytest.mark.parametrize("state", ["done", "failed", "released"])
async def test_what_a_key_of_the_run_holds_is_released_whatever_the_journal_says(
    rig: Rig, state: EffectState
) -> None:
    await rig.mint(state)
    await rig.give_back()
    assert (await rig.chain.names.owner_of_name(NAME), rig.wallet.keys.labels()) == ("", [])
    assert [name.state for name in await rig.journal.effects(RUN, ["name"])] == ["released"]
    assert rig.releases == 1


async def test_a_release_that_is_undone_before_the_keys_go_is_made_again(rig: Rig) -> None:
    await rig.mint("done")
    rig.reorgs = 1
    await rig.give_back()
    assert (await rig.chain.names.owner_of_name(NAME), rig.wallet.keys.labels()) == ("", [])
    assert rig.releases == 2


async def test_while_the_chain_does_not_hold_still_the_keys_stay(rig: Rig) -> None:
    await rig.mint("done")
    rig.reorgs = ROUNDS
    with pytest.raises(TryAgain, match="keep coming back"):
        await rig.give_back()
    assert rig.wallet.keys.labels() == [NAME]
    await rig.give_back()
    assert (await rig.chain.names.owner_of_name(NAME), rig.wallet.keys.labels()) == ("", [])


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (b"garbage", 0o600, "neither 64 hex"),
        (b"", 0o600, "neither 64 hex"),
        (b"11" * 32, 0o644, "lets others in"),
    ],
)
async def test_a_key_file_that_is_no_good_is_told_and_the_rest_is_settled(
    rig: Rig, content: bytes, mode: int, why: str
) -> None:
    await rig.mint("done")
    bad = rig.wallet.keys.folder / "caller"
    bad.write_bytes(content)
    bad.chmod(mode)
    await rig.journal.intend(RUN, "key", "caller", {})
    with pytest.raises(ConfigError, match=why) as caught:
        await rig.give_back()
    assert f"key file {bad}: " in str(caught.value)
    assert str(caught.value).endswith(f"or give up what caller may hold: rm {bad}")
    assert (await rig.chain.names.owner_of_name(NAME), rig.wallet.keys.labels()) == ("", ["caller"])
    assert bad.read_bytes() == content
    states = {effect.ref: effect.state for effect in await rig.journal.effects(RUN, ["key"])}
    assert states == {NAME: "released", "caller": "open"}
    bad.unlink()  # as it said
    await rig.give_back()
    assert not rig.wallet.keys.folder.exists()
    assert await rig.journal.effects(RUN, states=["open"]) == []


async def test_a_name_whose_key_file_is_garbage_is_given_up_when_its_file_is_removed(rig: Rig) -> None:
    await rig.mint("done")
    bad = rig.wallet.keys.folder / NAME
    bad.write_bytes(b"garbage")
    with pytest.raises(ConfigError, match=f"what {NAME} may hold"):
        await rig.give_back()
    assert [name.state for name in await rig.journal.effects(RUN, ["name"])] == ["done"]
    bad.unlink()
    await rig.give_back()
    (name,) = await rig.journal.effects(RUN, ["name"])
    assert (name.state, name.data["reason"]) == ("failed", f"owned by {name.data['owner']}")
    assert not rig.wallet.keys.folder.exists()


@pytest.mark.parametrize(("status", "state"), [(1, "done"), (0, "failed")])
async def test_a_transaction_that_recovery_found_is_recorded_as_by_its_sender(
    rig: Rig, status: int, state: EffectState
) -> None:
    """By its block a log that lags is told from one that is whole; by its status it may be sent again."""

    async def mined(raw: bytes, *, rebroadcast: bool) -> Settlement:
        assert (raw, rebroadcast) == (b"\x02", False)
        return Settlement(
            state="mined", tx="0x7", receipt=Receipt(tx="0x7", status=status, gas_used=1, block=7)
        )

    parts = vars(rig.world) | {"chain": SimpleNamespace(signer=SimpleNamespace(settle_raw=mined))}
    await rig.journal.intend(RUN, "tx", "0x7", {"raw": "02", "purpose": "tool a"})
    await transactions(cast(FleetContext, SimpleNamespace(**parts)), RUN)
    (found,) = await rig.journal.effects(RUN, ["tx"])
    assert (found.state, found.data["status"], found.data["block"]) == (state, status, 7)


async def test_while_a_transaction_is_pending_it_stays_open_and_nothing_after_it_is_touched(rig: Rig) -> None:
    """Its stipend may still arrive: without the key nobody could take it back."""
    states: dict[bytes, Settlement] = {
        b"\x01": Settlement(state="failed", tx="0x1", reason="never reached the chain"),
        b"\x02": Settlement(state="pending", tx="0x2", reason="the node has it, but no block does"),
    }
    asked: list[bytes] = []

    async def look(raw: bytes, *, rebroadcast: bool) -> Settlement:
        asked.append(raw)
        return states[raw]

    signer = SimpleNamespace(settle_raw=look, open_run=_nothing, close_run=_nothing)
    await rig.mint("done")
    for raw in ("01", "02", "03"):
        await rig.journal.intend(RUN, "tx", f"0x{raw}", {"raw": raw, "purpose": "stipend a"})
    side = SimpleNamespace(**vars(rig.world.chain) | {"signer": signer, "log": None})
    world = cast(FleetContext, SimpleNamespace(**vars(rig.world) | {"chain": side}))
    stream = Stream(RUN, clock=SystemClock(), sink=rig.told)
    context = cast(RunContext, SimpleNamespace(fleet=world, run=RUN, stream=stream))
    for end in (partial(settle, context), partial(release_left, world, RUN, stream)):
        with pytest.raises(TryAgain, match="transaction 0x2 of run ab12cd34 is in no block yet"):
            await end(rig.wallet)
    assert asked == [b"\x01", b"\x02", b"\x02"]
    kept = [tx.state for tx in await rig.journal.effects(RUN, ["tx"])]
    assert kept == ["failed", "open", "open"]
    assert (rig.wallet.keys.labels(), rig.releases) == ([NAME], 0)
    assert await rig.chain.names.owner_of_name(NAME) != ""


def _nothing(_: object) -> None:
    pass
