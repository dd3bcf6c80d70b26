"""Archives that are not what they say: each is refused, and nothing is written outside."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.app.archive import LEVELS, MANIFEST, unpack, write_archive
from fleet.app.backup import back_up, restore
from fleet.config import FleetConfig
from fleet.errors import ConfigError, FleetError
from tests.backup.test_backup import CLOCK, fill
from tests.triage.triage_log import ScriptedLog


def archive(path: Path, *infos: tuple[tarfile.TarInfo, bytes], listed: bool = True, mode: str = "w") -> None:
    """A tar by hand, with a manifest that fits it."""
    files = {
        info.name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "mode": 0o600}
        for info, data in infos
        if listed
    }
    about = {"v": 1, "at": "x", "version": "x", "platform": "p", "journal": "fleet.db", "dial": "observe"}
    said = json.dumps({**about, "keys": True, "all_runs": False, "files": files}).encode()
    last = tarfile.TarInfo(MANIFEST)
    last.size = len(said)
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, data in infos:
            tar.addfile(info, io.BytesIO(data))
        tar.addfile(last, io.BytesIO(said))


def entry(name: str, data: bytes = b"x", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def header(kind: bytes) -> bytes:
    """A header about the next one, with nothing to say."""
    info = tarfile.TarInfo("h")
    info.type, info.size = kind, 0
    return info.tobuf(tarfile.USTAR_FORMAT)


LINK = entry("keys", b"", type=tarfile.SYMTYPE, linkname="/etc")
HOSTILE: dict[str, Callable[[Path], object]] = {
    "a name above": lambda path: archive(path, entry("../evil")),
    "a name above, inside": lambda path: archive(path, entry("keys/../../evil")),
    "an absolute name": lambda path: archive(path, entry("/tmp/evil")),
    "a link": lambda path: archive(path, LINK),
    "a file through a link": lambda path: archive(path, LINK, entry("keys/evil")),
    "a hard link": lambda path: archive(path, entry("h", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd")),
    "a device": lambda path: archive(path, entry("null", b"", type=tarfile.CHRTYPE)),
    "a pipe": lambda path: archive(path, entry("pipe", b"", type=tarfile.FIFOTYPE)),
    "a folder": lambda path: archive(path, entry("runs", b"", type=tarfile.DIRTYPE)),
    "a name twice": lambda path: archive(path, entry("a", b"x"), entry("a", b"y")),
    "an unlisted file": lambda path: archive(path, entry("a"), listed=False),
    "a bomb": lambda path: archive(path, entry("a", b"\0" * 4_000_000), mode="w:gz"),
    "no tar": lambda path: path.write_bytes(b"not a tar" * 500),
    "nothing": lambda path: path.write_bytes(b""),
    "folders beyond the system's names": lambda path: archive(path, entry("a/" * 3_000 + "x")),
    "folders beyond ours": lambda path: archive(path, entry("a/" * 1_500 + "x")),
    "a few too many folders": lambda path: archive(path, entry("a/" * (LEVELS + 1) + "x")),
    "a name that is too long": lambda path: archive(path, entry("a" * 256)),
    "a zero byte": lambda path: archive(path, entry("a\0b")),
    "a lone surrogate": lambda path: archive(path, entry("a\udcff")),
    "a file that is a folder": lambda path: archive(path, entry("a"), entry("a/b")),
    "a folder that is a file": lambda path: archive(path, entry("a/b"), entry("a")),
    "an empty name": lambda path: archive(path, entry("")),
    "the folder itself": lambda path: archive(path, entry(".")),
    "headers of headers": lambda path: path.write_bytes(b"".join(header(b"x") for _ in range(3_000))),
    "no manifest": lambda path: tarfile.open(path, "w").close(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(tmp_path: Path, kind: str) -> None:
    HOSTILE[kind](tmp_path / "b.tar")
    (tmp_path / "into").mkdir()
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ConfigError):
        unpack(tmp_path / "b.tar", tmp_path / "into")
    assert sorted(os.listdir(tmp_path)) == before
    assert not Path("/tmp/evil").exists()


def test_a_size_that_the_archive_does_not_have_is_refused(tmp_path: Path) -> None:
    info, _ = entry("a")
    (tmp_path / "into").mkdir()
    (tmp_path / "b.tar").write_bytes(replace_size(info, 1 << 40) + b"\0" * 1024)
    with pytest.raises(ConfigError, match=r"not a plain file|not a backup"):
        unpack(tmp_path / "b.tar", tmp_path / "into")
    assert os.listdir(tmp_path / "into") == []


def replace_size(info: tarfile.TarInfo, size: int) -> bytes:
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("levels", [LEVELS + 1, 1_500])
def test_what_could_not_be_restored_is_not_backed_up(tmp_path: Path, levels: int) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(FleetError, match=f"more than {LEVELS} folders"):
        write_archive(tmp_path / "b.tar", [("a/" * levels + "x", tmp_path / "x")], {})
    assert os.listdir(tmp_path) == ["x"]
    about = {"at": "x", "version": "x", "platform": "p", "journal": "fleet.db", "dial": "observe"}
    deepest = "a/" * LEVELS + "x"
    write_archive(tmp_path / "b.tar", [(deepest, tmp_path / "x")], {**about, "keys": True, "all_runs": False})
    assert list(unpack(tmp_path / "b.tar", tmp_path / "into").files) == [deepest]


@pytest.mark.anyio
async def test_one_changed_byte_and_a_damaged_journal_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state, file = tmp_path / "state", tmp_path / "b.tar"
    await fill(state, ScriptedLog())
    (state / "learned" / "p" / "qa-ux.json").write_text("a question")
    await back_up(state, file, FleetConfig(), state / "fleet.db", CLOCK)
    file.write_bytes(file.read_bytes().replace(b"a question", b"A question"))
    (tmp_path / "into").mkdir()
    with pytest.raises(ConfigError, match="not what the manifest says"):
        unpack(file, tmp_path / "into")
    (tmp_path / "other").mkdir()
    archive(file, entry("fleet.db", b"not a database" * 400))
    with pytest.raises(FleetError, match="not a database"):
        await restore(file, tmp_path / "other", tmp_path / "other" / "fleet.db", CLOCK, "operator")
    assert os.listdir(tmp_path / "other") == ["fleet.lock"]
