"""The mirror against a model of the log, whatever happens to it, with two followers and restarts."""

from __future__ import annotations

import itertools
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fleet.chain.node.codec import Entry
from fleet.store.journal import Journal
from fleet.triage.log.mirror import MirrorState, follow
from tests.triage.triage_log import ScriptedLog

Value = TypeVar("Value")
NAME = "1:0xaa"
SENDER = "0x" + "11" * 20


class LaggingLog(ScriptedLog):
    """A node that shows the last `hidden` entries not yet, and at most `cap` entries at once."""

    hidden = 0
    cap = 1_000

    @property
    def shown(self) -> list[Entry]:
        return self.entries[: len(self.entries) - self.hidden]

    async def count(self) -> int:
        return len(self.shown)

    async def range(self, start: int, count: int, /) -> list[Entry]:
        return self.shown[start : start + min(count, self.cap)]


class MirrorMachine(RuleBasedStateMachine):
    """`epochs` is what the mirror must hold: a list for each stretch, the current one last."""

    @initialize(page=st.integers(1, 9), cap=st.sampled_from([1, 3, 1_000]))
    def begin(self, page: int, cap: int) -> None:
        self.folder = TemporaryDirectory()
        self.blocking = start_blocking_portal()
        self.portal: BlockingPortal = self.blocking.__enter__()
        self.place = Path(self.folder.name) / "fleet.db"
        self.journal = self.do(Journal.open(self.place))
        self.other = self.do(Journal.open(self.place))
        self.log, self.page, self.serial = LaggingLog(), page, itertools.count(1)
        self.log.cap = cap
        self.past: list[list[Entry]] = []
        self.mirrored: list[Entry] = []

    def do(self, work: Coroutine[Any, Any, Value]) -> Value:
        async def run() -> Value:
            return await work

        return self.portal.call(run)

    def entry(self, words: str) -> Entry:
        return Entry(SENDER, next(self.serial), words)

    def pass_(self, journal: Journal, patience_s: float = 0) -> MirrorState:
        return self.do(follow(self.log, journal, name=NAME, page=self.page, patience_s=patience_s))

    @rule(count=st.integers(1, 70), words=st.sampled_from(["a", "b"]))
    def append(self, count: int, words: str) -> None:
        self.log.entries += [self.entry(words) for _ in range(count)]

    @rule(grown=st.integers(0, 50))
    def clear(self, grown: int) -> None:
        self.log.entries = [self.entry("after") for _ in range(grown)]

    @precondition(lambda self: len(self.log.entries) > 1)
    @rule(data=st.data(), grown=st.integers(0, 60), keeps_last=st.booleans())
    def reorganise(self, data: st.DataObject, grown: int, keeps_last: bool) -> None:
        """At any depth but the whole log; the last entry may keep its place, as in a reordered block."""
        self.follow()
        depth = data.draw(st.integers(1, len(self.log.entries) - 1))
        gone = self.log.entries[-depth:]
        self.log.entries = self.log.entries[:-depth] + [self.entry("fork") for _ in range(grown)]
        if keeps_last and grown >= depth:
            self.log.entries[len(self.log.entries) - grown + depth - 1] = gone[-1]

    @precondition(lambda self: bool(self.past))
    @rule(grown=st.integers(0, 9))
    def undo_clear(self, grown: int) -> None:
        """A reorganisation that drops the block of the last clear."""
        self.follow()
        if self.past:  # the pass before may have met the last one
            self.log.entries = self.past[-1] + [self.entry("undone") for _ in range(grown)]

    @precondition(lambda self: len(self.log.entries) > 1)
    @rule(data=st.data())
    def lag(self, data: st.DataObject) -> None:
        """A replica that is behind says nothing about what was mirrored."""
        self.follow()
        self.log.hidden = data.draw(st.integers(1, len(self.log.entries) - 1))
        before = self.do(self.journal.entries())
        done = self.pass_(self.journal, patience_s=3600)
        assert (done.new, done.rewinds, done.resets) == (0, 0, 0)
        assert done.behind == self.log.hidden
        assert self.do(self.journal.entries()) == before
        self.log.hidden = 0

    @rule()
    def restart(self) -> None:
        self.do(self.journal.aclose())
        self.journal = self.do(Journal.open(self.place))

    @rule()
    def follow(self) -> None:
        self.expect(self.pass_(self.journal))

    @rule()
    def second_follower(self) -> None:
        self.expect(self.pass_(self.other))

    @rule()
    def both_at_once(self) -> None:
        async def one(journal: Journal) -> None:
            await follow(self.log, journal, name=NAME, page=self.page, patience_s=0)

        async def both() -> None:
            async with anyio.create_task_group() as group:
                for journal in (self.journal, self.other):
                    group.start_soon(one, journal)

        self.do(both())
        self.follow()

    def expect(self, done: MirrorState) -> None:
        """What the model says of a log that was read to its end."""
        held, now = self.mirrored, self.log.entries
        if now[:1] != held[:1]:
            if now and self.past and now[0] == self.past[-1][0]:
                self.past.pop()
            elif held:
                self.past.append(held)
        self.mirrored = list(now)
        assert (done.epoch, done.next_index) == (len(self.past), len(now))
        kept: list[list[Entry]] = [[] for _ in range(done.epoch + 1)]
        for one in self.do(self.journal.entries()):
            assert one.index == len(kept[one.epoch])
            kept[one.epoch].append(Entry(one.sender, one.timestamp, one.text))
        assert kept == [*self.past, self.mirrored]

    @invariant()
    def the_chain_of_hashes_holds(self) -> None:
        for one in self.do(self.journal.epochs()):
            assert self.do(self.journal.first_broken(one.epoch)) is None

    def teardown(self) -> None:
        if hasattr(self, "portal"):
            for journal in (self.journal, self.other):
                self.do(journal.aclose())
            self.blocking.__exit__(None, None, None)
            self.folder.cleanup()


MirrorMachine.TestCase.settings = settings(
    max_examples=20, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMirrorMachine = MirrorMachine.TestCase
