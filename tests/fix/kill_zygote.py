"""Forks processes that propose one fix, over real journals, trees and remotes; each dies where it is told.

Only the gate's findings, the chain's log (a file) and the tracker are doubles. Steps are counted: every write
of the journal, every git command of trees and publisher, and each post to the log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fleet.store.sql.postgres  # noqa: F401 -- not once per process
from fleet.config import FleetConfig, StoreSection
from fleet.drivers.session import RunOver
from fleet.errors import FleetError
from fleet.fix.model import CheckedPatch, FixTask, GateReport, StepResult
from fleet.fix.parts import ProposalTexts
from fleet.fix.ports import Ask, Fixer, PublisherPort, TreeCommand, TreeJailPort, Trees
from fleet.fix.publish.body import marker
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from fleet.fix.remains import clear_remains
from fleet.fix.repository.git import Git, GitToken
from fleet.fix.repository.trees import GitTrees
from fleet.runs.proof.item_questions import ItemQuestion
from fleet.store.failpoints import about, step
from fleet.store.journal import Journal
from fleet.store.rows import OPEN_PROPOSALS
from tests.crash.forking import serve
from tests.doubles.fix import MemoryParts
from tests.fix.homes import PASSED, FixHome, MemoryFeedback
from tests.fix.published_task import github
from tests.fix.repositories import FIXED, checked, task
from tests.fix.tasks import FP, item

CANARY = "github_pat_canary7Qx0000000000000000000000000000"
CALLS = 20
STALLED_S = 2
"""How soon a turn of the dead ends: the least that can be configured."""


@dataclass(frozen=True)
class Life:
    """What `life.json` of a state directory says: where things are, and who this process is."""

    place: str
    remote: str
    shared: str
    """The folder in which the log and the tokens of persons are."""
    me: str = ""
    api: str = ""


class CountedGit(Git):
    """Each command is a step."""

    async def run(self, *words: str, **more: Any) -> bytes:
        about(f"git.{words[0]}")
        done = await super().run(*words, **more)
        step(f"git.{words[0]}")
        return done


@dataclass
class FileFeedback(MemoryFeedback):
    """A log in a file; a post is there, or not."""

    path: Path = Path()

    def __post_init__(self) -> None:
        if self.path.exists():
            self.texts = [json.loads(line) for line in self.path.read_text().splitlines()]

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        self.__post_init__()
        return await super().find(text, sender, since=since)

    async def post(self, text: str, *, run: str = "", charge: str = "reports") -> Any:
        about("log.post")
        with self.path.open("a") as file:
            file.write(json.dumps(text) + "\n")
        self.__post_init__()
        step("log.post")
        return SimpleNamespace(index=len(self.texts) - 1)


@dataclass
class RealParts(MemoryParts):
    """Real trees and publishers; the gate's steps pass, on a real tree, with a checked patch."""

    state: Path = Path()
    life: Life = field(default_factory=lambda: Life("", "", ""))

    def publisher(self, task: FixTask, ask: Ask) -> PublisherPort:
        branches = GitRemotePublisher(CountedGit(), self.state, token=_token, ask=ask)
        if task.repository.github is None:
            return branches
        path = Path(self.life.shared) / "github"
        return GitHubPublisher(
            task.repository.github, GitHubApi(task.repository.github, TokenFile(path), ask=ask), branches
        )

    def trees(self, task: FixTask, folder: Path) -> Trees:
        return GitTrees(CountedGit(), self.state, token=_token)

    def texts(self, task: FixTask, report: GateReport, patch: CheckedPatch) -> ProposalTexts:
        return ProposalTexts("double adds one", f"A machine wrote this.\n\n{marker(task)}", "Fix double")

    async def gate(
        self,
        task: FixTask,
        *,
        trees: Trees,
        jails: TreeJailPort,
        fixer: Fixer,
        note: Callable[[StepResult], None],
        question: ItemQuestion | None = None,
    ) -> GateReport:
        async with trees.open(task) as tree:
            for one in PASSED:
                await jails.run(tree.path, TreeCommand(("true",), deadline_s=1.0))
                note(one)
            await tree.put("src/double.py", FIXED.encode())
            return GateReport(PASSED, checked(task, await tree.diff(), tree.base), 1)


def _token(task: FixTask) -> GitToken:
    return GitToken("https://example.org/", CANARY)


class KilledHome(FixHome):
    """A FixWorld of one process on a journal that may be shared; `me` is its daemon's name."""

    @property
    def source(self) -> Any:
        async def mine(run: str) -> bool:
            return (await self.journal.run(run)).daemon == self.me

        return SimpleNamespace(mine=mine)

    @property
    def tokens(self) -> Path:
        return self.log.path.parent / "allow"  # type: ignore[attr-defined,no-any-return]


async def settle(state: Path) -> None:
    """What a start does: clean up, end the runs of the dead, settle their proposals."""
    await _start(state, proposing=False)


async def propose(state: Path) -> None:
    """The same; then propose while nothing is open."""
    await _start(state, proposing=True)


async def _start(state: Path, *, proposing: bool) -> None:
    (state / "pid").write_text(str(os.getpid()))
    life = Life(**json.loads((state / "life.json").read_text()))
    async with await Journal.open(life.place, keeper=life.me) as journal:
        here = _home(state, life, journal)
        await clear_remains(state)
        for row in await journal.queued_runs():
            await journal.finish(row.run_id, "cancelled", "never begun")
        for row in await journal.open_runs():
            await journal.adopt(row.run_id, daemon=life.me)
            await journal.finish(row.run_id, "interrupted")
        await here.upkeep.settle()
        if proposing and not await journal.proposals("p", states=OPEN_PROPOSALS):
            run = f"r{len(await journal.runs()) + 1}"
            try:
                await here.propose(run, item(FP))
            except (RunOver, FleetError) as over:
                print(f"{life.me}: {over!r}", flush=True)


def _home(state: Path, life: Life, journal: Journal) -> KilledHome:
    repository = task(life.remote).repository
    if life.api:
        repository = repository.model_copy(update={"github": github(life.api)})
    config = FleetConfig(repositories={"sample": repository}, store=StoreSection(stalled_s=STALLED_S))
    parts = RealParts(steps=PASSED, state=state, life=life)
    log = FileFeedback(path=Path(life.shared) / "log.jsonl")
    return KilledHome(state, journal, parts, log, config, me=life.me)


if __name__ == "__main__":
    serve({"propose": propose, "settle": settle})
