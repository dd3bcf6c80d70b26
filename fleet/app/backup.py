"""Backup of a state directory, and its return.

Left out: what is made anew (jails, caches, the lock, sockets, the bundled devnet, space held back), folders
of runs that owe nothing and have no evidence of an entry on the log, and the vault: what is destroyed there
must not come back. The sealed copy after a STOP has it.

A restore unpacks and checks everything inside the state directory first. Then STOP is set, what is there is
moved into `before-restore-<time>/`, and STOP is removed last: a restore that was killed leaves a fleet that
does nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote

from fleet import __version__
from fleet.app.archive import Manifest, unpack, write_archive
from fleet.app.bootstrap import SPOOL
from fleet.app.lock import only_one
from fleet.app.sealed import Ask, is_sealed, no_passphrase, seal, unseal
from fleet.clock import Clock, iso
from fleet.config import (
    FleetConfig,
    github_file,
    hook_files,
    key_file,
    model_key_file,
    notify_files,
    sink_file,
)
from fleet.disk_reserve import BALLAST
from fleet.errors import ConfigError, Refused, UsageError
from fleet.files import disk_errors, new_file, sync_folder, write_atomic
from fleet.gate.dial import DIAL, read_dial, write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import STOP, stopped
from fleet.runs.retention import look
from fleet.runs.vault import VAULT
from fleet.store.journal import Journal
from fleet.store.location import shown, store_place, without_password
from fleet.store.sql.online_copy import copy_journal

JOURNAL = "fleet.db"
"""The journal in a backup, and in the state directory, unless it is on a server."""
ASIDE, DRAFT = "before-restore-", ".restore-"
LOCK = "fleet.lock"
SKIPPED = frozenset(
    {
        SPOOL,
        BALLAST,
        LOCK,
        "advisories",
        "expectations",
        "devnet",
        "dumps",
        f"{JOURNAL}-wal",
        f"{JOURNAL}-shm",
    }
)
"""Top-level names that are not backed up."""


@dataclass(frozen=True, slots=True)
class BackupDifference:
    """What a restore changes: names of files that are new, other than here, or only here."""

    new: tuple[str, ...]
    changed: tuple[str, ...]
    only_here: tuple[str, ...]


async def back_up(  # noqa: PLR0913  one for each option of the command
    state: Path,
    target: Path,
    config: FleetConfig,
    place: Path | str,
    clock: Clock,
    *,
    keys: bool = True,
    all_runs: bool = False,
    vault: bool = False,
) -> Manifest:
    """Write a backup; a daemon may be running. The journal is copied first: files are never older than it.

    UsageError when the target exists, ConfigError for a damaged journal, TryAgain for a full disk.
    """
    if os.path.lexists(target):
        raise UsageError(f"{target} exists", remedy="name another file; a backup is never overwritten")
    private = {os.path.relpath(path, state) for path in _private(config, state)}
    sealed_for = config.keep.sealed_for
    where, prefix = (state, DRAFT) if sealed_for else (target.parent, ".backup-")
    with disk_errors(target), tempfile.TemporaryDirectory(prefix=prefix, dir=where) as spare:
        copied = Path(spare) / JOURNAL
        if isinstance(place, Path) and place.exists():
            copy_journal(place, copied)
        gone: Collection[str] = ()
        if not all_runs and (not isinstance(place, Path) or place.exists()):
            async with await Journal.open(place) as journal:
                gone = {one.run for one in await look(state, journal) if one.ended}
        members = [(JOURNAL, copied)] if copied.exists() else []
        for name, path in _files(state):
            parts = name.split("/")
            is_key = "keys" in parts or name in private
            if name == JOURNAL or (is_key and not keys) or (parts[0] == "runs" and parts[1] in gone):
                continue
            if parts[0] == VAULT and not vault:
                continue
            members.append((name, path))
        about = {
            "at": iso(clock.now()),
            "version": __version__,
            "platform": config.platform,
            "journal": JOURNAL if isinstance(place, Path) else shown(place),
            "dial": str(read_dial(state / DIAL).rung),
            "keys": keys,
            "all_runs": all_runs,
        }
        if not sealed_for:
            return write_archive(target, members, about)
        manifest = write_archive(Path(spare) / "plain.tar", members, about)
        packed = Path(spare) / "plain.tar.gz"
        with (
            (Path(spare) / "plain.tar").open("rb") as plain,
            new_file(packed) as out,
            gzip.GzipFile(fileobj=out, mode="wb", compresslevel=3, mtime=0) as zipped,
        ):
            shutil.copyfileobj(plain, zipped)
        seal(packed, target, sealed_for, config.keep.escrow)
        return manifest


@contextmanager
def unpacked(
    path: Path, state: Path, key: Path | None = None, ask: Ask = no_passphrase
) -> Iterator[tuple[Path, Manifest]]:
    """The checked content of a backup, in a folder inside the state directory that is removed at the end; a
    sealed one needs the `key`. ConfigError."""
    draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=state))
    folder = draft / "content"
    try:
        with disk_errors(draft):
            folder.mkdir(mode=0o700)
            if is_sealed(path):
                if key is None:
                    raise ConfigError(f"{path}: it is sealed", remedy="name the key's file: --key FILE")
                unseal(path, packed := draft / "plain.tar.gz", key, ask)
                path = packed
                if _is_compressed(packed):  # those of earlier versions are not
                    path = draft / "plain.tar"
                    with gzip.open(packed) as source, new_file(path) as plain:
                        shutil.copyfileobj(source, plain)
            manifest = unpack(path, folder)
        yield folder, manifest
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def dump_line(place: str, file: Path) -> str:
    """The command that copies the journal beside a backup; the password is libpq's business (~/.pgpass)."""
    target = quote(f"{file}.pgdump")
    return f"pg_dump --format=custom --no-owner --file={target} {quote(without_password(place))}"


async def check_place(manifest: Manifest, place: Path | str, file: Path) -> None:
    """Refused unless the journal is where the backup had it: in the backup itself, or on the server by now.

    Without its journal a fleet forgets what it owes and what it reported.
    """
    inside = manifest.journal == JOURNAL
    if isinstance(place, Path):
        if not inside:
            raise Refused(
                f"the backup's journal is on {manifest.journal}, and fleet.toml names no server",
                rule="restore",
                remedy="name the server in [store] url of fleet.toml",
            )
        return
    if inside:
        raise Refused(
            f"the backup has its journal in it, and fleet.toml names {shown(place)}",
            rule="restore",
            remedy="remove url and url_file from [store] in fleet.toml",
        )
    from fleet.store.sql.server import has_journal  # the driver is an extra

    if not await has_journal(place):
        options = "--no-owner --exit-on-error --single-transaction"
        target = f"--dbname={quote(without_password(place))} {quote(f'{file}.pgdump')}"
        raise Refused(
            f"{shown(place)} has no journal yet",
            rule="restore",
            remedy=f"first: pg_restore {options} {target}",
        )


async def check_journal(folder: Path) -> None:
    """ConfigError unless the unpacked journal is whole and its schema is known; migrates it."""
    if (folder / JOURNAL).exists():
        async with await Journal.open(folder / JOURNAL) as journal:
            if faults := await journal.faults():
                raise ConfigError(
                    f"the journal in the backup is damaged: {faults[0]}", remedy="use another one"
                )


def difference(folder: Path, state: Path) -> BackupDifference:
    """Compare an unpacked backup with the state directory, file by file."""
    theirs, ours = dict(_files(folder)), dict(_files(state))
    same = {name for name in theirs.keys() & ours if theirs[name].read_bytes() == ours[name].read_bytes()}
    return BackupDifference(
        tuple(sorted(theirs.keys() - ours)),
        tuple(sorted((theirs.keys() & ours) - same)),
        tuple(sorted(ours.keys() - theirs)),
    )


async def restore(  # noqa: PLR0913  one for each option of the command
    path: Path,
    state: Path,
    place: Path | str,
    clock: Clock,
    who: str,
    *,
    force: bool = False,
    keep_dial: bool = False,
    key: Path | None = None,
    ask: Ask = no_passphrase,
) -> tuple[Manifest, str]:
    """Put a backup in place of the state; the manifest, and the folder of the old state or "".

    `place` is where the journal is configured to be.

    TryAgain while a daemon runs, Refused over a state that is not empty without `force` or without the
    journal, ConfigError for a backup that is not whole.
    """
    with only_one(state), disk_errors(state):
        old = [
            name for name in sorted(os.listdir(state)) if name != LOCK and not name.startswith((ASIDE, DRAFT))
        ]
        if old and not force:
            raise Refused(
                f"{state} is not empty: {', '.join(old[:5])}",
                rule="restore",
                remedy="restore into another STATE_DIRECTORY, or --force: what is there is moved aside",
            )
        with unpacked(path, state, key, ask) as (folder, manifest):
            await check_place(manifest, place, path)
            await check_journal(folder)
            if not keep_dial:
                reason = f"restored from a backup of {manifest.at}, where it was {manifest.dial}"
                write_dial(folder, Rung.OBSERVE, reason, who, clock)
            aside = _swap(folder, state, old, clock.now())
    return manifest, aside


def _swap(folder: Path, state: Path, old: Collection[str], now: datetime) -> str:
    """Move the old state aside and the new one in, under STOP."""
    aside = state / f"{ASIDE}{iso(now).replace(':', '')}-{os.urandom(2).hex()}"
    aside.mkdir(mode=0o700)
    if STOP in old:
        shutil.copy2(state / STOP, aside / STOP, follow_symlinks=False)
    write_atomic(state / STOP, b"a restore has not been completed: run fleet backup restore --force again\n")
    for name in old:
        if name != STOP:
            os.rename(state / name, aside / name)
    for name in sorted(os.listdir(folder)):
        if name != STOP:
            os.rename(folder / name, state / name)
    sync_folder(state)
    if (folder / STOP).exists():
        os.rename(folder / STOP, state / STOP)
    else:
        (state / STOP).unlink()
    sync_folder(state)
    if not old:
        aside.rmdir()
    return str(aside) if old else ""


def _files(state: Path) -> Iterator[tuple[str, Path]]:
    """Plain files by their name below the state directory; links, sockets and what is SKIPPED left out."""
    for folder, below, names in os.walk(state, followlinks=False):
        is_top = Path(folder) == state
        if is_top:
            below[:] = [one for one in below if one not in SKIPPED and not one.startswith((ASIDE, DRAFT))]
            names = [one for one in names if one not in SKIPPED]
        below.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(state).as_posix(), path


def _private(config: FleetConfig, state: Path) -> Iterator[Path]:
    """Every configured file of a secret."""
    yield key_file(config, "identity", state)
    yield key_file(config, "sponsor", state)
    yield key_file(config, "purse", state)
    yield from (path for name in config.hooks for path in hook_files(config, name, state))
    yield from (sink_file(config, name, state) for name in config.sinks)
    yield from notify_files(config, state).values()
    repositories = (github_file(config, name, state) for name in config.repositories)
    yield from (path for path in (model_key_file(config, state), *repositories) if path is not None)
    if config.store.url_file:
        yield state / config.store.url_file


async def dump_on_stop(state: Path, config: FleetConfig, clock: Clock, known: str) -> tuple[str, Path | None]:
    """Seal a copy of the state, once for each STOP: its time, and the copy where one was made now. `known` is
    the last one that has a copy. Copies are read-only."""
    found = stopped(state)
    if found is None or not found.since or not config.keep.sealed_for or found.since == known:
        return known, None
    folder = state / config.keep.dumps
    target = folder / f"{found.since.replace(':', '')}.sealed"
    if target.exists():
        return found.since, None
    folder.mkdir(mode=0o700, exist_ok=True)
    await back_up(state, target, config, store_place(config.store, state), clock, keys=False, vault=True)
    target.chmod(0o400)
    return found.since, target


def sum_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
