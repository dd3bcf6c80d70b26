"""The poller against a node that a test writes: limits, outages, lies, crashes between two steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import pytest

from fleet.chain.node.abi import REGISTERED
from fleet.errors import RpcError, Unreachable, UsageError
from fleet.personas.model import EVENTS
from fleet.triggers.chain import watch as chain
from fleet.triggers.chain.watch import KEY, ChainWatch
from fleet.triggers.model import EVERYONE, Firing
from tests.doubles.triggers import FiringRecorder, MemoryFacts
from tests.triggers.conftest import FakeClock, Refusing, running, turns, until
from tests.triggers.fakenode import DIAMOND, FACETS, SPONSOR, FakeNode

pytestmark = pytest.mark.anyio

ALL: Mapping[str, Collection[str]] = dict.fromkeys(EVENTS, ("qa-a",))


class Watched:
    """A watch with everything around it; `again` is a restart."""

    def __init__(
        self, sink: FiringRecorder | None = None, subscribed: Mapping[str, Collection[str]] = ALL
    ) -> None:
        self.node, self.facts = FakeNode(), MemoryFacts()
        self.sink = sink or FiringRecorder()
        self.subscribed = subscribed
        self.watch = self.again()

    def again(self, **options: Any) -> ChainWatch:
        settings: dict[str, Any] = {"sponsor": SPONSOR, "low_wei": 10**17, "clock": FakeClock()}
        subscribers = lambda event: self.subscribed.get(event, ())  # noqa: E731
        self.watch = ChainWatch(
            self.node, DIAMOND, self.facts, self.sink, subscribers, **{**settings, **options}
        )
        return self.watch

    async def fires(self) -> list[str]:
        """Keys, without the persona, that one look fires."""
        before = len(self.sink.fired)
        await self.watch.look()
        return [
            key.partition("@")[2].removesuffix(f"-{self.node.forks:08x}") for key in self.sink.keys[before:]
        ]


@pytest.fixture
async def watched(anyio_backend: str) -> Watched:
    found = Watched()
    assert await found.fires() == []
    return found


async def test_one_changed_selector_fires_once_and_another_order_never(watched: Watched) -> None:
    watched.node.cut((FACETS[1], (FACETS[0][0], FACETS[0][1][::-1])))
    assert await watched.fires() == []
    watched.node.cut((FACETS[1], (FACETS[0][0], [*FACETS[0][1], b"\4\4\4\4"])))
    watched.node.mine(3)
    (key,) = await watched.fires()
    assert key.startswith("facets-changed:2:")
    assert await watched.fires() == []
    watched.node.cut(FACETS)
    assert len(await watched.fires()) == 1


async def test_each_new_id_fires_once_also_across_a_restart(watched: Watched) -> None:
    watched.node.register(1)
    watched.node.emit(REGISTERED, ident=2)
    assert await watched.fires() == ["registered:1:0", "registered:1:1"]
    watched.again()
    assert await watched.fires() == []
    watched.node.register(3)
    watched.again()
    assert await watched.fires() == ["registered:2:0"]
    assert watched.sink.repeats == []


class _Interleaved(MemoryFacts):
    """Between a look and what it writes down, somebody else does something."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def swap(self, key: str, old: str | None, value: str) -> bool:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            await act()
        return await super().swap(key, old, value)


async def test_a_look_that_a_peer_overtook_is_void(watched: Watched) -> None:
    """Both see the change, at different blocks: one of them names it."""
    peer = Watched()
    peer.node = watched.node
    watched.facts = peer.facts = facts = _Interleaved(watched.facts)
    watched.again()
    peer.again()
    watched.node.cut(FACETS[:1])

    async def look() -> None:
        watched.node.mine(3)
        assert len(await peer.fires()) == 1

    facts.meanwhile = look
    assert await watched.fires() == []
    assert facts.meanwhile is None
    assert await watched.fires() == []
    assert await peer.fires() == []
    watched.node.register(1)
    assert await watched.fires() != []
    assert await peer.fires() == []


async def test_two_watches_write_the_same_keys(watched: Watched) -> None:
    other = Watched()
    other.node = watched.node
    other.again()
    await other.fires()
    watched.node.post(2)
    watched.node.register(1)
    watched.node.cut(FACETS[:1])
    first = await watched.fires()
    watched.node.mine(5)
    assert sorted(await other.fires()) == sorted(first)


async def test_growth_clearing_and_a_full_log_again(watched: Watched) -> None:
    watched.node.post(3)
    assert await watched.fires() == ["log-grew:1:2", "log-changed:1:2"]
    watched.node.clear()
    watched.node.post(3)
    assert await watched.fires() == ["log-grew:3:2", "log-cleared:3:2", "log-changed:3:2"]


async def test_only_subscribers_run(watched: Watched) -> None:
    watched.subscribed = {"log-grew": ("qa-b", "qa-a"), "registered": ()}
    watched.node.post()
    watched.node.register(1)
    await watched.fires()
    assert watched.sink.keys == ["qa-a@log-grew:1:0-00000001", "qa-b@log-grew:1:0-00000001"]
    assert watched.sink.fired[0].why == "log-grew at block 1"


async def test_the_sponsor_is_poor_once_until_it_recovers(watched: Watched) -> None:
    for balance, fires in ((10**16, 1), (1, 0), (10**18, 0), (5, 1)):
        watched.node.mine(balance=balance)
        assert len(await watched.fires()) == fires


async def test_confirmations_hold_back(watched: Watched) -> None:
    watched.again(confirmations=2)
    watched.node.register(1)
    watched.node.mine()
    assert await watched.fires() == []
    watched.node.mine()
    assert await watched.fires() == ["registered:1:0"]


async def test_a_chain_that_is_too_short_is_waited_for() -> None:
    young = Watched()
    young.again(confirmations=3)
    young.node.mine(2)
    await young.watch.look()
    assert KEY not in young.facts


@pytest.mark.parametrize("depth", [1, 3, 8])
async def test_after_a_reorg_the_new_blocks_are_read(watched: Watched, depth: int) -> None:
    watched.node.mine(5)
    await watched.fires()
    for ident in (1, 2, 3):
        watched.node.register(ident)
    await watched.fires()
    watched.node.fork(depth)
    watched.node.register(3)
    watched.node.register(4)
    watched.node.mine(depth)
    fired = await watched.fires()
    assert fired == [f"registered:{10 - depth}:0"]  # 4 is new, 3 fired before
    assert await watched.fires() == []
    assert watched.sink.repeats == []


async def test_entries_that_a_reorg_takes_are_a_change_and_no_clearing(watched: Watched) -> None:
    watched.node.post(4)
    await watched.fires()
    watched.node.fork(1)
    watched.node.post(2)
    assert await watched.fires() == ["log-changed:1:1"]


async def test_a_reorg_beyond_everything_remembered_is_read_again(watched: Watched) -> None:
    watched.node.mine(30)
    watched.again()
    watched.facts.clear()
    await watched.fires()
    watched.node.fork(30)
    watched.node.register(1)
    watched.node.mine(40)
    assert await watched.fires() == ["registered:1:0"]


async def test_a_node_that_is_behind_is_waited_for(watched: Watched) -> None:
    watched.node.mine(3)
    await watched.fires()
    watched.node.mine(3)
    await watched.fires()
    ahead = watched.node.hashes[4:], watched.node.states[4:]
    del watched.node.hashes[4:], watched.node.states[4:]
    with pytest.raises(Unreachable, match="at block 3, but has been at 6 before"):
        await watched.watch.look()
    watched.node.hashes += ahead[0]
    watched.node.states += ahead[1]
    watched.node.register(1)
    assert await watched.fires() == ["registered:7:0"]


async def test_another_chain_starts_over_visibly(watched: Watched) -> None:
    watched.node.post(2)
    await watched.fires()
    watched.node.hashes[0] = f"0x{99:064x}"
    watched.node.mine(2, count=9)
    assert await watched.fires() == []
    assert [skip.reason for skip in watched.sink.skips] == ["the node is on another chain"]
    watched.node.post()
    assert len(await watched.fires()) == 2


async def test_a_limit_on_ranges_is_found_by_halving(watched: Watched) -> None:
    watched.node.span = 7
    watched.node.mine(100)
    watched.node.register(1)
    watched.node.mine(400)
    assert await watched.fires() == ["registered:101:0"]
    tries = watched.node.asked.count("eth_getLogs")
    assert tries < 250


async def test_an_absence_too_long_is_given_up_visibly(watched: Watched) -> None:
    watched.node.register(1)
    watched.node.mine(chain.FAR + 10)
    watched.node.register(2)
    assert await watched.fires() == [f"registered:{chain.FAR + 12}:0"]
    assert watched.sink.skips[0].reason == "blocks 1 to 12 passed unseen: events in them do not fire"


async def test_a_flood_is_cut_visibly(watched: Watched) -> None:
    watched.node.mine()
    for ident in range(chain.CROWD + 5):
        watched.node.emit(REGISTERED, ident=ident + 1)
    assert len(await watched.fires()) == chain.CROWD
    (skip,) = watched.sink.skips
    assert (skip.persona, skip.key) == (EVERYONE, f"*@registered:1:{chain.CROWD}-00000001")
    assert skip.reason.startswith(f"{chain.CROWD + 5} events at once")


@pytest.mark.parametrize("part", ["facets", "count", "eth_getLogs", "eth_getBalance"])
async def test_one_part_that_fails_hides_no_other(watched: Watched, part: str) -> None:
    watched.node.broken[part] = RpcError("execution reverted")
    watched.node.post(2)
    watched.node.emit(REGISTERED, ident=1)
    watched.node.mine(balance=1, facets=FACETS[:1])
    before = len(watched.sink.fired)
    assert await watched.watch.turn() == 5.0
    fired = {firing.key.split("@")[1].split(":")[0] for firing in watched.sink.fired[before:]}
    hidden = {"facets": "facets-changed", "count": "log-grew", "eth_getLogs": "registered"}
    expected = {"facets-changed", "log-grew", "log-changed", "registered", "sponsor-low"}
    expected -= {hidden.get(part, "sponsor-low")} | ({"log-changed"} if part == "count" else set())
    assert fired == expected
    assert len(watched.sink.skips) == 1
    await watched.watch.turn()
    assert len(watched.sink.skips) == 1  # told once
    watched.node.broken.clear()
    await watched.watch.turn()
    late = {firing.key.split("@")[1].split(":")[0] for firing in watched.sink.fired[before:]}
    assert late >= expected | {hidden.get(part, "sponsor-low")}
    assert watched.sink.repeats == []


async def test_an_outage_is_recorded_once_and_asked_less_and_less(watched: Watched) -> None:
    watched.node.broken["eth_blockNumber"] = Unreachable("connection refused")
    waits = [await watched.watch.turn() for _ in range(9)]
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300, 300]
    assert [skip.key for skip in watched.sink.skips] == ["*@chain"]
    assert watched.watch.trouble == "Unreachable: connection refused"
    watched.node.broken.clear()
    watched.node.register(1)
    assert await watched.watch.turn() == 5
    assert watched.watch.trouble == ""
    assert watched.sink.keys == ["qa-a@registered:1:0-00000001"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        [7],
        [{"topics": []}],
        [
            {
                "topics": [REGISTERED, "0x1"],
                "blockNumber": "0x63",
                "blockHash": "0x" + "0" * 64,
                "logIndex": "0x0",
            }
        ],
        [{"topics": [REGISTERED, "0x1"], "blockNumber": "0x1", "blockHash": "0x12", "logIndex": "0x0"}],
    ],
)
async def test_nonsense_for_events_moves_no_cursor(watched: Watched, nonsense: Any) -> None:
    watched.node.register(1)
    good, watched.node._eth_getLogs = watched.node._eth_getLogs, lambda query: nonsense  # type: ignore[method-assign]
    assert await watched.fires() == []
    watched.node._eth_getLogs = good  # type: ignore[method-assign]
    assert await watched.fires() == ["registered:1:0"]


async def test_an_event_that_a_reorg_removed_is_no_event(watched: Watched) -> None:
    watched.node.register(1)
    watched.node.logs[0]["removed"] = True
    assert await watched.fires() == []


class Dying(FiringRecorder):
    """Ends the process, as far as the watch can tell, before or after it recorded a firing."""

    def __init__(self) -> None:
        super().__init__()
        self.die = ""

    async def fire(self, firing: Firing) -> bool:
        die, self.die = self.die, ""
        if die == "before":
            raise KeyboardInterrupt
        taken = await super().fire(firing)
        if die == "after":
            raise KeyboardInterrupt
        return taken


@pytest.mark.parametrize("still", [False, True], ids=["moves", "stands still"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_while_handing_over_the_next_start_hands_over_the_same_keys(
    when: str, still: bool
) -> None:
    sink = Dying()
    watched = Watched(sink)
    await watched.fires()
    watched.node.register(1)
    watched.node.emit(REGISTERED, ident=2)
    sink.die = when
    with pytest.raises(KeyboardInterrupt):
        await watched.watch.look()
    if not still:
        watched.node.fork(1)  # the block is gone when it comes back: the keys still are the stored ones
        watched.node.mine()
    watched.again()
    await watched.watch.look()
    assert sorted(set(sink.keys)) == ["qa-a@registered:1:0-00000001", "qa-a@registered:1:1-00000001"]
    assert len(sink.fired) == 2


@pytest.mark.parametrize("still", [False, True], ids=["moves", "stands still"])
async def test_a_sink_that_takes_nothing_gets_it_later(still: bool) -> None:
    sink = Refusing("qa-a")
    watched = Watched(sink)
    await watched.fires()
    watched.node.register(1)
    assert await watched.watch.turn() == 10
    assert "1 firings wait" in watched.watch.trouble
    sink.refused.clear()
    if not still:
        watched.node.mine()
    assert await watched.watch.turn() == 5
    assert sink.keys == ["qa-a@registered:1:0-00000001"]
    assert await watched.watch.turn() == 5
    assert len(sink.keys) == 1
    assert '"outbox": []' in watched.facts[KEY]


async def test_a_sink_that_raises_for_one_persona_disturbs_no_other() -> None:
    sink = Refusing("qa-a")
    watched = Watched(sink, {"registered": ("qa-a", "qa-b")})
    await watched.fires()
    watched.node.register(1)
    assert await watched.watch.turn() == 5
    assert sink.keys == ["qa-b@registered:1:0-00000001"]
    assert [(skip.persona, skip.key) for skip in sink.skips] == [("qa-a", "qa-a@registered:1:0-00000001")]


async def test_a_damaged_cursor_starts_over_visibly(watched: Watched) -> None:
    watched.facts[KEY] = "{"
    watched.node.register(1)
    assert await watched.fires() == []
    assert watched.sink.skips[0].reason.startswith("starting over: ")
    watched.node.register(2)
    assert await watched.fires() == ["registered:2:0"]


async def test_an_idle_chain_is_asked_little(watched: Watched) -> None:
    watched.node.asked.clear()
    await watched.fires()
    assert "eth_getLogs" not in watched.node.asked
    assert len(watched.node.asked) <= 4


async def test_it_runs_once_and_until_cancelled(watched: Watched) -> None:
    watch = watched.again(every_s=0.01)
    async with running(watch.run):
        with pytest.raises(UsageError, match="already being watched"):
            await watch.run()
        watched.node.register(1)
        await until(lambda: watched.sink.fired)
    assert watched.sink.keys == ["qa-a@registered:1:0-00000001"]


NEVER_S = 1e9


async def test_a_wake_is_a_look_before_its_time(watched: Watched) -> None:
    watch = watched.again(every_s=NEVER_S, gap_s=0.001)
    async with running(watch.run):
        await until(lambda: watched.node.asked)
        watched.node.register(1)
        watch.wake()
        await until(lambda: watched.sink.fired)
    assert watched.sink.keys == ["qa-a@registered:1:0-00000001"]


async def test_a_flood_of_wakes_is_one_look_in_each_gap(watched: Watched) -> None:
    watch = watched.again(every_s=NEVER_S, gap_s=NEVER_S)
    async with running(watch.run):
        await turns()
        watched.node.asked.clear()
        for _ in range(1000):
            watch.wake()
            await turns(1)
    assert watched.node.asked == []  # the gap after the first look is not over


async def test_a_wake_during_a_look_is_not_lost(watched: Watched) -> None:
    watch = watched.again(every_s=NEVER_S, gap_s=0.001)
    answer = watched.node.batch
    late: list[Callable[[], None]] = [watch.wake, lambda: watched.node.register(1)]

    async def slow(calls: Any) -> list[Any]:
        found = await answer(calls)
        while late:
            late.pop()()  # a block that this look does not see
        return found

    watched.node.batch = slow  # type: ignore[method-assign]
    async with running(watch.run):
        await until(lambda: watched.sink.fired)
    assert watched.sink.keys == ["qa-a@registered:1:0-00000001"]


async def test_a_node_in_trouble_is_not_asked_more_often_for_being_woken(watched: Watched) -> None:
    watched.node.broken["eth_blockNumber"] = Unreachable("too many requests")
    watch = watched.again(every_s=NEVER_S, gap_s=0.0)
    watched.node.asked.clear()
    async with running(watch.run):
        await turns()
        asked = len(watched.node.asked)
        for _ in range(20):
            watch.wake()
            await turns(2)
    assert (asked, len(watched.node.asked)) == (1, 1)
