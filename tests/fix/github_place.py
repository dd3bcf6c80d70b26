"""A publisher of GitHub on its stand-in, and what it publishes."""

from __future__ import annotations

from pathlib import Path

from fleet.fix.model import FixTask, Published
from fleet.fix.ports import by_hand
from fleet.fix.publish.body import commit_message, proposal_body, proposal_title
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from tests.fix.branches import MemoryBranches
from tests.fix.published_task import patch, report, task

BODY, TEXT = proposal_body(task(), report()), proposal_title(task(), report())
MESSAGE = commit_message(task(), report())


def made(of: FixTask, token: Path, branches: MemoryBranches) -> GitHubPublisher:
    section = of.repository.github
    assert section is not None
    return GitHubPublisher(section, GitHubApi(section, TokenFile(token), deadline_s=5, ask=by_hand), branches)


async def published(publisher: GitHubPublisher, of: FixTask) -> Published:
    await publisher.push(of, patch(), MESSAGE)
    return await publisher.open(of, TEXT, BODY)
