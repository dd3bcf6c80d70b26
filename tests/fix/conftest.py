"""The home of a fleet that proposes; GitHub's stand-in, a token file for it, a task on it, its publisher."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.fix.model import FixTask
from fleet.fix.publish.github import GitHubPublisher
from tests.fix.branches import MemoryBranches
from tests.fix.github_server import TOKEN, GitHubServer, served
from tests.fix.homes import FixHome, home
from tests.fix.published_task import github, made, task
from tests.fix.repositories import ProposalPlace, make_remote
from tests.fix.repositories import task as on_remote
from tests.fix.tasks import repository


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[FixHome]:
    async with home(tmp_path) as one:
        yield one


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


@pytest.fixture
def near(tmp_path: Path) -> ProposalPlace:
    """A task on a remote by file://."""
    remote = make_remote(tmp_path)
    return ProposalPlace(remote=remote, task=on_remote(remote.url), state=tmp_path / "state")
