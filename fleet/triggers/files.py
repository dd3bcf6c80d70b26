"""Watches files by polling, because inotify loses events and does not cover network file systems.

A look costs one `stat` per file; only a file whose stat changed is read. A change counts once two consecutive
looks see the same stat, so that a file that is being written, or replaced in two steps, does not fire.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import ChainMap
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from fleet.clock import Clock, rest
from fleet.errors import UsageError
from fleet.files import open_regular
from fleet.personas.load import IGNORED
from fleet.triggers.deliver import tell
from fleet.triggers.model import EVERYONE, FactStore, FiringSink, Skip, file_key
from fleet.triggers.poller import Poller

KEY = "triggers.files"
"""Journal key of the last known content of each file."""
LARGEST = 64 << 20
"""Bytes to hash; of a larger file only these and its size are hashed, so that a look stays short."""
GONE = ""
"""The digest of a missing file."""
NO_FILE = "not a regular file"
"""The digest of a folder, a pipe, a link or an unreadable file."""

Stat = tuple[int, int, int, int]
"""(inode, mtime_ns, size, ctime_ns): at least one changes with the content."""
_ADOPTED: Stat = (0, 0, 0, 0)
Watchers = Callable[[], Mapping[str, Collection[str]]]
"""Personas with a trigger `on = "file:<path>"`, by path."""


class Settling:
    """Detects files whose new stat held for two looks. Pure."""

    def __init__(self) -> None:
        self._settled: dict[str, Stat] = {}
        self._seen: dict[str, Stat] = {}

    def look(self, now: Mapping[str, Stat]) -> list[str]:
        """Names that were added, changed or removed, and are the same as at the previous look."""
        fresh = [
            name
            for name in {*now, *self._settled}
            if now.get(name) == self._seen.get(name) and now.get(name) != self._settled.get(name)
        ]
        self._seen = dict(now)
        for name in fresh:
            if name in now:
                self._settled[name] = now[name]
            else:
                del self._settled[name]
        return sorted(fresh)

    def adopt(self, name: str) -> None:
        """Assume that a file exists, with an impossible stat: reported once it settles or is missing."""
        self._settled[name] = self._seen[name] = _ADOPTED

    def forget(self, name: str) -> None:
        """Report it again at the next look, because the change could not be handled."""
        self._settled.pop(name, None)


ChangeKind = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file that was added, changed or removed. `digest` is the SHA-256 of its content, hex."""

    kind: ChangeKind
    path: Path
    digest: str


async def watch_personas(
    *folders: Path, known: Mapping[Path, str] | None = None, every_s: float = 1.0
) -> AsyncGenerator[Change, None]:
    """Yield changes of the folders' persona files until cancelled; the caller loads the files.

    Also yields anything that is not a regular file, so that the loader reports it. A folder that cannot be
    listed counts as unchanged: its personas keep running.

    Args:
        known: SHA-256 of each file as it was loaded; only differences are yielded.
    """
    digests = {str(path): digest for path, digest in (known or {}).items()}
    settling = Settling()
    for name in digests:
        settling.adopt(name)
    seen = [{name: _ADOPTED for name in digests if Path(name).parent == folder} for folder in folders]
    while True:
        seen = [
            before if (now := await to_thread.run_sync(_listed, folder)) is None else now
            for folder, before in zip(folders, seen, strict=True)
        ]
        for name in settling.look(dict(ChainMap(*seen))):
            digest = await to_thread.run_sync(_digest, name, False)
            before = digests.pop(name, GONE)
            if digest != GONE:
                digests[name] = digest
            if digest != before:
                kind: ChangeKind = "added" if before == GONE else "removed" if digest == GONE else "changed"
                yield Change(kind, Path(name), digest)
        await anyio.sleep(rest(every_s))


class FileWatch(Poller):
    """Fires the personas of a file whose content changed; the first sight of a file does not count.

    Its state is in the journal, so a change while the daemon was down fires at the next start. `run` raises
    UsageError when already running.
    """

    EVENT = "file"
    EXPECTED = (Exception,)

    def __init__(  # noqa: PLR0913  a constructor
        self,
        base: Path,
        facts: FactStore,
        sink: FiringSink,
        watchers: Watchers,
        *,
        every_s: float = 2.0,
        clock: Clock | None = None,
        key: str = KEY,
    ) -> None:
        super().__init__(sink, every_s, clock)
        self._key = key
        self._base, self._facts, self._watchers = base, facts, watchers
        self._settling = Settling()
        self._known: dict[str, tuple[str, int]] | None = None  # path: digest, changes so far
        self._running = False

    async def run(self) -> None:
        """Look until cancelled."""
        if self._running:
            raise UsageError("files are already being watched")
        self._running = True
        try:
            await super().run()
        finally:
            self._running = False

    async def look(self) -> None:
        """Fire new settled changes; journal errors pass through."""
        if self._known is None:
            self._known = await self._load()
        watched = self._watchers()
        now = await to_thread.run_sync(_stats, self._base, tuple(watched)) if watched else {}
        for path in [path for path in watched if path not in now and path not in self._known]:
            await self._know(path, GONE, 0)
        for path in [path for path in self._settling.look(now) if path in watched]:
            digest = await to_thread.run_sync(_digest, str(self._base / path), True)
            before, count = self._known.get(path, (digest, -1))
            if count >= 0 and digest == before:
                continue
            content = hashlib.sha256(f"{path}\0{digest}".encode()).hexdigest()
            keys = [(persona, file_key(persona, content, count + 1)) for persona in sorted(watched[path])]
            if count < 0 or await self.fire(keys, f"file {path}"):
                await self._know(path, digest, count + 1)
            else:
                self._settling.forget(path)

    async def _know(self, path: str, digest: str, count: int) -> None:
        assert self._known is not None
        known = {**self._known, path: (digest, count)}
        await self._facts.put(self._key, json.dumps(known))
        self._known = known

    async def _load(self) -> dict[str, tuple[str, int]]:
        text = await self._facts.get(self._key) or "{}"
        try:
            return {path: (str(digest), int(count)) for path, (digest, count) in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError) as error:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@file", f"starting over: {error}"))
            return {}


def _listed(folder: Path) -> dict[str, Stat] | None:
    """Stats of the persona files of a folder; None when it cannot be listed."""
    found: dict[str, Stat] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".md") and entry.name not in IGNORED and entry.name[0] != ".":
                    found[os.path.join(folder, entry.name)] = _stat(entry.stat(follow_symlinks=False))
    except OSError:
        return None
    return found


def _stats(base: Path, paths: Iterable[str]) -> dict[str, Stat]:
    found = {}
    for path in paths:
        try:
            found[path] = _stat(os.stat(base / path))
        except (OSError, ValueError):
            continue
    return found


def _stat(found: os.stat_result) -> Stat:
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_ctime_ns


def _digest(path: str, follow: bool) -> str:
    """SHA-256 of a regular file; never waits on a pipe."""
    try:
        handle = open_regular(path, follow=follow)
    except FileNotFoundError:
        return GONE
    except (OSError, ValueError):
        return NO_FILE
    try:
        size = os.fstat(handle).st_size
        found, left = hashlib.sha256(), LARGEST
        while left > 0 and (chunk := os.read(handle, min(left, 1 << 20))):
            found.update(chunk)
            left -= len(chunk)
        if not left:
            found.update(b"%d" % size)
        return found.hexdigest()
    finally:
        os.close(handle)
