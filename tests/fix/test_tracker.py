"""Issues and pull requests about the same defect are found, by fingerprint and by what their title says."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.responses import JSONResponse

from fleet.errors import FixError, TryAgain
from fleet.fix.publish.body import proposal_body
from fleet.fix.publish.github_api import GitHubApi
from fleet.fix.publish.token import TokenFile
from fleet.fix.publish.tracker import GitHubTracker, NoTracker
from tests.fix.github_server import TOKEN, GitHubServer
from tests.fix.published_task import FINGERPRINT, github, report, task

pytestmark = pytest.mark.anyio


@pytest.fixture
def tracker(server: GitHubServer, tmp_path: Path) -> GitHubTracker:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return GitHubTracker(GitHubApi(github(server.url), TokenFile(token)))


async def test_a_plain_remote_has_nothing_to_search() -> None:
    assert list(await NoTracker().search(task())) == []


async def test_what_speaks_of_the_item_is_found_best_first(
    server: GitHubServer, tracker: GitHubTracker
) -> None:
    server.add_issue(title="The compiler is slow on Windows", body="")
    server.add_issue(title="Compiler panic: empty enum", body="", state="closed")
    server.add_issue(title="lexer", body=f"see {FINGERPRINT}")
    server.add_pull(
        "x", title="qa-fleet: y", body=proposal_body(task(), report()), state="closed", merged_at="2026"
    )
    server.add_pull("y", title="the compiler panics on an empty enum", body="mine")
    hits = [
        (hit.kind, hit.ref.rpartition("/")[2], hit.state, hit.why) for hit in await tracker.search(task())
    ]
    assert hits[:2] == [
        ("issue", "3", "open", "names the item's fingerprint"),
        ("pull-request", "4", "merged", "a proposal of the fleet for this item"),
    ]
    assert [hit[:3] for hit in hits[2:]] == [("pull-request", "5", "open"), ("issue", "2", "closed")]
    assert server.asked == {"search/issues-and-pull-requests": 4}


@pytest.mark.parametrize(
    "title", ["", "\u202e \x00", 'a" OR repo:other/x is:pr ("', "NOT or AND", "x" * 9_000]
)
async def test_a_hostile_title_stays_a_title(
    server: GitHubServer, tracker: GitHubTracker, title: str
) -> None:
    server.add_issue(title="unrelated", body="")
    assert await tracker.search(task(title=title)) == []
    assert server.asked.total() in (2, 4)


async def test_a_hostile_hit_is_shown_as_text(server: GitHubServer, tracker: GitHubTracker) -> None:
    server.add_issue(title="a\x1b[31m\nb\u202e" + "z" * 9_000, body=FINGERPRINT)
    (hit,) = await tracker.search(task())
    assert (hit.title[:4], len(hit.title)) == ("a bz", 200)


async def test_a_search_that_failed_is_no_absence(server: GitHubServer, tracker: GitHubTracker) -> None:
    name = "search/issues-and-pull-requests"
    server.faults[name] = [JSONResponse({"total_count": 0, "incomplete_results": True, "items": []})]
    with pytest.raises(TryAgain, match="before it had looked everywhere"):
        await tracker.search(task())
    server.faults[name] = [JSONResponse({"message": "Validation Failed"}, 422)]
    with pytest.raises(FixError, match="422"):
        await tracker.search(task())
