"""The file format of a backup: one plain tar, its last member a manifest with the SHA-256 of every other one.

    {"v": 1, "at": ISO, "version": "0.1.0", "platform": "devnet", "journal": "fleet.db" | "postgresql://…",
     "dial": "propose", "keys": true, "all_runs": false,
     "files": {"keys/identity": {"sha256": "…", "size": 65, "mode": 384}, …}}

What is read may be hostile: only plain files and folders, no sparse ones, no compression, names below the
folder, no name twice, and not a byte more than the archive has.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.errors import ConfigError, FleetError
from fleet.files import new_file, open_regular

MANIFEST = "MANIFEST.json"
LARGEST_MANIFEST = 64 << 20
LEVELS = 100
"""Most folders above a file: deeper ones cannot be walked or removed with what the standard library has."""
_CHUNK = 1 << 20
_UNUSABLE = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL})
"""How a name fails that no file can have beside the others."""


class ArchivedFile(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    size: int
    mode: int


class Manifest(BaseModel):
    """What a backup says of itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    v: int = 1
    at: str
    version: str
    platform: str
    journal: str
    dial: str
    keys: bool
    all_runs: bool
    files: dict[str, ArchivedFile]


@dataclass(slots=True)
class _Measured:
    """A file that is hashed while it is read, and read no further than it was at the start."""

    handle: IO[bytes]
    left: int
    sha256: hashlib._Hash = field(default_factory=hashlib.sha256)

    def read(self, size: int = -1) -> bytes:
        data = self.handle.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(data)
        self.sha256.update(data)
        return data


def write_archive(path: Path, members: Iterable[tuple[str, Path]], about: Mapping[str, object]) -> Manifest:
    """Write it atomically (mode 0600); FileExistsError when the name is taken.

    A file that grows meanwhile is taken as long as it was; one that disappears is left out.
    """
    files: dict[str, ArchivedFile] = {}
    with new_file(path) as out, tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for name, source in members:
            if (one := _add(tar, name, source)) is not None:
                files[name] = one
        manifest = Manifest.model_validate({**about, "files": files})
        said = manifest.model_dump_json(indent=1).encode()
        tar.addfile(_info(MANIFEST, len(said), 0o600), io.BytesIO(said))
    return manifest


def _add(tar: tarfile.TarFile, name: str, source: Path) -> ArchivedFile | None:
    if name.count("/") > LEVELS:
        raise FleetError(f"{source}: below more than {LEVELS} folders", remedy="move it away, or remove it")
    try:
        descriptor = open_regular(source)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as handle:
        found = os.fstat(handle.fileno())
        measured, mode = _Measured(handle, found.st_size), stat.S_IMODE(found.st_mode) & 0o755
        try:
            tar.addfile(_info(name, found.st_size, mode), measured)
        except OSError as error:
            raise FleetError(f"{source}: changed while it was read: {error}", remedy="try again") from None
    return ArchivedFile(sha256=measured.sha256.hexdigest(), size=found.st_size, mode=mode)


def _info(name: str, size: int, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, mode
    return info


def unpack(path: Path, folder: Path) -> Manifest:
    """Unpack into an empty folder and check every byte; ConfigError names the first thing that is wrong."""
    try:
        with path.open("rb") as handle:
            return _unpack(handle, os.fstat(handle.fileno()).st_size, path, folder)
    except FileNotFoundError:
        raise ConfigError(f"{path}: not found") from None
    except (tarfile.TarError, EOFError, UnicodeError, ValueError, RecursionError) as error:
        raise _bad(path, f"not a backup: {error}") from None
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        raise _bad(path, f"a name in it cannot be a file's: {error.strerror}") from None


def _unpack(handle: IO[bytes], most: int, path: Path, folder: Path) -> Manifest:
    seen: dict[str, ArchivedFile] = {}
    said = b""
    with tarfile.open(fileobj=handle, mode="r:") as tar:
        for info in tar:
            most -= info.size
            if not info.isreg() or info.issparse() or info.size < 0 or most < 0:
                raise _bad(path, f"{info.name!r} is not a plain file")
            if info.name in seen or said:
                raise _bad(path, f"{info.name!r} is there twice, or after the manifest")
            if info.name != os.path.normpath(info.name) or info.name.startswith(("/", "..")):
                raise _bad(path, f"{info.name[:200]!r} is not a name below the state directory")
            if info.name.count("/") > LEVELS:
                raise _bad(path, f"{info.name[:200]!r} is below more than {LEVELS} folders")
            content = tar.extractfile(info)
            assert content is not None
            if info.name == MANIFEST:
                said = content.read(LARGEST_MANIFEST)
                continue
            tar.extract(info, folder, filter="data")
            with (folder / info.name).open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            seen[info.name] = ArchivedFile(sha256=digest, size=info.size, mode=info.mode & 0o755)
    try:
        manifest = Manifest.model_validate_json(said)
    except ValidationError:
        raise _bad(path, "its manifest is missing or cannot be read") from None
    wrong = sorted(name for name in {*seen, *manifest.files} if seen.get(name) != manifest.files.get(name))
    if manifest.v != 1 or wrong:
        raise _bad(path, f"{wrong[0]!r} is not what the manifest says" if wrong else "of another version")
    return manifest


def _bad(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path}: {why}", remedy="use another backup; nothing was changed")
