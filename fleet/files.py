"""Atomic, durable writes and guarded reads of our files.

Write here what must survive a kill or a power loss; read here files that a stranger may have replaced.
Failures are OSError; `disk_errors` turns it into an error that a person can act on.
"""

from __future__ import annotations

import codecs
import errno
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from fleet.errors import FleetError, TryAgain

ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds the package `fleet`: the checkout, or the site-packages of an installation."""
INSTALLED = (ROOT / "fleet" / "shipped").is_dir()
"""Whether this came as a wheel, into which setup.py puts the shipped files."""
SHIPPED = ROOT / "fleet" / "shipped" if INSTALLED else ROOT
"""What comes with the fleet besides code: `config/`, `personas/`, `docs/`, `package.json`."""

Rule = Literal["kind", "owner", "mode", "links", "size", "replaced", "mark"]
Mark = Literal["keep", "drop", "refuse"]
"""What becomes of a byte-order mark, which editors put unseen before a text in UTF-8."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""A disk that takes no more, for now: also one that the kernel made read-only after an error."""
_TRIES = 5
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def state_dir() -> Path:
    """`$STATE_DIRECTORY` under systemd, else `./.qa-fleet`; not created here."""
    return Path(os.environ.get("STATE_DIRECTORY") or ".qa-fleet").absolute()


class UnfitFile(OSError):
    """A file exists but is rejected: `rule` is the rule it breaks, `strerror` describes it."""

    strerror: str

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(errno.EPERM, reason)
        self.rule = rule


def write_atomic(
    path: Path, data: bytes, *, mode: int = 0o600, sync_name: bool = True, changed: int | None = None
) -> None:
    """Replace a file atomically and durably: readers see the old one or the new one. The mode is exact.

    Without `sync_name` the old file may reappear after a power loss. The folder must exist. `changed` (Unix
    seconds) replaces the present as the time of its last change.
    """
    draft = _draft(path, data, mode)
    try:
        if changed is not None:
            os.utime(draft, (changed, changed))
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_folder(path.parent)


@contextmanager
def new_file(path: Path, *, mode: int = 0o600) -> Iterator[IO[bytes]]:
    """A file to write, there with all its content once the block has ended well and not before;
    FileExistsError when the name exists, even as a dangling link."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, _CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(descriptor, mode)
            yield handle
            handle.flush()
            os.fsync(descriptor)
        os.link(draft, path, follow_symlinks=False)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Create a file atomically and durably; FileExistsError as `new_file` has it."""
    with new_file(path, mode=mode) as handle:
        handle.write(data)


def _draft(path: Path, data: bytes, mode: int) -> Path:
    """Write the content to disk under another name in the same folder."""
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, _CREATE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(descriptor, mode)
            handle.write(data)
            handle.flush()
            os.fsync(descriptor)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_refused(path: Path, error: OSError) -> TryAgain:
    """What to raise for a disk that is full or read-only."""
    if error.errno == errno.EROFS:
        return TryAgain(
            f"{path}: the file system is read-only", remedy="mount it writable: dmesg may say why"
        )
    return TryAgain(f"{path}: no space left", remedy="free some disk space")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise TryAgain for a full or read-only disk, FleetError for any other OSError of the block."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_refused(path, error) from None
        raise FleetError(f"{path}: {error.strerror}", remedy=f"make {path.parent} writable") from None


def read_owned(  # noqa: PLR0913  each is a rule of who may own or write the file
    path: Path,
    limit: int,
    *,
    owner: bool = True,
    mode: int = 0o022,
    alone: bool = True,
    follow: bool = False,
    mark: Mark = "keep",
) -> bytes:
    """Read a whole regular file of at most `limit` bytes; never wait for the writer of a pipe.

    The file is checked before and after reading, and its name must still refer to it; a file that was
    replaced meanwhile is read again.

    Args:
        owner: the file must belong to this user or root.
        mode: mode bits that the file must not have.
        alone: the file must have no other name (hard link).
        follow: follow a symbolic link at the end of the path instead of refusing it.
        mark: drop or refuse the byte-order mark of a text; either refuses a text in UTF-16.

    Raises:
        UnfitFile: the file breaks a rule.
        OSError: from the system; ELOOP for a link.
        ValueError: a NUL in the path.
    """
    for last in (*[False] * (_TRIES - 1), True):
        descriptor = open_regular(path, follow=follow)
        try:
            opened = os.fstat(descriptor)
            _judge(opened, limit, owner, mode, alone)
            data = _read(descriptor, limit + 1)  # one more byte, to detect a file that has grown
            _judge(os.fstat(descriptor), limit, owner, mode, alone)
            named = _same(path, descriptor, follow)
            if alone:
                _judge(named, limit, owner, mode, alone)
                _unchanged(opened, named)
            return data if mark == "keep" else _unmarked(data, mark)
        except UnfitFile as error:
            if last or error.rule != "replaced":
                raise
        finally:
            os.close(descriptor)
    raise AssertionError("unreachable")


def read_bounded(path: Path, limit: int, *, follow: bool = False, mark: Mark = "keep") -> bytes:
    """Like `read_owned`, for a file that anyone may own, write or link."""
    return read_owned(path, limit, owner=False, mode=0, alone=False, follow=follow, mark=mark)


def open_regular(path: str | Path, *, follow: bool = False) -> int:
    """Open a regular file, and return a descriptor that the caller closes; UnfitFile for anything else."""
    descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFile("kind", "not a regular file")
    return descriptor


def open_owned(path: Path, *, append: bool = False) -> int:
    """Open a regular file of this user (or root) that only its owner writes, under no other name.

    Returns a descriptor that the caller closes. `append`: for reading and appending, created if missing
    (mode 0600). UnfitFile, or OSError from the system; ELOOP for a link.
    """
    flags = (_READ & ~os.O_RDONLY) | (os.O_RDWR | os.O_APPEND | os.O_CREAT if append else os.O_RDONLY)
    descriptor = os.open(path, flags | os.O_NOFOLLOW, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnfitFile("kind", "not a regular file")
        _judge(found, found.st_size, owner=True, mode=0o022, alone=True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _read(descriptor: int, most: int) -> bytes:
    data = b""
    while len(data) < most and (chunk := os.read(descriptor, most - len(data))):
        data += chunk
    return data


def _unmarked(data: bytes, mark: Mark) -> bytes:
    if data.startswith(_UTF_16):
        raise UnfitFile("mark", "text in UTF-16 (by its byte-order mark)")
    if mark == "refuse" and data.startswith(codecs.BOM_UTF8):
        raise UnfitFile("mark", "text behind a byte-order mark (the bytes EF BB BF before the first letter)")
    return data.removeprefix(codecs.BOM_UTF8)


def _judge(found: os.stat_result, limit: int, owner: bool, mode: int, alone: bool) -> None:
    if owner and found.st_uid not in (0, os.geteuid()):
        raise UnfitFile("owner", f"belongs to another user ({found.st_uid})")
    if found.st_mode & mode:
        letting = f"mode {stat.S_IMODE(found.st_mode):04o} lets others in"
        raise UnfitFile("mode", letting if mode & 0o055 else "writable by others")
    if found.st_nlink == 0:
        raise UnfitFile("replaced", "replaced repeatedly")
    if alone and found.st_nlink != 1:
        raise UnfitFile("links", "has other names (hard links)")
    if found.st_size > limit:
        raise UnfitFile("size", f"larger than {limit} bytes")


def _same(path: Path, descriptor: int, follow: bool) -> os.stat_result:
    """What the name means, if that is still the file read: a link elsewhere keeps the count of a replaced
    file."""
    try:
        named = os.stat(path, follow_symlinks=follow)
    except FileNotFoundError:
        named = None
    if named is None or not os.path.samestat(named, os.fstat(descriptor)):
        raise UnfitFile("replaced", "replaced repeatedly")
    return named


def _unchanged(opened: os.stat_result, named: os.stat_result) -> None:
    """Check that no name came or went from the first look to the last: a file of two names has one while its
    own is taken away, and each change of names changes its time."""
    if opened.st_ctime_ns != named.st_ctime_ns:
        raise UnfitFile("replaced", "replaced repeatedly")


def login(uid: int) -> str:
    """A user's name by number; not by the environment, where anybody may write another."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
