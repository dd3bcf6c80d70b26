"""What every publisher keeps to: idempotent, one request, nothing of others changed, no merge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.errors import FixError
from fleet.fix.publish.body import marker
from tests.fix.github_server import TOKEN
from tests.fix.publisher_stands import KINDS, GitStand, PublisherStand, stand

pytestmark = pytest.mark.anyio
MESSAGE = "qa-fleet: double adds one\n"


@pytest.fixture(params=KINDS)
async def at(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PublisherStand]:
    async with stand(request.param, tmp_path) as made:
        yield made


def body(at: PublisherStand) -> str:
    return f"what is wrong\n\n{marker(at.task)}\n"


async def test_pushed_and_opened_as_often_as_asked_there_is_one(at: PublisherStand) -> None:
    assert await at.publisher.find(at.task) is None
    assert await at.publisher.close(at.task, "nothing there") is None
    pushed = [await at.again().push(at.task, at.patch, MESSAGE) for _ in range(2)]
    assert pushed[0] == pushed[1] == await at.again().find(at.task)
    assert (pushed[0].state, at.heads()) == ("pushed", {pushed[0].head})
    opened = [await at.again().open(at.task, "t", body(at)) for _ in range(2)]
    assert opened[0] == opened[1] == await at.again().find(at.task)
    assert (opened[0].state, opened[0].head, at.requests()) == ("open", pushed[0].head, 1)
    await at.again().push(at.task, at.patch, MESSAGE)
    assert await at.again().find(at.task) == opened[0]


async def test_a_kill_between_push_and_open_ends_in_one_request(at: PublisherStand) -> None:
    await at.publisher.push(at.task, at.patch, MESSAGE)
    after = at.again()
    found = await after.find(at.task)
    assert found is not None
    assert found.state == "pushed"
    await after.open(at.task, "t", body(at))
    await at.again().open(at.task, "t", body(at))  # killed before it was recorded
    assert (at.requests(), len(at.heads())) == (1, 1)


async def test_a_branch_that_a_person_made_is_not_overwritten(at: PublisherStand) -> None:
    theirs = at.taken()
    before = at.heads()
    with pytest.raises(FixError):
        await at.publisher.push(at.task, at.patch, MESSAGE)
    with pytest.raises(FixError):
        await at.publisher.open(at.task, "t", body(at))
    await at.publisher.close(at.task, "resolved")
    assert at.heads() == before == ({theirs} - {""})
    assert at.requests() == 0


async def test_what_a_person_added_to_our_branch_stays(at: PublisherStand) -> None:
    if not isinstance(at, GitStand):
        pytest.skip("the double has no commits")
    await at.publisher.push(at.task, at.patch, MESSAGE)
    await at.publisher.open(at.task, "t", body(at))
    theirs = at.taken()
    with pytest.raises(FixError, match="commits of others"):
        await at.again().push(at.task, at.patch, MESSAGE)
    await at.again().close(at.task, "resolved")
    assert at.heads() == {theirs}


async def test_closed_once_with_our_branch(at: PublisherStand) -> None:
    await at.publisher.push(at.task, at.patch, MESSAGE)
    opened = await at.publisher.open(at.task, "t", body(at))
    closed = await at.again().close(at.task, "the item is verified-fixed")
    assert closed is not None
    assert (closed.state, closed.head, at.heads()) == ("closed", opened.head, set())
    again = await at.again().close(at.task, "again")
    assert again is None or again.state == "closed"


async def test_merged_by_a_person_is_found_and_left(at: PublisherStand) -> None:
    await at.publisher.push(at.task, at.patch, MESSAGE)
    opened = await at.publisher.open(at.task, "t", body(at))
    at.merge()
    found = await at.again().find(at.task)
    assert found is not None
    assert (found.state, found.head) == ("merged", opened.head)
    assert await at.again().open(at.task, "t", body(at)) == found
    closed = await at.again().close(at.task, "resolved")
    assert closed is not None
    assert closed.state == "merged"


async def test_the_base_branch_is_never_touched(at: PublisherStand) -> None:
    if not isinstance(at, GitStand):
        pytest.skip("the double has no base branch")
    before = at.remote.head("main")
    await at.publisher.push(at.task, at.patch, MESSAGE)
    await at.publisher.open(at.task, "t", body(at))
    await at.publisher.close(at.task, "resolved")
    assert at.remote.head("main") == before
    public = [name for name in dir(at.publisher) if not name.startswith("_")]
    assert public == ["answer", "close", "find", "open", "push"]


async def test_the_token_stays_out_of_all_files(at: PublisherStand, tmp_path: Path) -> None:
    """Of the state directory, git's configuration and objects, and the remote."""
    await at.publisher.push(at.task, at.patch, MESSAGE)
    await at.publisher.open(at.task, "t", body(at))
    await at.publisher.close(at.task, "resolved")
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != tmp_path / "token"]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
