"""The ports of a proposal as they are configured: trees, jails, fixer, gate, publisher, tracker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fleet.app.bootstrap import SPOOL
from fleet.config import FleetConfig, Platform
from fleet.config.files import github_file
from fleet.fix.fixers.choice import open_fixer
from fleet.fix.gate.gate import fix_gate
from fleet.fix.gate.variants import make_variants
from fleet.fix.jails.tree_jail import TreeJails
from fleet.fix.model import CheckedPatch, FixTask, GateReport, StepResult
from fleet.fix.parts import FixParts, ProposalTexts
from fleet.fix.ports import Ask, FixBudget, Fixer, PublisherPort, TrackerPort, TreeJailPort, Trees, unasked
from fleet.fix.publish.body import commit_message, proposal_body, proposal_title
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from fleet.fix.publish.tracker import GitHubTracker, NoTracker
from fleet.fix.repository.git import Git, GitToken
from fleet.fix.repository.patch_rules import check_patch
from fleet.fix.repository.trees import GitTrees
from fleet.gate.dial import DIAL, rung_word
from fleet.jail.choice import open_jail
from fleet.jail.model import Image, Jail
from fleet.runs.proof.item_questions import ItemQuestion


@dataclass(frozen=True, slots=True)
class ConfiguredParts:
    """Implements FixParts. A token is read from its file when git or the API needs it; no fixer does."""

    config: FleetConfig
    platform: Platform
    state: Path

    def publisher(self, task: FixTask, ask: Ask) -> PublisherPort:
        branches = GitRemotePublisher(Git(), self.state, token=self._git_token, ask=ask)
        section = task.repository.github
        return branches if section is None else GitHubPublisher(section, self._api(task, ask), branches)

    def tracker(self, task: FixTask) -> TrackerPort:
        return NoTracker() if task.repository.github is None else GitHubTracker(self._api(task))

    def trees(self, task: FixTask, folder: Path) -> Trees:  # noqa: ARG002  the port has it
        return GitTrees(Git(), self.state, token=self._git_token)

    @asynccontextmanager
    async def jails(self, task: FixTask, folder: Path) -> AsyncIterator[TreeJailPort]:  # noqa: ARG002  the port has it
        yield TreeJails(self._jail, self.platform)

    def fixer(self, task: FixTask, budget: FixBudget) -> Fixer:  # noqa: ARG002  the port has it
        return open_fixer(self.config, self.state, budget, rung=partial(rung_word, self.state / DIAL))

    def texts(self, task: FixTask, report: GateReport, patch: CheckedPatch) -> ProposalTexts:  # noqa: ARG002  the port has it
        return ProposalTexts(
            proposal_title(task, report), proposal_body(task, report), commit_message(task, report)
        )

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
        return await fix_gate(
            task,
            trees=trees,
            jails=jails,
            fixer=fixer,
            platform=self.platform,
            check_patch=check_patch,
            make_variants=make_variants,
            note=note,
            question=question,
        )

    def _jail(self, image: Image) -> Jail:
        return open_jail(self.config.jail, image, pool=0, spool=self.state / SPOOL)

    def _api(self, task: FixTask, ask: Ask = unasked) -> GitHubApi:
        assert task.repository.github is not None
        return GitHubApi(task.repository.github, self._token(task), ask=ask)

    def _token(self, task: FixTask) -> TokenFile:
        path = github_file(self.config, task.name, self.state)
        assert path is not None
        return TokenFile(path)

    def _git_token(self, task: FixTask) -> GitToken | None:
        if task.repository.github is None:
            return None
        return GitToken(task.repository.url, self._token(task).read())


def fix_parts(config: FleetConfig, platform: Platform, state: Path) -> FixParts:
    """The parts for a platform; what is missing is a ConfigError where it is needed."""
    return ConfiguredParts(config, platform, state)
