"""What holds after every kill, once somebody has started again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fleet.chain.log.choice import log_of
from fleet.chain.names import Names
from fleet.chain.node.abi import REGISTERED
from fleet.chain.node.codec import Entry
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.sponsor import is_tempo
from fleet.config import Platform, parse
from fleet.events.model import Event, Footer, Header, TurnStarted
from fleet.events.trajectory import read
from fleet.store.journal import Journal
from tests.crash.farm import CALLS, PROBES, WRITES, Home
from tests.tempo import tokens

Spending = dict[str, dict[str, int]]


async def check(homes: Sequence[Home], where: str) -> None:
    """Every promise that a killed run makes; `homes` are all the state directories of one fleet."""
    state = homes[0].state
    profile = parse(Platform, (state / "devnet" / "devnet.toml").read_text(), file="devnet.toml")
    async with Rpc(profile.chain.rpc) as rpc, await Journal.open(homes[0].place) as journal:
        runs = await journal.runs()
        assert [row.state for row in runs] == ["ended"] * len(runs), where
        assert await journal.effects(None, states=["open"]) == [], where
        minted = await journal.effects(None, kinds=["name"])
        assert len(minted) <= 1, (where, "a second exercise", minted)
        for effect in minted:
            assert await Names(rpc, profile.chain.diamond).owner_of_name(effect.ref) == "", where
            key = effect.data["owner"]
            made = {"address": profile.chain.diamond, "fromBlock": "0x0"}
            mints = [REGISTERED, None, "0x" + key[2:].rjust(64, "0")]
            mined = await rpc.call("eth_getLogs", [made | {"topics": mints}])
            assert len(mined) <= 1, (where, "made twice", mined)
            assert mined or effect.state == "failed", (where, "released, and never made")
            assert await rpc.call("eth_getCode", [key, "latest"]) == "0x", (where, "it has a delegate")
            if profile.sponsor.mode == "sponsored":
                assert await rpc.balance(key) == 0, (where, "a key holds something")
                assert not await is_tempo(rpc) or await tokens(rpc, key) == 0, (where, "a key holds tokens")
                sent = await journal.effects(None, kinds=["tx"])
                assert not [one for one in sent if one.data["purpose"].startswith("stipend")], where
        for effect in await journal.effects(None, kinds=["key"]):
            assert effect.state in ("released", "failed"), (where, effect.state)
            assert not effect.data.get("key"), where
        log = log_of(profile, state, rpc)
        entries = list[Entry]()
        while page := await log.range(len(entries), 1_000):  # a page has as many as a node can return
            entries += page
        mine = [entry for entry in entries if entry.sender == homes[0].identity]
        findings = await journal.findings()
        assert [row.state for row in findings if row.state not in ("posted", "repeated")] == [], where
        assert len(mine) == len({row.fingerprint for row in findings}), (where, mine)
        begun = [row for row in runs if row.outcome != "cancelled"]
        assert len(begun) <= 1, (where, "a second exercise", begun)
        for row in runs:
            spent = await journal.spent(row.run_id)
            assert spent.get("calls", 0) <= CALLS, where
            assert spent.get("writes", 0) <= WRITES, where
    told = [_told(home.state, row.run_id, where) for row in begun for home in homes]
    assert any(events and isinstance(events[-1], Footer) for events in told) == bool(begun), where
    turns = [event for events in told for event in events if isinstance(event, TurnStarted)]
    assert len(turns) <= PROBES, (where, "a second exercise", turns)
    for home in homes:
        assert list(home.state.glob("runs/*/keys")) == [], where
        assert list((home.state / "jails").glob("*.jail")) == [], where


def _told(state: Path, run: str, where: str) -> list[Event]:
    """What a run's trajectory in one state directory tells; the footer is where somebody ended the run."""
    path = state / "runs" / run / "trajectory.jsonl"
    events = list(read(path)) if path.exists() else []
    assert all(isinstance(event, Header) for event in events[:1]), where
    assert not any(isinstance(event, Footer) for event in events[:-1]), where
    return events


async def spent(home: Home) -> Spending:
    """What each run has spent by the journal."""
    async with await Journal.open(home.place) as journal:
        return {row.run_id: await journal.spent(row.run_id) for row in await journal.runs()}


def never_less(before: Spending, after: Spending, where: str) -> None:
    """No budget starts anew."""
    for run, units in before.items():
        for unit, amount in units.items():
            assert after[run].get(unit, 0) >= amount, (where, run, unit)
