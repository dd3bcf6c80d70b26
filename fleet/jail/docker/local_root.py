"""The image of a jail where none is configured: directories, links and the files of /etc, made in memory.

Everything that runs is mounted from the host, as in bubblewrap's jails. A tmpfs takes its mode from the
directory of the image that it covers, whatever its options say: so /box and /tmp have theirs here.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from functools import cache

from fleet.jail.bwrap.arguments import DATA
from fleet.jail.jail_spec import UNPRIVILEGED

REPOSITORY = "qa-fleet-jail"
_DIRECTORIES = (
    *((name, 0o755) for name in ("dev", "etc", "opt", "proc", "sys", "usr")),
    ("tmp", 0o1777),
    ("box", 0o700),
)
_LINKS = ("bin", "lib", "lib64")
_NOT_OURS = b"1000"  # the user as bubblewrap's jails name it


@cache
def root_archive() -> bytes:
    """The root as a tar of always the same bytes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode in _DIRECTORIES:
            _add(archive, name, tarfile.DIRTYPE, mode)
        for name in _LINKS:
            _add(archive, name, tarfile.SYMTYPE, 0o777, link=f"usr/{name}")
        for path, content in DATA:
            content = content.replace(_NOT_OURS, str(UNPRIVILEGED).encode())
            _add(archive, path.lstrip("/"), tarfile.REGTYPE, 0o644, content)
    return whole.getvalue()


def root_tag() -> str:
    """The tag of this very root: another content has another one."""
    return hashlib.sha256(root_archive()).hexdigest()[:16]


def _add(
    archive: tarfile.TarFile, name: str, kind: bytes, mode: int, content: bytes = b"", link: str = ""
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(content), link
    archive.addfile(entry, io.BytesIO(content))
