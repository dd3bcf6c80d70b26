"""Work trees over a real repository: what hostile code leaves in them is seen, and never followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from fleet.errors import FixError, PatchRefused
from fleet.fix.repository import trees as trees_module
from fleet.fix.repository.git import Git
from fleet.fix.repository.trees import GitTree, GitTrees, clear_trees
from fleet.jail.jail_spec import UNPRIVILEGED
from tests.fix.git_http import serve_git
from tests.fix.repositories import FILES, FIXED, SOURCE, Remote, checked, git, make_remote, task

pytestmark = pytest.mark.anyio
OTHER = {"src/a b.py": "A = 1\n", "src/é.py": "E = 1\n", "src/run.sh": "#!/bin/sh\n"}


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return make_remote(tmp_path)


def trees(tmp_path: Path) -> GitTrees:
    return GitTrees(Git(), tmp_path / "state")


async def diff_after(tmp_path: Path, remote: Remote, act: Callable[[Path], object]) -> bytes:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        act(tree.path)
        return await tree.diff()


async def test_a_tree_is_the_base_without_a_repository(tmp_path: Path, remote: Remote) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        found = {
            str(path.relative_to(tree.path)): path.read_text()
            for path in tree.path.rglob("*")
            if path.is_file()
        }
        assert found == FILES
        assert tree.base == remote.head("main")
        assert await tree.diff() == b""
        if os.geteuid() == 0:
            assert {path.stat().st_uid for path in (tree.path, *tree.path.rglob("*"))} == {UNPRIVILEGED}
    assert list((tmp_path / "state" / "trees").iterdir()) == []


async def test_a_change_is_the_diff_that_git_applies(tmp_path: Path, remote: Remote) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        await tree.put("src/double.py", FIXED.encode())
        await tree.put("src/new/deep.py", b"NEW = 1")
        (tree.path / "src" / "other.py").unlink()
        await tree.put("tests/qa/test_x.py", b"assert False\n")
        patch = await tree.diff(without=["tests/qa/test_x.py"])
        found = checked(task(remote.url), patch, tree.base)
        assert found.files == ("src/double.py", "src/new/deep.py", "src/other.py")
        assert (found.added, found.removed) == (2, 2)
        await tree.restore()
        assert (tree.path / "src" / "double.py").read_text() == SOURCE
        assert not (tree.path / "src" / "new").exists()
        assert not (tree.path / "tests" / "qa").exists()
        await tree.apply(patch)
        assert (tree.path / "src" / "double.py").read_text() == FIXED
        assert (tree.path / "src" / "new" / "deep.py").read_bytes() == b"NEW = 1"
        assert not (tree.path / "src" / "other.py").exists()
        assert await tree.diff() == patch
    (remote.clone / "p.diff").write_bytes(patch)
    git(remote.clone, "apply", "--check", "p.diff")


async def test_what_a_build_leaves_and_the_base_ignores_is_none(tmp_path: Path, remote: Remote) -> None:
    def build(tree: Path) -> None:
        for name in ("build/out.bin", "src/__pycache__/double.pyc", "build/dep/.git/HEAD"):
            (tree / name).parent.mkdir(parents=True)
            (tree / name).write_bytes(b"\0\1")
        os.mkfifo(tree / "build" / "pipe")

    assert await diff_after(tmp_path, remote, build) == b""


async def test_ignore_rules_that_a_fixer_adds_hide_nothing(tmp_path: Path, remote: Remote) -> None:
    def hide(tree: Path) -> None:
        (tree / ".gitignore").write_text("*\n")
        (tree / "src" / "hidden.py").write_text("HIDDEN = 1\n")

    patch = await diff_after(tmp_path, remote, hide)
    assert b"b/src/hidden.py" in patch
    assert b"b/.gitignore" in patch


async def test_attributes_of_base_and_tree_change_no_byte(tmp_path: Path) -> None:
    given = {".gitattributes": "* text eol=crlf ident diff=x filter=y\n", "src/a.py": "# $Id$\n"}
    remote = make_remote(tmp_path, given)

    async with trees(tmp_path).open(task(remote.url)) as tree:
        assert (tree.path / "src" / "a.py").read_bytes() == b"# $Id$\n"
        (tree.path / "src" / "a.py").write_bytes(b"# $Id$\r\n")
        (tree.path / "src" / ".gitattributes").write_text("* -diff\n")
        patch = await tree.diff()
        assert b"+# $Id$\r\n" in patch
        assert b"Binary" not in patch
        await tree.apply(patch)
        assert (tree.path / "src" / "a.py").read_bytes() == b"# $Id$\r\n"


async def test_odd_names_modes_links_and_submodules_of_the_base_are_no_change(tmp_path: Path) -> None:
    remote = make_remote(tmp_path, OTHER)
    (remote.clone / "link").symlink_to("src/run.sh")
    (remote.clone / "src" / "run.sh").chmod(0o755)
    commit = git(remote.clone, "rev-parse", "HEAD")
    git(remote.clone, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendor/x")
    git(remote.clone, "add", "link", "src")
    git(remote.clone, "commit", "--quiet", "-m", "more")
    git(remote.clone, "push", "--quiet", "origin", "main")
    async with trees(tmp_path).open(task(remote.url)) as tree:
        assert await tree.diff() == b""
        assert os.readlink(tree.path / "link") == "src/run.sh"
        await tree.put("src/a b.py", b"A = 2\n")
        assert checked(task(remote.url), await tree.diff(), tree.base).files == ("src/a b.py",)
        (tree.path / "vendor" / "x" / "y").write_text("inside\n")
        with pytest.raises(PatchRefused) as refused:
            await tree.diff()
        assert refused.value.rule == "submodule"


@pytest.mark.parametrize(
    "path", ["../out", "/etc/x", "a//b", "", ".", "src/../../x", ".git/config", "src/.GIT/x", "src"]
)
async def test_put_stays_in_the_tree(tmp_path: Path, remote: Remote, path: str) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        with pytest.raises(FixError):
            await tree.put(path, b"text")


async def test_put_goes_through_no_link(tmp_path: Path, remote: Remote) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("as it was")
    async with trees(tmp_path).open(task(remote.url)) as tree:
        (tree.path / "linked").symlink_to(tmp_path / "outside")
        (tree.path / "link").symlink_to(tmp_path / "outside" / "file")
        with pytest.raises(FixError):
            await tree.put("linked/new", b"text")
        await tree.put("link", b"text")
        assert not (tree.path / "link").is_symlink()
    assert {path.name: path.read_text() for path in (tmp_path / "outside").iterdir()} == {"file": "as it was"}


async def test_a_patch_that_does_not_fit_leaves_the_tree(tmp_path: Path, remote: Remote) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        await tree.put("src/double.py", FIXED.encode())
        patch = await tree.diff()
    remote.commit({"src/double.py": "def double(n):\n    return 2 * n\n"})
    async with trees(tmp_path).open(task(remote.url)) as tree:
        with pytest.raises(FixError, match="patch does not apply"):
            await tree.apply(patch)
        assert await tree.diff() == b""


async def test_a_patch_that_leads_out_of_the_tree_does_not_apply(tmp_path: Path, remote: Remote) -> None:
    head = "diff --git a/x b/x\nnew file mode 100644\n"
    for name in ("../../out", ".git/config"):
        patch = f"{head}--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n".encode()
        async with trees(tmp_path).open(task(remote.url)) as tree:
            with pytest.raises(FixError):
                await tree.apply(patch)


async def test_the_mirror_follows_a_branch_that_was_rewritten(tmp_path: Path, remote: Remote) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        before = tree.base
        git(remote.clone, "commit", "--quiet", "--amend", "-m", "another base")
        git(remote.clone, "push", "--quiet", "--force", "origin", "main")
        await tree.put("src/double.py", FIXED.encode())
        async with trees(tmp_path).open(task(remote.url)) as other:
            assert other.base == remote.head("main") != before
        assert checked(task(remote.url), await tree.diff(), tree.base).base == before


async def test_a_mirror_of_a_killed_fetch_is_used_again(tmp_path: Path, remote: Remote) -> None:
    async with trees(tmp_path).open(task(remote.url)) as tree:
        assert await tree.diff() == b""
    mirror = next((tmp_path / "state" / "repositories").glob("*.git"))
    (mirror / "refs" / "fleet" / "main.lock").touch()
    (mirror / "shallow.lock").touch()
    head = remote.commit({"README.md": "changed\n"})
    async with trees(tmp_path).open(task(remote.url)) as tree:
        assert tree.base == head


async def test_trees_are_made_side_by_side(tmp_path: Path, remote: Remote) -> None:
    bases: list[str] = []

    async def one() -> None:
        async with trees(tmp_path).open(task(remote.url)) as tree:
            bases.append(tree.base)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    assert bases == [remote.head("main")] * 4


async def test_the_trees_of_a_killed_process_are_cleared(tmp_path: Path, remote: Remote) -> None:
    made = trees(tmp_path)
    assert clear_trees(tmp_path / "state") == 0
    async with made.open(task(remote.url)) as tree:
        left = tree.path.parent.parent / "run-0-dead"
        (left / "tree").mkdir(parents=True)
        assert clear_trees(tmp_path / "state") == 1
        assert not left.exists()
        assert await tree.diff() == b""


async def test_a_tree_over_http(tmp_path: Path, remote: Remote) -> None:
    with serve_git(tmp_path) as served:
        async with trees(tmp_path).open(task(f"{served.url}/remote.git")) as tree:
            assert tree.base == remote.head("main")


async def test_a_repository_or_branch_that_is_gone_names_what_to_do(tmp_path: Path, remote: Remote) -> None:
    with pytest.raises(FixError) as failed:
        async with trees(tmp_path).open(task((tmp_path / "gone.git").as_uri())):
            pass
    assert "url" in failed.value.remedy
    git(remote.bare, "branch", "-m", "main", "trunk")
    with pytest.raises(FixError) as failed:
        async with trees(tmp_path).open(task(remote.url)):
            pass
    assert "branch" in failed.value.remedy


async def test_commits_that_name_a_word_are_found(tmp_path: Path, remote: Remote) -> None:
    head = remote.commit({"README.md": "1\n"}, "Fix double\n\nIt is item 0123456789ABCDEF of the list.")
    remote.commit({"README.md": "2\n"}, "unrelated 0123456789abcdef0")
    found = await trees(tmp_path).commits(task(remote.url), ["nothing", "0123456789abcdef", ""])
    assert [(hit.kind, hit.ref, hit.title, hit.state) for hit in found] == [
        ("commit", head, "Fix double", "merged")
    ]


async def test_a_checkout_is_measured_before_it_is_written(
    tmp_path: Path, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve names of one blob are one object for git, and twelve files on a disk."""
    blob = "x" * (1 << 20)
    remote.commit({f"src/{number}.txt": blob for number in range(12)})
    written = []
    check_out = GitTree._check_out

    async def noted(tree: GitTree, index: str) -> None:
        written.append(index)
        await check_out(tree, index)

    monkeypatch.setattr(GitTree, "_check_out", noted)
    monkeypatch.setattr(trees_module, "CHECKOUT", 8 << 20)
    with pytest.raises(FixError, match=r"has 1\d files and 12 MiB: at most 200000 and 8 MiB"):
        async with trees(tmp_path).open(task(remote.url)):
            pass
    assert written == []
    monkeypatch.setattr(trees_module, "CHECKOUT", 16 << 20)
    async with trees(tmp_path).open(task(remote.url)):
        assert written == ["index"]
