"""GitHub's stand-in, a token file for it, a task on it, and its publisher."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.fix.model import FixTask
from fleet.fix.publish.github import GitHubPublisher
from tests.fix.branches import MemoryBranches
from tests.fix.github_place import made
from tests.fix.github_server import TOKEN, GitHubServer, served
from tests.fix.published_task import github, repository, task


@pytest.fixture
async def server() -> AsyncIterator[GitHubServer]:
    async with served(GitHubServer()) as one:
        yield one


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "github.widget"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def of(server: GitHubServer) -> FixTask:
    section = github(server.url, labels=("qa-fleet", "bug"))
    return task(on=repository(github=section, reviewers=("octocat", "acme/owners")))


@pytest.fixture
def publisher(server: GitHubServer, of: FixTask, token: Path) -> GitHubPublisher:
    return made(of, token, MemoryBranches(server.heads))
