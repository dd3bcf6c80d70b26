"""Draft pull requests on a stand-in for GitHub: once each, never merged, nothing of others changed."""

from __future__ import annotations

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from fleet.errors import FixError, TryAgain
from fleet.fix.model import FixTask, GateStep, Published, StepResult
from fleet.fix.publish.body import closing_comment, is_marked
from fleet.fix.publish.github import GitHubPublisher
from tests.fix.github_server import GitHubServer
from tests.fix.published_task import BODY, MESSAGE, TEXT, patch, published

pytestmark = pytest.mark.anyio
STEPS = (StepResult(GateStep.OWN_TESTS, True, "its own tests pass"),)


async def test_a_draft_is_opened_once_with_labels_and_reviewers(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    assert await publisher.find(of) is None
    pushed = await publisher.push(of, patch(), MESSAGE)
    assert await publisher.find(of) == pushed
    opened = await publisher.open(of, TEXT, BODY)
    assert opened == Published(f"{server.url}/acme/widget/pull/1", of.branch, pushed.head, "open")
    assert await publisher.open(of, TEXT, BODY) == await publisher.find(of) == opened
    (pull,) = server.pulls.values()
    assert (pull["draft"], pull["title"], pull["body"], pull["base"]["ref"]) == (True, TEXT, BODY, "main")
    assert [label["name"] for label in pull["labels"]] == ["qa-fleet", "bug"]
    assert server.asked["pulls/create"] == server.asked["issues/add-labels"] == 1
    asked = [body for name, body in server.bodies if name == "pulls/request-reviewers"]
    assert asked == [{"reviewers": ["octocat"], "team_reviewers": ["owners"]}]


async def test_labels_and_reviewers_that_are_refused_change_nothing(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    for name in ("issues/add-labels", "pulls/request-reviewers"):
        server.faults[name] = [JSONResponse({"message": "Reviews may only be requested"}, 422)]
    assert (await published(publisher, of)).state == "open"
    assert server.asked["issues/add-labels"] == 1
    assert (await publisher.open(of, TEXT, BODY)).state == "open"  # and they are tried again
    assert [label["name"] for label in server.pulls[1]["labels"]] == ["qa-fleet", "bug"]


async def test_after_many_comments_a_comment_is_still_answered_once_and_a_draft_closed_with_one(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    await published(publisher, of)
    server.comments[1] = ["a remark"] * 230
    for _ in range(2):
        await publisher.answer(of, 31, STEPS)
    assert len(server.comments[1]) == 231
    server.faults["pulls/update"] = [JSONResponse({"message": "later"}, 500)]
    with pytest.raises(TryAgain):
        await publisher.close(of, "resolved")
    await publisher.close(of, "resolved")
    assert len(server.comments[1]) == 232


async def test_a_comment_is_answered_once_and_only_on_our_open_draft(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    with pytest.raises(FixError, match="no open draft of ours"):
        await publisher.answer(of, 31, STEPS)
    await published(publisher, of)
    where = {await publisher.answer(of, number, STEPS) for number in (31, 31, 32)}
    first, second = server.comments[1]
    assert "asked it to answer comment 31. A machine wrote this" in first
    assert "| own-tests | the repository's own tests pass with the patch | passed |" in first
    assert ("comment 32" in second, [one.startswith("https://") for one in where]) == (True, [True])
    assert not is_marked(first, of)
    assert server.asked["issues/create-comment"] == 2
    await publisher.close(of, "resolved")
    assert len(server.comments[1]) == 3  # an answer is not taken for the closing comment
    with pytest.raises(FixError, match="no open draft of ours"):
        await publisher.answer(of, 33, STEPS)


LOST = [
    Response(b'{"number": 1, "html_', 201, media_type="application/json"),
    PlainTextResponse("<html>Unicorn!</html>", 502),
    JSONResponse({"number": 1}, 201),
    Response(b"[" * 100_000, 201),
]


@pytest.mark.parametrize("answer", LOST, ids=["cut", "html", "other", "deep"])
async def test_a_lost_answer_to_opening_ends_in_one_request(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask, answer: Response
) -> None:
    server.lost["pulls/create"] = [answer]
    assert (await published(publisher, of)).ref.endswith("/pull/1")
    assert (list(server.pulls), server.asked["pulls/create"]) == ([1], 1)


async def test_a_peer_that_was_first_wins(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    await publisher.push(of, patch(), MESSAGE)
    server.add_pull(of.branch, body=BODY)
    listed = JSONResponse([])
    server.faults["pulls/list"] = [listed]  # the peer opens it after we looked
    assert (await publisher.open(of, TEXT, BODY)).ref.endswith("/pull/1")
    assert (list(server.pulls), server.asked["pulls/create"]) == ([1], 1)


async def test_what_a_person_closed_stays_closed_until_the_commit_changes(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    await published(publisher, of)
    server.pulls[1] |= {"state": "closed"}
    assert (await publisher.open(of, TEXT, BODY)).state == "closed"
    await publisher.push(of, patch(base="c" * 40), MESSAGE)
    assert (await publisher.open(of, TEXT, BODY)).ref.endswith("/pull/2")


async def test_merged_by_a_person_is_seen_also_without_the_branch(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    opened = await published(publisher, of)
    server.pulls[1] |= {"state": "closed", "merged_at": "2026-11-23T10:00:00Z"}
    server.heads.clear()
    assert await publisher.find(of) == Published(opened.ref, of.branch, opened.head, "merged")
    assert (await publisher.close(of, "resolved")) == await publisher.find(of)
    assert server.asked["pulls/update"] == 0


async def test_our_draft_is_closed_with_its_reason_once(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    opened = await published(publisher, of)
    server.faults["pulls/update"] = [JSONResponse({"message": "Server Error"}, 500)]
    with pytest.raises(TryAgain, match="500"):
        await publisher.close(of, "the item is verified-fixed; see @octocat #12")
    closed = await publisher.close(of, "the item is verified-fixed; see @octocat #12")
    assert closed == Published(opened.ref, of.branch, opened.head, "closed")
    assert (server.pulls[1]["state"], server.heads) == ("closed", {})
    assert server.comments == {1: [closing_comment(of, "the item is verified-fixed; see @octocat #12")]}
    assert await publisher.close(of, "again") == closed
    assert (server.asked["pulls/update"], len(server.comments[1])) == (2, 1)


async def test_a_request_of_a_person_is_linked_and_never_closed(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    await publisher.push(of, patch(), MESSAGE)
    server.add_pull(of.branch, body=f"my own words on {BODY.splitlines()[-1]}")
    opened = await publisher.open(of, TEXT, BODY)
    assert (opened.ref, opened.state) == (f"{server.url}/acme/widget/pull/1", "open")
    assert await publisher.close(of, "resolved") is None
    assert (server.pulls[1]["state"], server.comments, set(server.heads)) == ("open", {}, {of.branch})
    assert server.asked["issues/add-labels"] == server.asked["pulls/create"] == 0


async def test_a_request_from_a_fork_is_not_taken_for_ours(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    forked = server.add_pull(of.branch, body=BODY)
    forked["head"]["repo"] |= {"full_name": "acme/widget-fork"}
    assert await publisher.find(of) is None
    assert await publisher.close(of, "resolved") is None
    assert server.pulls[1]["state"] == "open"


async def test_a_branch_that_was_not_pushed_and_a_body_without_marker_are_not_opened(
    server: GitHubServer, publisher: GitHubPublisher, of: FixTask
) -> None:
    with pytest.raises(FixError, match="must be pushed first"):
        await publisher.open(of, TEXT, BODY)
    with pytest.raises(FixError, match="no marker line"):
        await publisher.open(of, TEXT, "hello")
    assert server.asked["pulls/create"] == 0
