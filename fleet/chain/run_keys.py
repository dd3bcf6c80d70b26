"""The throwaway keys of one run, under its own folder, until the run is settled."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from fleet.chain.keys import Secret, address_of, fresh, load_key, write_new
from fleet.errors import ConfigError, Refused
from fleet.files import sync_folder

_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class RunKeys:
    """Keys at `<run_dir>/keys/<label>`, files 0600 in a 0700 folder; a new process finds them again.

    They outlive a crash on purpose: the janitor needs them to release what they own.
    """

    def __init__(self, run_dir: Path) -> None:
        self.folder = run_dir / "keys"

    def new(self, label: str) -> str:
        """Create a key durably and return its address. ConfigError when the label is taken."""
        return self.keep(label, fresh())

    def keep(self, label: str, key: Secret) -> str:
        """Store an existing key in the same way."""
        path = self._path(label)
        with suppress(FileExistsError):
            self.folder.mkdir(mode=0o700, parents=True)
            sync_folder(self.folder.parent)
        info = self.folder.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise ConfigError(f"{self.folder}: not a private folder", remedy=f"remove {self.folder}")
        write_new(path, key.reveal().hex().encode() + b"\n")
        return address_of(key)

    def get(self, label: str) -> Secret:
        """The key under this label; Refused when the run has none."""
        path = self._path(label)
        if label not in self.labels():
            raise Refused(f"this run has no key {label!r}", rule="key")
        return load_key(path)

    def labels(self) -> list[str]:
        """Every label, sorted; empty when the run has no keys."""
        if not self.folder.is_dir() or self.folder.is_symlink():
            return []
        return sorted(name for name in os.listdir(self.folder) if _LABEL.fullmatch(name))

    def addresses(self) -> dict[str, str]:
        """Label to address, without the keys in `broken`."""
        return {label: address_of(key) for label, key in self._each() if isinstance(key, Secret)}

    def broken(self) -> dict[str, ConfigError]:
        """Unusable keys by label, with the reason."""
        return {label: error for label, error in self._each() if isinstance(error, ConfigError)}

    def destroy(self, *, keep: Collection[str] = ()) -> int:
        """Overwrite and remove every file of the folder, half-written ones too; return their number."""
        if not self.folder.is_dir() or self.folder.is_symlink():
            return 0
        names = [name for name in os.listdir(self.folder) if name not in keep]
        for name in names:
            path = self.folder / name
            try:
                fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                pass  # a link or device that is not ours: remove only its name
            else:
                try:
                    info = os.fstat(fd)
                    # one link: do not overwrite another user's file through a hard link
                    if stat.S_ISREG(info.st_mode) and info.st_nlink == 1:
                        os.write(fd, bytes(info.st_size))
                        os.fsync(fd)
                finally:
                    os.close(fd)
            path.unlink()
        if not keep:
            self.folder.rmdir()
        sync_folder(self.folder.parent)
        return len(names)

    def _each(self) -> Iterator[tuple[str, Secret | ConfigError]]:
        for label in self.labels():
            try:
                yield label, load_key(self._path(label))
            except ConfigError as error:
                yield label, error

    def _path(self, label: str) -> Path:
        if not _LABEL.fullmatch(label):
            raise Refused("a key label is 1-63 of a-z, 0-9 and '-'", rule="key")
        return self.folder / label
