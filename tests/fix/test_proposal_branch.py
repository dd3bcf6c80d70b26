"""The branch of a proposal: others' commits are kept, other branches cannot be named, a lease is held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleet.errors import FixError
from fleet.fix.ports import by_hand
from fleet.fix.publish.git_remote import GitRemotePublisher
from fleet.fix.repository.git import Git
from tests.fix.repositories import (
    BRANCH,
    FIXED,
    TEST,
    ProposalPlace,
    git,
)

pytestmark = pytest.mark.anyio
TOKEN = "github_pat_" + "Zq7" * 12


async def test_commits_that_others_add_to_ours_are_kept(near: ProposalPlace) -> None:
    publisher, patch = near.publisher(), await near.patch()
    await publisher.push(near.task, patch, "Fix double")
    await publisher.open(near.task, "Fix", "body")
    theirs = near.remote.commit({"src/double.py": FIXED + "# reviewed\n"}, branch=BRANCH)
    found = await publisher.find(near.task)
    assert found is not None
    assert (found.state, found.head) == ("open", theirs)
    assert (await publisher.open(near.task, "Fix", "body")).state == "open"
    with pytest.raises(FixError, match="holds commits of others"):
        await publisher.push(near.task, patch, "Fix double")
    closed = await publisher.close(near.task, "resolved")
    assert closed is not None
    assert (closed.state, near.remote.head(BRANCH)) == ("closed", theirs)
    assert not (near.folder / "request.txt").exists()


@pytest.mark.parametrize(
    ("name", "email", "run"),
    [("QA fleet", "qa-fleet@localhost", "run-7"), ("A Person", "person@example.org", "run-1")],
    ids=["identity", "run"],
)
async def test_identity_or_run_alone_is_not_enough(
    near: ProposalPlace, name: str, email: str, run: str
) -> None:
    tree = git(near.remote.clone, "rev-parse", "HEAD^{tree}")
    words = ("commit-tree", "-p", "HEAD", "-m", f"Ours?\n\nQA-Fleet-Run: {run}", tree)
    made = git(near.remote.clone, *words, name=name, email=email)
    git(near.remote.clone, "push", "--quiet", "origin", f"{made}:refs/heads/{BRANCH}")
    with pytest.raises(FixError, match="holds commits of others"):
        await near.publisher().push(near.task, await near.patch(), "Fix double")
    assert near.remote.head(BRANCH) == made


async def test_the_lease_is_lost_to_a_push_in_between(near: ProposalPlace, tmp_path: Path) -> None:
    """The remote takes another push while ours is on its way: a hook of the remote stands in for it."""
    patch = await near.patch()
    head = near.remote.head("main")
    ours = tmp_path / "racing-git"
    update = f"git --git-dir={near.remote.bare} update-ref refs/heads/{BRANCH} {head}"
    ours.write_text(f'#!/bin/sh\n[ "$1" = push ] && env -u GIT_DIR {update}\nexec git "$@"\n')
    ours.chmod(0o755)
    with pytest.raises(FixError) as failed:
        await GitRemotePublisher(Git(str(ours)), near.state, ask=by_hand).push(near.task, patch, "Fix double")
    assert near.remote.head(BRANCH) == head
    assert failed.value.remedy.startswith("the branch has changed meanwhile")


async def test_what_the_base_contains_is_merged_also_without_its_branch(near: ProposalPlace) -> None:
    publisher = near.publisher()
    await publisher.push(near.task, await near.patch(), "Fix double")
    await publisher.open(near.task, "Fix", "body")
    git(near.remote.clone, "fetch", "--quiet")
    git(near.remote.clone, "merge", "--quiet", "--no-ff", "-m", "merge it", f"origin/{BRANCH}")
    git(near.remote.clone, "push", "--quiet", "origin", "main")
    found = await publisher.find(near.task)
    assert found is not None
    assert found.state == "merged"
    assert await publisher.close(near.task, "resolved") == found
    assert near.remote.head(BRANCH) == found.head
    git(near.remote.bare, "branch", "-D", BRANCH)
    assert await publisher.find(near.task) == found


async def test_a_base_that_moved_on_is_fine_and_one_that_was_rewritten_is_not(near: ProposalPlace) -> None:
    patch = await near.patch()
    near.remote.commit({"README.md": "more\n"})
    pushed = await near.publisher().push(near.task, patch, "Fix double")
    assert git(near.remote.bare, "rev-parse", f"{pushed.head}~2") == patch.base
    git(near.remote.clone, "commit", "--quiet", "--amend", "-m", "rewritten")
    git(near.remote.clone, "reset", "--quiet", "--hard", "HEAD")
    tree = git(near.remote.clone, "rev-parse", "HEAD^{tree}")
    other = git(near.remote.clone, "commit-tree", "-m", "a new history", tree)
    git(near.remote.clone, "push", "--quiet", "--force", "origin", f"{other}:main")
    with pytest.raises(FixError, match="no longer contains") as failed:
        await near.publisher().push(near.task, patch, "Fix double, again")
    assert failed.value.remedy
    assert near.remote.head(BRANCH) == pushed.head


async def test_a_patch_that_does_not_fit_pushes_nothing(near: ProposalPlace) -> None:
    patch = await near.patch()
    other = patch.text.replace(b"number + number + 1", b"number + number + 2")
    with pytest.raises(FixError, match="patch does not apply"):
        await near.publisher().push(near.task, replace(patch, text=other), "Fix double")
    assert near.remote.head(BRANCH) == ""


async def test_a_test_that_is_there_already_is_not_overwritten(near: ProposalPlace) -> None:
    near.remote.commit({TEST.path: "theirs\n"})
    with pytest.raises(FixError, match="exists already"):
        await near.publisher().push(near.task, await near.patch(), "Fix double")
    assert near.remote.head(BRANCH) == ""


async def test_what_git_makes_of_a_patch_is_compared_with_what_was_checked(near: ProposalPlace) -> None:
    patch = await near.patch()
    text = patch.text.decode()
    for swapped in (
        replace(patch, text=text.replace("src/double.py", "src/other.py").encode()),
        replace(patch, files=("src/other.py",)),
        replace(patch, text=_mode(text).encode()),
    ):
        with pytest.raises(FixError):
            await near.publisher().push(near.task, swapped, "Fix double")
    assert near.remote.head(BRANCH) == ""


def _mode(text: str) -> str:
    first, _, rest = text.partition("\n")
    head, _, tail = rest.partition(" 100644\n")
    return f"{first}\nold mode 100644\nnew mode 100755\n{head}\n{tail}"


@pytest.mark.parametrize(
    "branch", ["main", "qa-fleet", "qa-fleet/", "qa-fleet/../main", "qa-fleet/a/b", "other/x"]
)
async def test_no_other_branch_can_be_named(near: ProposalPlace, branch: str) -> None:
    given = replace(near.task, branch=branch)
    for act in (near.publisher().find(given), near.publisher().close(given, "x")):
        with pytest.raises(FixError, match="not the name of a branch of ours"):
            await act


async def test_a_default_branch_is_never_touched(near: ProposalPlace) -> None:
    git(near.remote.clone, "push", "--quiet", "origin", f"main:{BRANCH}")
    git(near.remote.bare, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    with pytest.raises(FixError, match="is the default branch"):
        await near.publisher().push(near.task, await near.patch(), "Fix double")
