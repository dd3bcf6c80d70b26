"""Whether a folder is on a disk of its own encryption, and whether the keys of what is sealed are fresh."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from fleet.config.fleet import KeepSection
from fleet.errors import ConfigError

KEYS_DAYS = 90
"""Days after which a key of what is sealed is to be changed."""
_SYS, _MOUNTS = Path("/sys"), Path("/proc/self/mountinfo")


def encrypted_by(folder: Path, *, sys: Path = _SYS, mounts: Path = _MOUNTS) -> str:
    """The device of dm-crypt (LUKS, or plain) that a folder's file system is on; "" for none.

    One below another kind of mapping (LVM, RAID) counts when all that this one consists of are encrypted.
    """
    found = ("", "")
    for row in mounts.read_text("utf-8", "replace").splitlines():
        fields, _, rest = row.partition(" - ")
        at = fields.split()[4].encode().decode("unicode_escape")
        if folder.resolve().is_relative_to(at) and len(at) >= len(found[0]):
            found = (at, rest.split()[1])
    device = Path(found[1])
    return _crypt(device.resolve().name, sys) if device.is_absolute() else ""


def _crypt(block: str, sys: Path) -> str:
    here = sys / "class" / "block" / block
    try:
        if (here / "dm" / "uuid").read_text().startswith("CRYPT-"):
            return block
    except OSError:
        pass
    try:
        below = [_crypt(one.name, sys) for one in sorted((here / "slaves").iterdir())]
    except OSError:
        below = []
    return ", ".join(below) if below and all(below) else ""


def require_encrypted(keep: KeepSection, state: Path) -> None:
    """ConfigError where `[keep] encrypted` asks for an encrypted disk and the state directory is on none."""
    if keep.encrypted and not encrypted_by(state):
        raise ConfigError(
            f"keep.encrypted: {state} is on no disk that dm-crypt encrypts",
            remedy="put the state directory on a LUKS volume (AES-256), or set keep.encrypted = false",
        )


def stale_keys(keep: KeepSection, today: date) -> str:
    """Why the keys of what is sealed are to be changed; "" while they are not."""
    if not keep.sealed_for:
        return ""
    if keep.keys_since is None:
        return "keep.keys_since does not say since when they are in use"
    age = (today - keep.keys_since).days
    return f"in use for {age} days, more than {KEYS_DAYS}" if age > KEYS_DAYS else ""
