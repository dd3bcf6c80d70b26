"""Each act that leaves this machine, and each fence that closes before it or while a slow server has it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from starlette.requests import Request

from fleet.drivers.session import RunOver
from fleet.fix.model import FixTask
from fleet.fix.permission.guard import GuardedPublisher
from fleet.fix.publish.body import marker
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.publish.github import GitHubPublisher
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from fleet.fix.repository.git import Git, GitToken
from tests.fix.git_http import GitHttp, serve_git
from tests.fix.github_server import TOKEN, GitHubServer, served
from tests.fix.homes import FENCES, FixHome, home
from tests.fix.published_task import github
from tests.fix.publisher_stands import fixing
from tests.fix.repositories import Remote, checked, make_remote, task
from tests.fix.tasks import FP, item

pytestmark = pytest.mark.anyio
SLOW_S = 10.0
"""How long a server keeps an act back, unless its client goes."""
BEFORE = {
    "push": "GET /remote.git/info/refs?service=git-upload-pack",
    "pulls/create": "pulls/list",
    "pulls/request-reviewers": "pulls/create",
    "issues/add-labels": "pulls/request-reviewers",
    "issues/create-comment": "issues/list-comments",
    "pulls/update": "issues/create-comment",
}
"""The request that comes last before each act."""
PUSHES = "POST /remote.git/git-receive-pack"
CLOSING = ("issues/create-comment", "pulls/update")
CASES = [
    (act, fence) for act in BEFORE for fence in FENCES if act not in CLOSING or fence in ("stop", "dial")
]
"""A draft of a resolved item is closed without a token, whoever made it."""


@dataclass
class Stand:
    """A fleet's home, a remote by HTTP and GitHub's stand-in, both of which can be slow."""

    home: FixHome
    remote: Remote
    task: FixTask
    http: GitHttp
    github: GitHubServer

    def publisher(self, act: str) -> GuardedPublisher:
        parts: Any = SimpleNamespace(publisher=self._publisher)
        permit = self.home.permit
        return (
            permit.tidier(parts, self.task)
            if act in CLOSING
            else permit.publisher(parts, self.task, run="r1")
        )

    def _publisher(self, of: FixTask, ask: Callable[[], Awaitable[None]]) -> GitHubPublisher:
        path = self.home.state.parent / "token"
        path.write_text(TOKEN)
        path.chmod(0o600)
        token = GitToken(of.repository.url, TOKEN)
        branches = GitRemotePublisher(Git(), self.home.state, token=lambda _: token, ask=ask)
        section = of.repository.github
        assert section is not None
        return GitHubPublisher(section, GitHubApi(section, TokenFile(path), ask=ask), branches)

    def closes(self, at: str, fence: str, *, slow: bool) -> None:
        """Close a fence when this request arrives; a slow server then keeps it until its client goes."""

        def git(said: str, connection: socket.socket) -> bool:
            if said == at:
                FENCES[fence][0](self.home)
            return said != at or not slow or not _gone(connection)

        async def api(name: str, request: Request) -> bool:
            if name == at:
                FENCES[fence][0](self.home)
            return name != at or not slow or not await _left(request)

        self.http.meanwhile, self.github.meanwhile = git, api

    async def act(self, act: str) -> None:
        """Everything that belongs to it, up to where the fence closes."""
        patch = checked(self.task, fixing(), self.remote.head("main"))
        publisher = self.publisher(act)
        if act == "push":
            await publisher.push(self.task, patch, "Fix double")
        elif act in CLOSING:
            await publisher.close(self.task, "the item is fixed")
        else:
            await publisher.open(self.task, "a title", f"a body\n\n{marker(self.task)}\n")

    def done(self) -> set[str]:
        """What the servers have of it."""
        pulls = list(self.github.pulls.values())
        found = {
            "push": self.remote.head(self.task.branch),
            "pulls/create": pulls,
            "pulls/request-reviewers": [one for one in pulls if one["requested_reviewers"]],
            "issues/add-labels": [one for one in pulls if one["labels"]],
            "issues/create-comment": self.github.comments,
            "pulls/update": [one for one in pulls if one["state"] == "closed"],
        }
        return {name for name, there in found.items() if there}


def _gone(connection: socket.socket) -> bool:
    connection.settimeout(SLOW_S)
    with suppress(TimeoutError):
        return connection.recv(1, socket.MSG_PEEK) == b""
    return False


async def _left(request: Request) -> bool:
    with anyio.move_on_after(SLOW_S):
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return True
    return False


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    remote = make_remote(tmp_path)
    with serve_git(tmp_path, token=TOKEN) as http:
        async with served(GitHubServer(bare=remote.bare)) as server, home(tmp_path) as made:
            of = task(f"{http.url}/remote.git")
            section = github(server.url, labels=("qa-fleet",))
            on = of.repository.model_copy(update={"github": section, "reviewers": ("octocat",)})
            of = replace(of, item=item(), branch=f"qa-fleet/{FP}", repository=on, run="r1")
            yield Stand(made, remote, of, http, server)


async def prepared(stand: Stand, act: str) -> set[str]:
    """What comes before the act has happened; what the servers have then."""
    if act != "push":
        await stand.act("push")
    if act in CLOSING:
        await stand.act("pulls/create")
    if act == "pulls/update":
        stand.github.comments.clear()
    return stand.done()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("act", "fence"), CASES)
async def test_a_fence_that_closes_right_before_an_act(stand: Stand, act: str, fence: str) -> None:
    before = await prepared(stand, act)
    stand.closes(BEFORE[act], fence, slow=False)
    with pytest.raises(RunOver, match=fence) as over:
        await stand.act(act)
    assert over.value.outcome == FENCES[fence][1]
    steps = list(BEFORE)
    assert act not in stand.done() - before
    assert not stand.done() & set(steps[steps.index(act) :])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("act", "fence"), CASES)
async def test_a_fence_that_closes_while_a_slow_server_has_it(stand: Stand, act: str, fence: str) -> None:
    """The server acts once its wait is over, if its client is still there then."""
    await prepared(stand, act)
    stand.closes(PUSHES if act == "push" else act, fence, slow=True)
    with pytest.raises(RunOver, match=fence):
        await stand.act(act)
    steps = list(BEFORE)
    assert not stand.done() & set(steps[steps.index(act) :])
