"""Which requests there are at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fleet.errors import FixError
from fleet.fix.publish import github_operations
from fleet.fix.publish.github_operations import CLOSE, OPEN, OPERATIONS, GitHubOperation, permitted
from tests.fix.github_slice import shape


def test_no_request_merges_approves_updates_or_deletes() -> None:
    said = {f"{one.method} {shape(one.path)}" for one in OPERATIONS}
    assert said == {
        "GET /repos/{}/{}/pulls",
        "POST /repos/{}/{}/pulls",
        "PATCH /repos/{}/{}/pulls/{}",
        "POST /repos/{}/{}/pulls/{}/requested_reviewers",
        "POST /repos/{}/{}/issues/{}/labels",
        "GET /repos/{}/{}/issues/{}/comments",
        "POST /repos/{}/{}/issues/{}/comments",
        "GET /search/issues",
    }
    assert {one.method for one in OPERATIONS} == {"GET", "POST", "PATCH"}
    assert (set(CLOSE.fields), dict(CLOSE.fixed)) == ({"state"}, {"state": "closed"})
    assert OPEN.fixed == {"draft": True, "maintainer_can_modify": True}
    assert [one for one in vars(github_operations).values() if isinstance(one, GitHubOperation)] == [
        *OPERATIONS
    ]


@pytest.mark.parametrize(
    ("operation", "number", "query", "fields"),
    [
        (GitHubOperation("merge", "PUT", "/repos/{repository}/pulls/{number}/merge", 200), 1, {}, {}),
        (CLOSE, 1, {}, {"state": "open"}),
        (CLOSE, 1, {}, {"state": "closed", "base": "main"}),
        (CLOSE, 0, {}, {"state": "closed"}),
        (OPEN, 0, {}, {"title": "t", "draft": False, "maintainer_can_modify": True}),
        (OPEN, 0, {"merge": "1"}, {"draft": True, "maintainer_can_modify": True}),
        (OPEN, 3, {}, {"draft": True, "maintainer_can_modify": True}),
    ],
)
def test_what_is_not_in_the_table_is_not_sent(
    operation: GitHubOperation, number: int, query: dict[str, str], fields: dict[str, object]
) -> None:
    with pytest.raises(FixError, match="not a request that may be sent"):
        permitted(operation, number, query, fields)


def test_only_the_api_sends_and_only_after_the_table() -> None:
    """No other file of the rung speaks HTTP to GitHub, and this one asks the table first."""
    room = Path(github_operations.__file__).parents[1]
    senders = [
        path.name
        for path in sorted(room.rglob("*.py"))
        if re.search(r"import .*\b(send|post|get)\b", path.read_text())
    ]
    assert "github_api.py" in senders
    api = (room / "publish" / "github_api.py").read_text()
    assert (api.count("await send("), api.count("self._exchange(")) == (1, 1)
    assert api.index("permitted(operation, number") < api.index("self._exchange(")
    assert "merge" not in re.sub(
        r"merged(_at)?", "", (room / "publish" / "github.py").read_text().partition('"""')[2]
    )
