"""Files that change: by looking, because inotify loses events and knows no network file system.

A look costs one `stat` a file; only a file whose stat changed is read. A change counts when two looks in a
row see the same stat, so that a file that is still being written, or replaced in two steps, is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from fleet.clock import Clock, SystemClock, rest
from fleet.errors import UsageError
from fleet.files import open_regular
from fleet.personas.load import IGNORED
from fleet.triggers.deliver import deliver, described, tell
from fleet.triggers.model import EVERYONE, FactStore, Firing, FiringSink, Skip, file_key

KEY = "triggers.files"
"""Where the last known content of each file lies in the journal."""
LARGEST = 64 << 20
"""Bytes; of a larger file only so much is hashed, with its size, so that a look stays short."""
GONE = ""
"""The digest of what is not there."""
NO_FILE = "not a regular file"
"""The digest of what is there, but is a folder, a pipe or a link, or may not be read."""

Stat = tuple[int, int, int, int]
"""(inode, mtime_ns, size, ctime_ns): they do not all stay the same when the content changes."""
Watchers = Callable[[], Mapping[str, Collection[str]]]
"""The personas whose trigger is `on = "file:<path>"`, by path."""


class Settling:
    """Which files have a new stat that held for two looks; pure."""

    def __init__(self) -> None:
        self._settled: dict[str, Stat] = {}
        self._seen: dict[str, Stat] = {}

    def look(self, now: Mapping[str, Stat]) -> list[str]:
        """Names that came, changed or went, and did not change again since the look before."""
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
        """Count a file as there, with a stat that no look has: it is named when it stays, or stays away."""
        self._settled[name] = self._seen[name] = (0, 0, 0, 0)

    def forget(self, name: str) -> None:
        """Name it again at the next look, because nothing could be done about it."""
        self._settled.pop(name, None)


@dataclass(frozen=True, slots=True)
class Change:
    """A file of the folder that came, changed or went. `digest` is the SHA-256 of its content, hex."""

    kind: Literal["added", "changed", "removed"]
    path: Path
    digest: str


async def watch_personas(
    folder: Path, *, known: Mapping[Path, str] | None = None, every_s: float = 1.0
) -> AsyncGenerator[Change, None]:
    """Changes of the persona files of a folder, without end; loading them is the caller's business.

    What is no regular file is told too, so that the loader's refusal is seen. A folder that cannot be listed
    changes nothing: the personas that run go on.

    Args:
        known: SHA-256 of each file as it was loaded, so that only what differs is told.
    """
    digests = {str(path): digest for path, digest in (known or {}).items()}
    settling = Settling()
    for name in digests:
        settling.adopt(name)
    while True:
        now = await to_thread.run_sync(_listed, folder)
        for name in settling.look(now) if now is not None else ():
            digest = await to_thread.run_sync(_digest, name, False)
            before = digests.pop(name, GONE)
            if digest != GONE:
                digests[name] = digest
            if digest != before:
                yield Change(_kind(before, digest), Path(name), digest)
        await anyio.sleep(rest(every_s))


def _kind(before: str, after: str) -> Literal["added", "changed", "removed"]:
    if before == GONE:
        return "added"
    return "removed" if after == GONE else "changed"


class FileWatch:
    """Fires the personas of a file whose content changed; the first sight of one is no change.

    What it knows lies in the journal, so a change while nothing ran fires at the next start. `run` raises
    UsageError when it runs already.
    """

    def __init__(
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
        self._key = key
        self._base, self._facts, self._sink, self._watchers = base, facts, sink, watchers
        self._every_s = every_s
        self._clock = clock or SystemClock()
        self._settling = Settling()
        self._known: dict[str, tuple[str, int]] | None = None  # path: digest, changes so far
        self._told = ""
        self._running = False

    async def run(self) -> None:
        """Look until cancelled."""
        if self._running:
            raise UsageError("files are being watched already")
        self._running = True
        try:
            while True:
                await self.turn()
                await anyio.sleep(rest(self._every_s))
        finally:
            self._running = False

    async def turn(self) -> None:
        """One look, whatever comes of it."""
        problem = ""
        try:
            await self.look()
        except Exception as error:
            problem = described(error)
        if problem and problem != self._told:
            await tell(self._sink, Skip(EVERYONE, f"{EVERYONE}@file", f"could not look: {problem}"))
        self._told = problem

    async def look(self) -> None:
        """Fire what settled anew; raises what the journal raises."""
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
            if count < 0 or await self._fire(path, watched[path], digest, count + 1):
                await self._know(path, digest, count + 1)
            else:
                self._settling.forget(path)

    async def _fire(self, path: str, personas: Collection[str], digest: str, count: int) -> bool:
        """Fire first and remember then: after a crash in between the key is the same. False to try again."""
        refused = []
        for persona in sorted(personas):
            key = file_key(persona, hashlib.sha256(f"{path}\0{digest}".encode()).hexdigest(), count)
            firing = Firing(key, persona, f"file {path}", self._clock.now())
            if problem := await deliver(self._sink, firing):
                refused.append(Skip(persona, firing.key, problem))
        for skip in refused:
            await tell(self._sink, skip)
        return not refused or len(refused) < len(personas)

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
