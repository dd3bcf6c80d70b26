"""A model's tools on a work tree, in its jail: `{"tool", "args"}` on standard input, one JSON object out.

    read    path, first, last        lines of a file
    search  pattern, path            lines that match, or with an empty pattern the names of files
    edit    path, old, new           replace what stands there once; an empty `old` makes a new file

Run as a program. Paths are relative to `/box` and opened one name at a time, each without following a link.
Standard library only. A mistake of the caller's is `{"error"}`; exit 0 says that the line is ours.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

ROOT = "/box"
MAX_FILE = 1 << 20
MAX_LINES, MAX_TEXT, MAX_HITS, MAX_WIDTH = 400, 12_000, 80, 300
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BadEdit(Exception):
    """A mistake of the caller's, in words."""


def main() -> int:
    """Serve standard input once."""
    asked = json.loads(sys.stdin.buffer.read())
    try:
        answer = TOOLS[asked["tool"]](asked["args"])
    except BadEdit as mistake:
        answer = {"error": str(mistake)}
    except OSError as error:
        answer = {
            "error": f"{error.strerror}: links are not followed, and only files below the tree are there"
        }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def read(args: dict[str, Any]) -> dict[str, Any]:
    """Lines `first` to `last` of a file, 1-based, in bounds."""
    path, first, last = _text(args, "path"), _number(args, "first", 1), _number(args, "last", MAX_LINES)
    lines = _content(path).decode("utf-8", "replace").splitlines()
    shown = lines[first - 1 : min(last, first - 1 + MAX_LINES)]
    text = "\n".join(shown)
    cut = len(text) > MAX_TEXT
    return {"path": path, "first": first, "lines": len(lines), "text": text[:MAX_TEXT], "cut": cut}


def search(args: dict[str, Any]) -> dict[str, Any]:
    """Lines below `path` that match a regular expression; without one, the names of the files."""
    pattern, path = _text(args, "pattern"), _text(args, "path", ".")
    try:
        wanted = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadEdit(f"pattern: {error}") from None
    hits: list[str] = []
    for name, content in _files(path, with_content=bool(pattern)):
        found = [name] if not pattern else _matches(wanted, name, content)
        hits += found
        if len(hits) > MAX_HITS:
            return {"hits": hits[:MAX_HITS], "cut": True}
    return {"hits": hits, "cut": False}


def edit(args: dict[str, Any]) -> dict[str, Any]:
    """Replace the one occurrence of a text, or make a new file."""
    path, old, new = _text(args, "path"), _text(args, "old"), _text(args, "new")
    if not old:
        _create(path, new.encode("utf-8", "replace"))
        return {"path": path, "made": True}
    try:
        text = _content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise BadEdit("not a text in UTF-8") from None
    if (times := text.count(old)) != 1:
        raise BadEdit(f"`old` stands there {times} times: give a text that stands there once")
    changed = text.replace(old, new).encode("utf-8", "replace")
    if len(changed) > MAX_FILE:
        raise BadEdit("the file would be too large")
    with os.fdopen(_open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "wb") as file:
        file.truncate()
        file.write(changed)
    return {"path": path, "made": False}


TOOLS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"read": read, "search": search, "edit": edit}


def _text(args: dict[str, Any], name: str, default: str | None = None) -> str:
    value = args.get(name, default)
    if not isinstance(value, str) or "\0" in value:
        raise BadEdit(f"{name}: expected a text")
    return value


def _number(args: dict[str, Any], name: str, default: int) -> int:
    value = args.get(name, default)
    if type(value) is not int or value < 1:
        raise BadEdit(f"{name}: expected a line number from 1 on")
    return value


def _names(path: str) -> list[str]:
    names = [name for name in path.split("/") if name not in ("", ".")]
    if path.startswith("/") or ".." in names:
        raise BadEdit("path: expected one relative to the tree, without `..`")
    return names


def _folder(names: list[str]) -> int:
    """A descriptor of a folder below the tree, opened one name at a time."""
    at = os.open(ROOT, _DIRECTORY)
    for name in names:
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def _open(path: str, flags: int, mode: int = 0o644) -> int:
    names = _names(path)
    if not names:
        raise BadEdit("path: names no file")
    folder = _folder(names[:-1])
    try:
        found = os.open(names[-1], flags | os.O_CLOEXEC, mode, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise BadEdit("path: not a regular file")
    return found


def _content(path: str) -> bytes:
    with os.fdopen(_open(path, _READ), "rb") as file:
        content = file.read(MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise BadEdit(f"larger than {MAX_FILE} bytes")
    return content


def _create(path: str, content: bytes) -> None:
    names = _names(path)
    for depth in range(1, len(names)):
        parent = _folder(names[: depth - 1])
        try:
            os.mkdir(names[depth - 1], dir_fd=parent)
        except FileExistsError:
            pass
        finally:
            os.close(parent)
    with os.fdopen(_open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
        file.write(content)


def _files(path: str, *, with_content: bool) -> Iterator[tuple[str, bytes]]:
    """Regular files below a folder, in order; what is large, odd or not readable is left out."""
    folder = _folder(_names(path))
    top = "/".join(_names(path))
    try:
        for where, folders, files, at in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
            folders.sort()
            for name in sorted(files):
                shown = "/".join(
                    part for part in (top, os.path.normpath(where), name) if part not in ("", ".")
                )
                if (content := _peeked(name, at, with_content)) is not None:
                    yield shown, content
    finally:
        os.close(folder)


def _peeked(name: str, at: int, with_content: bool) -> bytes | None:
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE:
            return None
        if not with_content:
            return b""
        with os.fdopen(os.open(name, _READ, dir_fd=at), "rb") as file:
            content = file.read(MAX_FILE)
    except OSError:
        return None
    return None if b"\0" in content[:4096] else content


def _matches(wanted: re.Pattern[str], name: str, content: bytes) -> list[str]:
    lines = content.decode("utf-8", "replace").splitlines()
    return [f"{name}:{n}: {line[:MAX_WIDTH]}" for n, line in enumerate(lines, 1) if wanted.search(line)]


if __name__ == "__main__":
    sys.exit(main())
