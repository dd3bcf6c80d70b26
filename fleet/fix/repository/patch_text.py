"""The text of a patch, read strictly: exactly what our own `git diff` writes, and nothing else.

A reader that is more generous than git could be shown another patch than git applies. So whatever does not
fit the few forms of `git diff --binary --full-index --no-renames` is refused, and what is read here is
compared with git's own list once more before it is pushed (publish/proposal_branch.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from fleet.errors import PatchRefused
from fleet.text import line

_OID = rb"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_MODE = re.compile(rb"(old mode|new mode|new file mode|deleted file mode) ([0-7]{6})\Z")
_INDEX = re.compile(rb"index (%s)\.\.(%s)(?: ([0-7]{6}))?\Z" % (_OID, _OID))
_HUNK = re.compile(rb"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@(?: .*)?\Z", re.DOTALL)
_HEAD = b"diff --git "
_NO_NEWLINE = b"\\ No newline at end of file"


@dataclass(slots=True)
class FileChange:
    """One file of a patch. `modes` are what git names: the words before a mode, and the mode itself."""

    path: str
    modes: dict[str, str] = field(default_factory=dict)
    binary: bool = False
    added: list[bytes] = field(default_factory=list)
    removed: int = 0

    @property
    def new(self) -> bool:
        return "new file mode" in self.modes

    @property
    def deleted(self) -> bool:
        return "deleted file mode" in self.modes


def read_patch(text: bytes) -> tuple[FileChange, ...]:
    """The files of a patch; PatchRefused (rule `format`, or `name`) when it is not git's own."""
    if not text:
        return ()
    if not text.endswith(b"\n"):
        raise _odd("it does not end with a line")
    lines = _PatchLines(text)
    changes: list[FileChange] = []
    while lines.more():
        changes.append(_file(lines))
    return tuple(changes)


class _PatchLines:
    """The lines of a patch, one after the other; only `\\n` ends a line."""

    def __init__(self, text: bytes) -> None:
        self._lines = text[:-1].split(b"\n")
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._lines)

    def seen(self) -> bytes:
        return self._lines[self._at] if self.more() else b""

    def take(self) -> bytes:
        if not self.more():
            raise _odd("it ends in the middle")
        self._at += 1
        return self._lines[self._at - 1]


def _file(lines: _PatchLines) -> FileChange:
    change = FileChange(_path(lines.take()))
    while match := _MODE.match(lines.seen()):
        lines.take()
        change.modes[match[1].decode()] = match[2].decode()
    if not lines.more() or lines.seen().startswith(_HEAD):
        if set(change.modes) != {"old mode", "new mode"}:
            raise _odd(f"nothing is said of {line(change.path, 80)}")
        return change
    index = _INDEX.match(lines.take())
    if index is None:
        raise _odd(f"no index line for {line(change.path, 80)}")
    if index[3] is not None:
        change.modes["index"] = index[3].decode()
    if lines.seen() == b"GIT binary patch":
        change.binary = True
        for _ in _until_head(lines):
            pass
    elif lines.more() and not lines.seen().startswith(_HEAD):
        name = change.path.encode() + (b"\t" if " " in change.path else b"")
        old = b"--- /dev/null" if change.new else b"--- a/" + name
        new = b"+++ /dev/null" if change.deleted else b"+++ b/" + name
        if lines.take() != old or lines.take() != new:
            raise _odd(f"the names of {line(change.path, 80)} differ")
        if not lines.seen().startswith(b"@@ "):
            raise _odd("a file without a change")
        while lines.seen().startswith(b"@@ "):
            _hunk(lines, change)
    return change


def _until_head(lines: _PatchLines) -> Iterator[bytes]:
    while lines.more() and not lines.seen().startswith(_HEAD):
        yield lines.take()


def _path(head: bytes) -> str:
    """The one name of `diff --git a/NAME b/NAME`; a quoted one holds what no source file needs."""
    if not head.startswith(_HEAD):
        raise _odd("a file does not begin with its names")
    names = head[len(_HEAD) :]
    if names.startswith(b'"'):
        raise PatchRefused(
            f"a name with odd characters: {line(names.decode('ascii', 'replace'))}", rule="name"
        )
    half = (len(names) - 1) // 2
    first, second = names[:half], names[half + 1 :]
    same = first.startswith(b"a/") and second.startswith(b"b/") and first[2:] == second[2:]
    if not same or names[half : half + 1] != b" " or len(first) < 3 or not names.isascii():
        raise _odd("the names of a file differ")
    return first[2:].decode("ascii")


def _hunk(lines: _PatchLines, change: FileChange) -> None:
    match = _HUNK.match(lines.take())
    if match is None:
        raise _odd("a hunk without its place")
    old, new = (1 if count is None else int(count) for count in match.groups())
    while old or new:
        text = lines.take()
        kind = text[:1]
        if kind in (b" ", b"-"):
            old -= 1
        if kind in (b" ", b"+"):
            new -= 1
        if kind not in (b" ", b"-", b"+") or old < 0 or new < 0:
            raise _odd("a hunk is longer or shorter than it says")
        if kind == b"+":
            change.added.append(text[1:])
        change.removed += kind == b"-"
        if lines.seen() == _NO_NEWLINE:
            lines.take()


def _odd(why: str) -> PatchRefused:
    return PatchRefused(f"not a patch as git writes it: {why}", rule="format")
