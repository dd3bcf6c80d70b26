"""Publishes proposals as draft pull requests on GitHub: the branch by git, all else by its REST API.

Idempotent by branch. A request is ours when its body has the item's marker line; one that a person opened
from our branch is taken as the proposal, and never closed. A closed request stays closed: while the branch
holds the same commit, no other one is opened for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from fleet.config.propose import GitHubSection
from fleet.errors import FixError, FleetError
from fleet.fix.model import CheckedPatch, FixTask, Published, StepResult
from fleet.fix.ports import PublisherPort
from fleet.fix.publish.body import answering_comment, answers, closing_comment, is_marked
from fleet.fix.publish.github_answers import GitHubComment, GitHubPull
from fleet.fix.publish.github_api import GitHubApi, RateLimited
from fleet.fix.publish.github_operations import (
    ASK,
    CLOSE,
    COMMENT,
    COMMENTS,
    LABEL,
    LIST,
    OPEN,
    GitHubOperation,
)

PAGE, PAGES = 100, 20
"""Comments of one page, GitHub's most, and pages that are read."""
_PULL = TypeAdapter(GitHubPull)
_PULLS = TypeAdapter(list[GitHubPull])
_MADE_COMMENT = TypeAdapter(GitHubComment)
_COMMENTS = TypeAdapter(list[GitHubComment])
_UNREAD = TypeAdapter(object)


@dataclass(frozen=True, slots=True)
class _Standing:
    """What is there: our branch, if it exists, and the pull request that counts for it."""

    branch: Published | None
    pull: GitHubPull | None
    ours: bool = False


class GitHubPublisher:
    """PublisherPort; `branches` publishes to the same repository by git, and only to our branches."""

    def __init__(self, section: GitHubSection, api: GitHubApi, branches: PublisherPort) -> None:
        self._section, self._api, self._branches = section, api, branches

    async def find(self, task: FixTask) -> Published | None:
        """As PublisherPort: the pull request of the branch, or the branch alone (`pushed`)."""
        return _published(task, await self._look(task))

    async def push(self, task: FixTask, patch: CheckedPatch, message: str) -> Published:
        """As PublisherPort, by git."""
        return replace(await self._branches.push(task, patch, message), state="pushed")

    async def open(self, task: FixTask, title: str, body: str) -> Published:
        """As PublisherPort. Whatever the answer to opening was, what is there afterwards counts."""
        if not is_marked(body, task):
            raise FixError("the body of a proposal has no marker line: it could not be found again")
        found = await self._look(task)
        if found.pull is None:
            if found.branch is None:
                raise FixError(f"{task.branch} is not on {self._section.repository}: it must be pushed first")
            if not found.branch.ours:
                raise FixError(f"{task.branch} holds commits of others", remedy="look at the branch there")
            if found.branch.state != "merged":
                found = await self._opened(task, title, body, found)
        if found.pull is not None and found.ours and found.pull.outcome == "open":
            await self._dress(task, found.pull)
        published = _published(task, found)
        assert published is not None
        return published

    async def close(self, task: FixTask, why: str) -> Published | None:
        """As PublisherPort. A request that a person opened from our branch stays, and so does the branch."""
        found = await self._look(task)
        if found.pull is None:
            return await self._branches.close(task, why) if found.branch is not None else None
        if not found.ours:
            return None
        pull = found.pull
        if pull.outcome == "open":
            if not any(is_marked(one.body, task) for one in await self._comments(pull.number)):
                await self._api.call(
                    COMMENT, _MADE_COMMENT, number=pull.number, body=closing_comment(task, why)
                )
            pull = await self._api.call(CLOSE, _PULL, number=pull.number, state="closed")
        if found.branch is not None:
            await self._branches.close(task, why)
        return _published(task, _Standing(found.branch, pull, ours=True))

    async def answer(self, task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
        """As PublisherPort: one more comment on the request; whether that comment exists is not asked."""
        found = await self._look(task)
        if found.pull is None or not found.ours or found.pull.outcome != "open":
            raise FixError("there is no open draft of ours", remedy="fleet propose list")
        number = found.pull.number
        for one in await self._comments(number):
            if answers(one.body, task, comment):
                return one.html_url
        text = answering_comment(task, comment, steps)
        return (await self._api.call(COMMENT, _MADE_COMMENT, number=number, body=text)).html_url

    async def _look(self, task: FixTask) -> _Standing:
        branch = await self._branches.find(task)
        owner = self._section.repository.partition("/")[0]
        query = {"head": f"{owner}:{task.branch}", "state": "all", "per_page": "30"}
        listed = await self._api.call(LIST, _PULLS, query=query)
        mine = [pull for pull in listed if self._is_from(pull, task)]
        marked = [pull for pull in mine if is_marked(pull.body or "", task)]
        head = branch.head if branch is not None else ""
        pull = _counting(marked, mine, head)
        return _Standing(branch, pull, ours=pull in marked)

    async def _comments(self, number: int) -> list[GitHubComment]:
        """All comments on a request, the oldest first; FixError when there are more than are read."""
        found: list[GitHubComment] = []
        for page in range(1, PAGES + 1):
            query = {"per_page": str(PAGE), "page": str(page)}
            there = await self._api.call(COMMENTS, _COMMENTS, number=number, query=query)
            found += there
            if len(there) < PAGE:
                return found
        raise FixError(f"request {number} has more than {len(found)} comments", remedy="answer it by hand")

    def _is_from(self, pull: GitHubPull, task: FixTask) -> bool:
        """Whether a request comes from our branch of this very repository, not from a fork's."""
        repository = pull.head.repo.full_name if pull.head.repo is not None else ""
        return pull.head.ref == task.branch and repository.lower() == self._section.repository.lower()

    async def _opened(self, task: FixTask, title: str, body: str, found: _Standing) -> _Standing:
        try:
            pull = await self._api.call(
                OPEN,
                _PULL,
                title=title,
                body=body,
                head=task.branch,
                base=task.repository.branch,
                draft=True,
                maintainer_can_modify=True,
            )
        except RateLimited:
            raise
        except FleetError as error:
            again = await self._look(task)  # a peer may have opened it, or the answer was lost
            if again.pull is None:
                raise error
            return again
        return _Standing(found.branch, pull, ours=True)

    async def _dress(self, task: FixTask, pull: GitHubPull) -> None:
        """Ask for reviews, then add the labels: once the labels are there, both were done."""
        there = {label.name.casefold() for label in pull.labels}
        if self._section.labels and there.issuperset(label.casefold() for label in self._section.labels):
            return
        people = [name for name in task.repository.reviewers if "/" not in name]
        teams = [name.partition("/")[2] for name in task.repository.reviewers if "/" in name]
        if people or teams:
            await self._tried(ASK, pull, reviewers=people, team_reviewers=teams)
        if self._section.labels:
            await self._tried(LABEL, pull, labels=list(self._section.labels))

    async def _tried(self, operation: GitHubOperation, pull: GitHubPull, **fields: Any) -> None:  # noqa: ANN401  an operation's own fields
        """What helps people to find a request does not decide whether there is one."""
        try:
            await self._api.call(operation, _UNREAD, number=pull.number, **fields)
        except FleetError:
            return


def _counting(marked: Sequence[GitHubPull], mine: Sequence[GitHubPull], head: str) -> GitHubPull | None:
    """The request that counts, of lists with the newest first: an open one, ours before others'; else ours
    of the branch's present commit; without a branch, our newest."""
    for listed in (marked, mine):
        for pull in listed:
            if pull.outcome == "open":
                return pull
    return next((pull for pull in marked if pull.head.sha == head or not head), None)


def _published(task: FixTask, found: _Standing) -> Published | None:
    if found.pull is not None:
        head = found.branch.head if found.branch is not None else found.pull.head.sha
        conflicts = found.branch is not None and found.branch.conflicts
        return Published(found.pull.html_url, task.branch, head, found.pull.outcome, conflicts=conflicts)
    if found.branch is None or found.branch.state == "merged":
        return found.branch
    return replace(found.branch, state="pushed")
