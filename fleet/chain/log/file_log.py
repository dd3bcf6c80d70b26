"""A log in an append-only file, for a platform without a log of its own: the same rules as on chain.

Each entry is one line of JSON with its index and a check sum. A post is judged and charged by the signer's
policy (dial, STOP, never-list, budget), written under a lock between processes, on the disk and read back
when it returns. A line that a crash tore is cut off by the next post. Removing the file clears the log.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread

from fleet.chain.log.feedback import PAGE
from fleet.chain.node.codec import Entry
from fleet.chain.ports import Charge, PostedEntry, SignerPort
from fleet.chain.signing.policy import check_text
from fleet.clock import Clock, SystemClock
from fleet.errors import ConfigError, FleetError, Refused, TxFailed, Unreachable
from fleet.files import UnfitFile, disk_errors, open_owned, sync_folder
from sandbox import strict_json

_CHUNK = 1 << 20
MAX_LINE = 16_384
"""Bytes of a line: 2,048 bytes of text, each escaped as six at most, and the other fields."""


class FileLog:
    """FeedbackPort on one file; without a signer it can only be read.

    Raises ConfigError for a link, a foreign owner or a file that others may write, Unreachable for a damaged
    line, TryAgain for a full disk.
    """

    def __init__(self, path: Path, signer: SignerPort | None = None, *, clock: Clock | None = None) -> None:
        self.path = path
        self._signer = signer
        self._clock = clock or SystemClock()
        self._index = LineIndex()

    def seen(self, block: int) -> None:
        """No effect: a file does not lag."""

    async def head(self) -> int:
        """Number of entries: this log's only height."""
        return await self.count()

    async def count(self) -> int:
        """Number of entries in the log now."""
        return await to_thread.run_sync(self._count)

    async def range(self, start: int, count: int) -> list[Entry]:
        """At most `count` entries from `start`; fewer at the end of the log, none past it."""
        lines = await to_thread.run_sync(self._lines, start, count)
        return [Entry(one["from"], one["at"], one["text"]) for one in lines]

    async def find(self, text: str, sender: str, *, since: int = 0) -> int | None:
        """Index of the newest entry with exactly this text from this sender at or after `since`."""
        found = None
        while entries := await self.range(since, PAGE):
            for index, entry in enumerate(entries, since):
                if entry.text == text and entry.sender == sender.lower():
                    found = index
            since += len(entries)
        return found

    async def post(self, text: str, *, run: str = "", charge: Charge = "reports") -> PostedEntry:
        """Write one entry (1 to 2048 bytes) under the fleet's identity and read it back."""
        outcome = (await self.post_many([text], run=run, charge=charge))[0]
        if isinstance(outcome, FleetError):
            raise outcome
        return outcome

    async def post_many(
        self, texts: Sequence[str], *, run: str = "", charge: Charge = "reports"
    ) -> list[PostedEntry | FleetError]:
        """Write entries, all or none; Refused when one of them is not an entry, or a fence refuses."""
        if self._signer is None:
            raise Refused("this log was opened without a signer", rule="key")
        for text in texts:
            check_text(text)
        charge = charge if run else "none"
        senders = [await self._signer.admit_entry(text, run=run, charge=charge) for text in texts]
        first = await to_thread.run_sync(self._append, list(zip(senders, texts, strict=True)))
        kept = await self.range(first, len(texts))
        found = [(entry.sender, entry.text) for entry in kept]
        if found != list(zip(senders, texts, strict=True)):
            raise TxFailed(f"{self.path} does not hold the entry that was written", kind="read_back")
        return [
            PostedEntry(tx=f"{self.path.stem}#{index}@{entry.timestamp}", index=index)
            for index, entry in enumerate(kept, first)
        ]

    def _append(self, entries: Sequence[tuple[str, str]]) -> int:
        """The index of the first of these entries, once they are on the disk."""
        with self._opened(append=True) as descriptor:
            starts = self._index.of(descriptor)
            end, first = starts[-1], len(starts) - 1
            os.ftruncate(descriptor, end)  # what a crash tore
            last = _parsed(os.pread(descriptor, MAX_LINE, starts[-2]), first - 1) if first else None
            now = max(int(self._clock.now().timestamp()), last["at"] if last else 0)
            data = b""
            for index, (sender, text) in enumerate(entries, first):
                body = {"n": index, "at": now, "from": sender, "text": text}
                data += json.dumps(body | {"sum": _sum(body)}).encode() + b"\n"
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                os.fsync(descriptor)
            except BaseException:
                os.ftruncate(descriptor, end)
                raise
            return first

    def _count(self) -> int:
        try:
            with self._opened() as descriptor:
                return len(self._index.of(descriptor)) - 1
        except FileNotFoundError:
            return 0

    def _lines(self, start: int, count: int) -> list[dict[str, Any]]:
        """The lines from `start` on; Unreachable when one is damaged."""
        try:
            with self._opened() as descriptor:
                starts = self._index.of(descriptor)
                last = min(start + count, len(starts) - 1)
                if start >= last:
                    return []
                data = os.pread(descriptor, starts[last] - starts[start], starts[start])
        except FileNotFoundError:
            return []
        lines = data.splitlines(keepends=True)
        found = [_parsed(line, index) for index, line in enumerate(lines, start)]
        if len(found) != last - start or None in found:
            bad = start + (found.index(None) if None in found else 0)
            raise Unreachable(
                f"{self.path}: line {bad + 1} is damaged", remedy="restore the file from a backup"
            )
        return [one for one in found if one]

    @contextmanager
    def _opened(self, *, append: bool = False) -> Iterator[int]:
        """The file, locked against other writers for an append; FileNotFoundError for a reader."""
        with _faults(self.path):
            if append:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_owned(self.path, append=append)
            try:
                if append:
                    descriptor = self._locked(descriptor)
                yield descriptor
            finally:
                os.close(descriptor)

    def _locked(self, descriptor: int) -> int:
        """A descriptor whose lock this process holds, of the file that has the name now."""
        while True:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if os.path.samestat(os.stat(self.path, follow_symlinks=False), os.fstat(descriptor)):
                    if not os.fstat(descriptor).st_size:
                        sync_folder(self.path.parent)
                    return descriptor
            except FileNotFoundError:
                pass
            fresh = open_owned(self.path, append=True)  # it was removed while we waited
            os.close(descriptor)
            descriptor = fresh


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    """`disk_errors`, with a missing file as it is, and an unfit one as a fault of the configuration."""
    try:
        with disk_errors(path):
            try:
                yield
            except FileNotFoundError as error:
                raise _Missing from error
            except OSError as error:
                if not isinstance(error, UnfitFile) and error.errno != errno.ELOOP:
                    raise
                why = error.strerror if isinstance(error, UnfitFile) else "a symbolic link"
                raise ConfigError(f"{path}: {why}: not a log of ours", remedy="move it away") from None
    except _Missing:
        raise FileNotFoundError(errno.ENOENT, "no such log", str(path)) from None


class _Missing(Exception):
    pass


def _sum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]


def _parsed(data: bytes, index: int) -> dict[str, Any] | None:
    """The entry at the beginning of these bytes; None when it is damaged, or not number `index`."""
    line, newline, _ = data.partition(b"\n")
    try:
        found = strict_json.loads(line)
    except ValueError:
        return None
    if not newline or not isinstance(found, dict) or found.get("n") != index:
        return None
    return found if found.pop("sum", None) == _sum(found) else None


class LineIndex:
    """Where the lines of an append-only file start; reads only what was added since the last look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = (0, 0)
        self._starts = array("Q", [0])

    def of(self, descriptor: int) -> array[int]:
        """The start of each whole line, and behind them the end of the last one."""
        with self._lock:
            found = os.fstat(descriptor)
            if self._file != (found.st_dev, found.st_ino) or found.st_size < self._starts[-1]:
                self._file, self._starts = (found.st_dev, found.st_ino), array("Q", [0])
            known = len(self._starts)
            at = self._starts[-1]
            while part := os.pread(descriptor, _CHUNK, at):
                place = part.find(b"\n")
                while place >= 0:
                    self._starts.append(at + place + 1)
                    place = part.find(b"\n", place + 1)
                at += len(part)
            last = len(self._starts) - 2
            if len(self._starts) > known and not _parsed(
                os.pread(descriptor, MAX_LINE, self._starts[-2]), last
            ):
                self._starts.pop()  # a power loss may tear a line behind its end
            return self._starts[:]
