"""Proposals on a plain remote, by file:// and by http://: one branch, pushed by lease, never another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from fleet.errors import FixError
from fleet.fix.ports import by_hand
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.repository.git import Git, GitToken
from fleet.fix.repository.trees import GitTrees
from tests.fix.git_http import serve_git
from tests.fix.repositories import (
    BRANCH,
    FIXED,
    SOURCE,
    TEST,
    ProposalPlace,
    checked,
    git,
    make_remote,
    of_run,
    task,
)

pytestmark = pytest.mark.anyio
TOKEN = "github_pat_" + "Zq7" * 12


@pytest.fixture(params=["file", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProposalPlace]:
    remote = make_remote(tmp_path)
    with serve_git(tmp_path) as served:
        url = remote.url if request.param == "file" else f"{served.url}/remote.git"
        yield ProposalPlace(remote=remote, task=task(url), state=tmp_path / "state")


async def test_a_plain_remote_has_no_comments_to_answer(tmp_path: Path) -> None:
    of = task(make_remote(tmp_path).url)
    with pytest.raises(FixError, match="sample is a plain git remote"):
        await GitRemotePublisher(Git(), tmp_path / "state").answer(of, 1, ())


async def test_the_whole_life_of_a_proposal(place: ProposalPlace) -> None:
    publisher, patch = place.publisher(), await place.patch()
    main = place.remote.head("main")
    assert await publisher.find(place.task) is None
    pushed = await publisher.push(place.task, patch, "Fix double\n\nIt added one.")
    assert (pushed.state, pushed.ref, pushed.head) == ("pushed", BRANCH, place.remote.head(BRANCH))
    bare = place.remote.bare
    log = git(bare, "log", "--format=%an <%ae>|%cn|%s", f"main..{BRANCH}").splitlines()
    who = "QA fleet <qa-fleet@localhost>|QA fleet|"
    assert log == [f"{who}Fix double", f"{who}Add a regression test for {BRANCH[9:]}"]
    assert git(bare, "diff", "--name-only", f"{BRANCH}~1", BRANCH) == "src/double.py"
    assert git(bare, "diff", "--name-only", f"{BRANCH}~2", f"{BRANCH}~1") == TEST.path
    assert git(bare, "show", f"{BRANCH}:src/double.py") + "\n" == FIXED

    opened = await publisher.open(place.task, "Fix double", "A machine wrote this.\nLook at it.")
    assert (opened.state, await publisher.find(place.task)) == ("open", opened)
    assert await publisher.open(place.task, "Fix", "another body") == opened
    request = (place.folder / "request.txt").read_text()
    assert request.startswith("Fix double\n\nA machine wrote this.\nLook at it.\n")
    assert f"are available in the Git repository at:\n\n  {place.task.repository.url} {BRANCH}" in request
    assert sorted(path.name for path in place.folder.iterdir()) == [
        f"0001-Add-a-regression-test-for-{BRANCH[9:]}.patch",
        "0002-Fix-double.patch",
        "head",
        "request.txt",
    ]
    git(place.remote.clone, "am", "--quiet", *map(str, sorted(place.folder.glob("*.patch"))))
    assert (place.remote.clone / "src" / "double.py").read_text() == FIXED

    closed = await publisher.close(place.task, "the item was resolved")
    assert closed is not None
    assert (closed.state, place.remote.head(BRANCH)) == ("closed", "")
    assert (place.folder / "closed.txt").read_text() == "the item was resolved\n"
    assert await publisher.find(place.task) is None
    assert await publisher.close(place.task, "again") is None
    assert place.remote.head("main") == main


async def test_a_push_after_a_crash_or_by_a_peer_is_the_same_push_and_the_peer_opens_it(
    near: ProposalPlace,
) -> None:
    patch = await near.patch()
    first = await near.publisher().push(near.task, patch, "Fix double")
    (near.folder / "head").unlink()
    assert await near.publisher("peer").push(near.task, patch, "Fix double") == first
    opened = await near.publisher("peer").open(near.task, "Fix", "body")
    assert (opened.state, opened.head) == ("open", first.head)
    assert (near.state.parent / "peer" / "proposals" / "sample" / BRANCH / "request.txt").exists()


async def test_a_peer_closes_by_identity_and_run_and_a_stranger_does_not(near: ProposalPlace) -> None:
    await near.publisher().push(near.task, await near.patch(), "Fix double")
    head = near.remote.head(BRANCH)
    other = await near.publisher("stranger").close(of_run(near.task, "run-2"), "resolved")
    assert other is not None
    assert near.remote.head(BRANCH) == head
    assert await near.publisher("peer").close(near.task, "resolved") is not None
    assert near.remote.head(BRANCH) == ""


async def test_a_further_round_replaces_our_own_head(near: ProposalPlace) -> None:
    patch = await near.patch()
    first = await near.publisher().push(near.task, patch, "Fix double")
    second = await near.publisher().push(near.task, patch, "Fix double, in other words")
    assert second.head == near.remote.head(BRANCH) != first.head
    assert git(near.remote.bare, "rev-list", "--count", f"main..{BRANCH}") == "2"


async def test_without_a_fix_it_is_the_failing_test_alone(near: ProposalPlace) -> None:
    async with GitTrees(Git(), near.state).open(near.task) as tree:
        patch = checked(near.task, b"", tree.base)
    await near.publisher().push(near.task, patch, "Show that double adds one")
    assert git(near.remote.bare, "diff", "--name-only", "main", BRANCH) == TEST.path
    assert git(near.remote.bare, "log", "--format=%s", f"main..{BRANCH}") == "Show that double adds one"


async def test_a_push_that_is_refused_names_what_to_do_and_can_be_repeated(tmp_path: Path) -> None:
    remote = make_remote(tmp_path)
    with serve_git(tmp_path) as served:
        place = ProposalPlace(remote=remote, task=task(f"{served.url}/remote.git"), state=tmp_path / "state")
        patch = await place.patch()
        for status, remedy in ((401, "token"), (403, "archived"), (404, "url")):
            served.status["git-receive-pack"] = status
            with pytest.raises(FixError) as failed:
                await place.publisher().push(place.task, patch, "Fix double")
            assert remedy in failed.value.remedy
        assert (await place.publisher().find(place.task)) is None
        served.status.clear()
        assert (await place.publisher().push(place.task, patch, "Fix double")).head == remote.head(BRANCH)


async def test_a_token_goes_with_each_request_and_is_not_kept(tmp_path: Path) -> None:
    remote = make_remote(tmp_path)
    with serve_git(tmp_path, token=TOKEN) as served:
        url = f"{served.url}/remote.git"
        given, state = task(url), tmp_path / "state"
        token = GitToken(url, TOKEN)
        async with GitTrees(Git(), state, token=lambda _: token).open(given) as tree:
            await tree.put("src/double.py", FIXED.encode())
            patch = checked(given, await tree.diff(), tree.base)
        publisher = GitRemotePublisher(Git(), state, token=lambda _: token, ask=by_hand)
        await publisher.push(given, patch, "Fix double")
        await publisher.open(given, "Fix", "body")
        await publisher.close(given, "resolved")
    assert remote.head(BRANCH) == ""
    secrets = (TOKEN.encode(), token.header().rpartition(" ")[2].encode())
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and _holds(path, secrets)]
    assert kept == []


def _holds(path: Path, secrets: tuple[bytes, ...]) -> bool:
    data = path.read_bytes()
    return any(secret in data for secret in secrets)


async def test_two_that_push_at_once_make_one_branch(near: ProposalPlace) -> None:
    patch = await near.patch()
    heads: list[str] = []

    async def one(state: str) -> None:
        heads.append((await near.publisher(state).push(near.task, patch, "Fix double")).head)

    async with anyio.create_task_group() as tasks:
        for state in ("state", "state", "peer"):
            tasks.start_soon(one, state)
    assert heads == [near.remote.head(BRANCH)] * 3
    assert git(near.remote.bare, "show", f"{BRANCH}~2:src/double.py") + "\n" == SOURCE


async def test_a_branch_conflicts_once_the_base_has_changed_the_same_lines(near: ProposalPlace) -> None:
    patch = await near.patch()
    publisher = near.publisher()
    await publisher.push(near.task, patch, "Fix double")
    seen = []
    for files in ({"src/other.py": "OTHER = 3\n"}, {"src/double.py": "def double(number):\n    return 0\n"}):
        near.remote.commit(files)
        found = await publisher.find(near.task)
        assert found is not None
        seen.append(found.conflicts)
    assert seen == [False, True]
