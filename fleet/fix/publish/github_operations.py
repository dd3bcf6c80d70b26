"""Every request that the fleet may send to GitHub: this table, and nothing beside it.

None of them merges, approves, marks a draft as ready, updates a branch, or deletes. A fine-grained token
needs: contents read-write (git pushes the branch), pull requests read-write (all else here), metadata read.
GitHub has no right to push without the right to merge: contents read-write also merges through the API and
pushes to unprotected branches. That the fleet does neither is this table and the git publisher's own branch
names; that nothing else with the token can is for the repository's rules: protect the base branch, require a
review, and leave the token's account off the list of those who may pass them by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleet.errors import FixError


@dataclass(frozen=True, slots=True)
class GitHubOperation:
    """One request: `fields` of its JSON body, `query` names, the status of success, what it does in words.

    A value in `fixed` is the only one that the field may have.
    """

    words: str
    method: str
    path: str
    success: int
    query: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    fixed: Mapping[str, Any] = field(default_factory=dict)


def _operation(
    words: str,
    request: str,
    success: int,
    *,
    query: str = "",
    fields: str = "",
    **fixed: Any,  # noqa: ANN401  an operation's own fields
) -> GitHubOperation:
    method, _, path = request.partition(" ")
    names = frozenset((*fields.split(), *fixed))
    return GitHubOperation(words, method, path, success, frozenset(query.split()), names, fixed)


LIST = _operation(
    "list the pull requests of a branch", "GET /repos/{repository}/pulls", 200, query="head state per_page"
)
OPEN = _operation(
    "open a draft pull request",
    "POST /repos/{repository}/pulls",
    201,
    fields="title body head base",
    draft=True,
    maintainer_can_modify=True,
)
CLOSE = _operation("close a draft", "PATCH /repos/{repository}/pulls/{number}", 200, state="closed")
ASK = _operation(
    "ask for a review",
    "POST /repos/{repository}/pulls/{number}/requested_reviewers",
    201,
    fields="reviewers team_reviewers",
)
LABEL = _operation("add labels", "POST /repos/{repository}/issues/{number}/labels", 200, fields="labels")
COMMENT = _operation("comment", "POST /repos/{repository}/issues/{number}/comments", 201, fields="body")
COMMENTS = _operation(
    "list comments", "GET /repos/{repository}/issues/{number}/comments", 200, query="per_page page"
)
SEARCH = _operation("search", "GET /search/issues", 200, query="q per_page advanced_search")

OPERATIONS = (LIST, OPEN, CLOSE, ASK, LABEL, COMMENT, COMMENTS, SEARCH)


def permitted(
    operation: GitHubOperation, number: int, query: Mapping[str, str], fields: Mapping[str, Any]
) -> GitHubOperation:
    """The operation, if it is in the table and the request keeps to it; FixError otherwise."""
    fits = (
        any(operation is one for one in OPERATIONS)
        and (number > 0) == ("{number}" in operation.path)
        and query.keys() <= operation.query
        and fields.keys() <= operation.fields
        and all(fields.get(name) == value for name, value in operation.fixed.items())
    )
    if not fits:
        raise FixError(f"not a request that may be sent to GitHub: {operation.words}")
    return operation
