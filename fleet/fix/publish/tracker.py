"""Where people speak of defects: GitHub's issues and pull requests, searched for an item.

First by the item's fingerprint in a body, then by the words of its title, judged as triage judges whether two
texts say the same. A search that fails raises: what was not looked for is not taken as absent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import TypeAdapter

from fleet.errors import TryAgain
from fleet.fix.model import FixTask, TrackerHit
from fleet.fix.publish.body import is_marked
from fleet.fix.publish.github_answers import GitHubFound, GitHubIssue
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.github_operations import SEARCH
from fleet.text import line
from fleet.triage.items.similar import wording

PAGE = 20
"""Results of one search, the best ones."""
WORDS = 5
"""Words of the title of which one is searched for, the longest; GitHub takes five operators."""
_FOUND = TypeAdapter(GitHubFound)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,30}")
_LEADING = frozenset({"and", "or", "not"})
_KINDS = ("issue", "pull-request")


class NoTracker:
    """TrackerPort of a plain git remote: there is nothing to search."""

    async def search(self, task: FixTask) -> Sequence[TrackerHit]:  # noqa: ARG002  the port has it
        """Nothing."""
        return ()


class GitHubTracker:
    """TrackerPort on one repository of GitHub."""

    def __init__(self, api: GitHubApi) -> None:
        self._api = api

    async def search(self, task: FixTask) -> Sequence[TrackerHit]:
        """As TrackerPort: what names the fingerprint first, then what says the same as the title."""
        found: dict[str, GitHubIssue] = {}
        hits: dict[str, TrackerHit] = {}
        for kind in _KINDS:
            for issue in await self._asked(kind, f'"{task.item.fingerprint}" in:body'):
                body = issue.body or ""
                if is_marked(body, task):
                    hits[issue.html_url] = _hit(issue, "a proposal of the fleet for this item")
                elif task.item.fingerprint in body:
                    hits[issue.html_url] = _hit(issue, "names the item's fingerprint")
        words = _words(task.item.title)
        for kind in _KINDS if words else ():
            for issue in await self._asked(kind, f"in:title ({' OR '.join(words)})"):
                found[issue.html_url] = issue
        alike = _alike(task, [issue for ref, issue in found.items() if ref not in hits])
        return [*hits.values(), *alike]

    async def _asked(self, kind: str, what: str) -> Sequence[GitHubIssue]:
        query = {
            "q": f"repo:{self._api.repository} is:{kind} {what}",
            "per_page": str(PAGE),
            "advanced_search": "true",
        }
        found = await self._api.call(SEARCH, _FOUND, query=query)
        if found.incomplete_results:
            raise TryAgain("GitHub's search ended before it had looked everywhere")
        return found.items


def _alike(task: FixTask, issues: Sequence[GitHubIssue]) -> list[TrackerHit]:
    """Those whose title says the same as the item's, the likeliest first."""
    own, hits = wording(task.item.title), list[tuple[float, TrackerHit]]()
    for issue in issues:
        title = wording(issue.title)
        if score := own.similarity(title):
            hits.append((score, _hit(issue, own.why(title, score))))
    return [hit for _, hit in sorted(hits, key=lambda one: -one[0])]


def _hit(issue: GitHubIssue, why: str) -> TrackerHit:
    kind: Literal["issue", "pull-request"] = "issue" if issue.pull_request is None else "pull-request"
    merged = issue.pull_request is not None and issue.pull_request.merged_at is not None
    state: Literal["open", "closed", "merged"] = "merged" if merged else issue.state
    return TrackerHit(kind, issue.html_url, line(issue.title), state, line(why))


def _words(title: str) -> list[str]:
    """The longest words of a title, in its order, in lower case: none is an operator of the search."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(line(title)))
    longest = sorted((word for word in words if word not in _LEADING), key=len, reverse=True)[:WORDS]
    return [word for word in words if word in longest]
