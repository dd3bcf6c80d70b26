"""Work trees without a repository in them: a jail is given files, and nothing of git's.

The mirror, the index and new objects lie beside the tree, where no jail sees them. What a jail has left in
the tree is read on this side by `tree_scan`, hashed and compared; git itself is never run in a tree that
hostile code has written to, except to write the base into it after everything was removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from fleet.errors import FixError, PatchRefused
from fleet.files import disk_errors
from fleet.fix.model import FixTask, TrackerHit
from fleet.fix.ports import TreePort
from fleet.fix.repository import tree_scan
from fleet.fix.repository.git import Git, GitPlace, GitToken
from fleet.fix.repository.mirror import DEPTH, RepositoryMirror
from fleet.fix.repository.tree_scan import TreeEntry
from fleet.jail.jail_spec import UNPRIVILEGED
from fleet.jail.openat import open_beneath
from fleet.jail.rmtree import rmtree
from fleet.text import line

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put_file(tree: Path, path: str, text: bytes) -> None:
    """Write one file beneath the tree, its folders made; one that is there is replaced, a link not followed.

    FixError: a path that leads elsewhere, or through something that is not a folder.
    """
    parts = os.fsencode(path).split(b"/")
    if any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
        raise FixError(f"{line(path, 120)}: not a path in a repository")
    top = os.open(tree, _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        folder = _folder(top, parts[:-1])
        try:
            draft = b".qa-" + secrets.token_hex(8).encode()
            try:
                with os.fdopen(os.open(draft, _NEW, 0o644, dir_fd=folder), "wb") as handle:
                    handle.write(text)
                _give(draft, folder)
                os.rename(draft, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise
        finally:
            os.close(folder)
    except OSError as error:
        raise FixError(f"{line(path, 120)}: cannot be written: {error.strerror}") from None
    finally:
        os.close(top)


def take_over(tree: Path) -> None:
    """Give the tree to the user of a root daemon's jails; follows no link."""
    if os.geteuid() != 0:
        return
    os.chown(tree, UNPRIVILEGED, UNPRIVILEGED, follow_symlinks=False)
    for _, folders, names, descriptor in os.fwalk(tree, follow_symlinks=False):
        for name in (*folders, *names):
            with suppress(FileNotFoundError):
                os.chown(name, UNPRIVILEGED, UNPRIVILEGED, dir_fd=descriptor, follow_symlinks=False)


def _folder(top: int, parts: list[bytes]) -> int:
    """Open a folder beneath `top`, made where it is missing; the caller closes it."""
    here = open_beneath(top, b".", _FOLDER)
    for part in parts:
        try:
            try:
                os.mkdir(part, 0o755, dir_fd=here)
                _give(part, here)
            except FileExistsError:
                pass
            inner = open_beneath(here, part, _FOLDER)
        finally:
            os.close(here)
        here = inner
    return here


def _give(name: bytes, folder: int) -> None:
    if os.geteuid() == 0:
        os.chown(name, UNPRIVILEGED, UNPRIVILEGED, dir_fd=folder, follow_symlinks=False)


PATCH = 8 * 1024 * 1024
"""Most bytes of all new and changed files together, and of the patch made of them."""
CHECKOUT = 1 << 30
"""Most bytes of all files of a checkout, each name counted: the disk of a jail has no more."""
_DIFF = (
    *("diff-index", "--cached", "--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff"),
    *("--no-textconv", "--no-color", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3"),
)

TokenOf = Callable[[FixTask], GitToken | None]
"""The token that the repository of a task is fetched with."""


def no_token(task: FixTask) -> GitToken | None:  # noqa: ARG001  as every reader of a token
    """For repositories that anyone may read, or that lie on this machine."""
    return None


class GitTree:
    """One work tree; see TreePort. `holder` is its folder in the state directory."""

    def __init__(self, git: Git, mirror: RepositoryMirror, holder: Path, base: str) -> None:
        self._git, self._mirror, self._holder, self._base = git, mirror, holder, base
        self._known: dict[bytes, TreeEntry] = {}
        self._modules: tuple[bytes, ...] = ()
        self._algorithm = "sha1"

    @property
    def path(self) -> Path:
        return self._holder / "tree"

    @property
    def base(self) -> str:
        return self._base

    async def prepare(self) -> None:
        """Make the folders and write the base into the tree; once, before anything else."""
        with disk_errors(self._holder):
            for name in ("tree", "ignore", "objects"):
                (self._holder / name).mkdir(mode=0o700)
        self._algorithm = (await self._mirror.ask("rev-parse", "--show-object-format")).strip()
        listed = await self._run("ls-tree", "-r", "-z", "-l", self._base)
        self._known, modules = _listed(listed)
        size = sum(entry.size for entry in self._known.values())
        if size > CHECKOUT or len(self._known) > tree_scan.ENTRIES:
            raise FixError(
                f"a checkout of {self._base[:12]} has {len(self._known)} files and {size >> 20} MiB: at most "
                f"{tree_scan.ENTRIES} and {CHECKOUT >> 20} MiB fit into a jail",
                remedy="propose on a repository that is smaller",
            )
        self._modules = tuple(modules)
        await self._read_base("index")
        rules = [path for path, entry in self._known.items() if path.rpartition(b"/")[2] == b".gitignore"]
        if rules:
            words = ("checkout-index", "-z", "--stdin")
            await self._run(*words, index="index", tree="ignore", stdin=b"\0".join(rules))
        await self._check_out("index")

    async def put(self, path: str, text: bytes) -> None:
        await run_sync(put_file, self.path, path, text)

    async def diff(self, *, without: Sequence[str] = ()) -> bytes:
        """See TreePort. PatchRefused: something in the tree that no patch of ours can hold."""
        changes = await self._changes({os.fsencode(path) for path in without})
        if not changes:
            return b""
        await self._read_base("compared")
        await self._run("update-index", "-z", "--index-info", index="compared", stdin=b"".join(changes))
        return await self._run(*_DIFF, self._base, index="compared", limit=PATCH * 2)

    async def apply(self, patch: bytes) -> None:
        await self._read_base("index")
        if patch:
            await self._run("apply", "--cached", "--whitespace=nowarn", "-", index="index", stdin=patch)
        await self._check_out("index")

    async def restore(self) -> None:
        await self.apply(b"")

    async def _changes(self, without: set[bytes]) -> list[bytes]:
        """Lines for `update-index --index-info`: removed paths first, then what is new or changed."""
        found = await run_sync(tree_scan.scan, self.path)
        differing = await run_sync(tree_scan.differing, self.path, found, self._known, self._algorithm)
        gone = [path for path in self._known if path not in found and path not in without]
        new = [path for path in differing if path not in self._known]
        ignored = without | await self._ignored(new)
        differing = [path for path in differing if path not in ignored]
        self._judge(found, differing, gone)
        lines = [b"0 %s\t%s\0" % (b"0" * len(self._base), path) for path in gone]
        total = 0
        for path in differing:
            data = await run_sync(tree_scan.content, self.path, path, found[path])
            total += len(data)
            if total > PATCH:
                raise PatchRefused(f"the changes have more than {PATCH} bytes", rule="size")
            words = ("hash-object", "-w", "--no-filters", "--stdin")
            oid = (await self._run(*words, stdin=data)).strip()
            lines.append(b"%s %s\t%s\0" % (found[path].mode.encode(), oid, path))
        return lines

    async def _ignored(self, new: Sequence[bytes]) -> set[bytes]:
        """New paths that the base's own `.gitignore` files leave out: what a build leaves behind."""
        if not new:
            return set()
        words = ("check-ignore", "--no-index", "-z", "--stdin")
        asked = b"".join(b"./%s\0" % path for path in new)  # after `./` no name is a magic pathspec
        found = await self._run(*words, tree="ignore", index="index", stdin=asked, fine=(0, 1))
        return {path.removeprefix(b"./") for path in found.split(b"\0")[:-1]}

    def _judge(self, found: dict[bytes, TreeEntry], differing: list[bytes], gone: list[bytes]) -> None:
        for path in differing:
            if found[path].unfit:
                raise tree_scan.refused("kind", path, found[path].unfit)
            if any(path == module or path.startswith(module + b"/") for module in self._modules):
                raise tree_scan.refused("submodule", path, "lies in a submodule")
        if len(differing) + len(gone) > tree_scan.CHANGED:
            raise PatchRefused(f"more than {tree_scan.CHANGED} files are changed", rule="files")
        new = [path for path in differing if path not in self._known]
        twice = tree_scan.colliding(new, self._known)
        if twice is not None:
            raise tree_scan.refused("case", twice, "differs from another path only in upper and lower case")

    async def _read_base(self, index: str) -> None:
        await self._run("read-tree", self._base, index=index)

    async def _check_out(self, index: str) -> None:
        """Write the index into the tree, after everything in it was removed; the folder itself stays."""
        await run_sync(_empty, self.path)
        await self._run("checkout-index", "--all", "--force", index=index, tree="tree")
        await run_sync(take_over, self.path)

    async def _run(
        self,
        *words: str,
        index: str = "",
        tree: str = "",
        stdin: bytes = b"",
        limit: int = 64 * 1024 * 1024,
        fine: Sequence[int] = (0,),
    ) -> bytes:
        place = GitPlace(
            repository=self._mirror.folder,
            tree=self._holder / tree if tree else None,
            index=self._holder / index if index else None,
            objects=self._holder / "objects",
        )
        cwd = self._holder / tree if tree else None
        return await self._git.run(*words, place=place, stdin=stdin, limit=limit, fine=fine, cwd=cwd)


class GitTrees:
    """Work trees in `state`/trees, made from mirrors in `state`/repositories; see Trees."""

    def __init__(self, git: Git, state: Path, *, token: TokenOf = no_token) -> None:
        self._git, self._state, self._token = git, state, token

    @asynccontextmanager
    async def open(self, task: FixTask) -> AsyncIterator[TreePort]:
        mirror = RepositoryMirror(self._git, self._state, task.name, task.repository)
        base = await mirror.fetch(self._token(task))
        name = re.sub(r"[^A-Za-z0-9-]", "-", task.run)[:60] or "tree"
        holder = self._state / "trees" / f"{name}-{secrets.token_hex(4)}"
        with disk_errors(holder):
            holder.mkdir(mode=0o700, parents=True)
            lock = os.open(holder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tree = GitTree(self._git, mirror, holder, base)
            await tree.prepare()
            yield tree
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(rmtree, holder.parent, holder.name)
            os.close(lock)

    async def commits(self, task: FixTask, words: Sequence[str]) -> Sequence[TrackerHit]:
        mirror = RepositoryMirror(self._git, self._state, task.name, task.repository)
        base = await mirror.fetch(self._token(task))
        log = await mirror.ask("log", "-z", f"--max-count={DEPTH}", "--no-color", "--format=%H%n%B", base)
        hits = []
        for record in log.split("\0"):
            commit, _, message = record.strip().partition("\n")
            for word in filter(None, words):
                if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", message, re.IGNORECASE):
                    why = f"its message names {line(word, 80)}"
                    hits.append(TrackerHit("commit", commit, line(message.partition("\n")[0]), "merged", why))
                    break
        return hits


def _listed(output: bytes) -> tuple[dict[bytes, TreeEntry], list[bytes]]:
    """The files of `ls-tree -r -z -l`, and the paths of its submodules."""
    known, modules = {}, []
    for row in output.split(b"\0")[:-1]:
        head, _, path = row.partition(b"\t")
        mode, kind, oid, size = head.decode("ascii").split()
        if kind == "commit":
            modules.append(path)
        else:
            known[path] = TreeEntry(mode, int(size), oid)
    return known, modules


def _empty(tree: Path) -> None:
    """Remove everything in a tree; its mode is ours again."""
    os.chmod(tree, 0o700)
    for name in os.listdir(tree):
        rmtree(tree, name)


def clear_trees(state: Path) -> int:
    """Remove the trees of `state` that no living process holds; returns how many."""
    folder, count = state / "trees", 0
    for holder in sorted(folder.iterdir()) if folder.is_dir() else ():
        lock = os.open(holder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
        rmtree(folder, holder.name)
        count += 1
    return count
