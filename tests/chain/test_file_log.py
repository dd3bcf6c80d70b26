"""What only a file shows: crashes, damage, links, foreign owners, two writers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import anyio
import pytest

from fleet.chain.log.file_log import FileLog
from fleet.chain.signing.judge import SigningLimits
from fleet.errors import ConfigError, Refused, TryAgain, Unreachable
from tests.chain.conftest import Dial
from tests.doubles.chain import MemoryChain

pytestmark = pytest.mark.anyio


def opened(path: Path, *, reads: bool = False) -> FileLog:
    signer = None if reads else MemoryChain(SigningLimits(rung=Dial())).signer
    return FileLog(path, signer)


async def texts(path: Path) -> list[str]:
    return [entry.text for entry in await opened(path, reads=True).range(0, 1_000)]


@pytest.mark.parametrize("torn", [1, 20, -2, -1])
async def test_a_line_that_a_crash_tore_is_ignored_and_cut_off(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "log.jsonl"
    log = opened(path)
    await log.post_many(["one", "two"])
    whole = path.read_bytes()
    await log.post("torn")
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:torn])
    assert await texts(path) == ["one", "two"]
    assert await log.count() == 2
    assert (await log.post("three")).index == 2
    assert await texts(path) == ["one", "two", "three"]


async def test_a_last_line_of_nothing_but_a_newline_is_torn_too(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    await opened(path).post("one")
    path.write_bytes(path.read_bytes() + b"\0" * 100 + b"\n")
    assert await texts(path) == ["one"]
    assert (await opened(path).post("two")).index == 1
    assert await texts(path) == ["one", "two"]


async def test_what_the_disk_refused_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    await opened(path).post("one")
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TryAgain):
        await opened(path).post("two")
    assert path.read_bytes() == before


async def test_a_damaged_line_is_named_and_nothing_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    await opened(path).post_many(["one", "two", "three"])
    before = path.read_bytes().replace(b'"two"', b'"TWO"')
    path.write_bytes(before)
    with pytest.raises(Unreachable, match="line 2 is damaged"):
        await texts(path)
    assert path.read_bytes() == before


async def test_a_link_is_not_a_log(tmp_path: Path) -> None:
    path, real = tmp_path / "log.jsonl", tmp_path / "elsewhere"
    real.touch(mode=0o600)
    path.symlink_to(real)
    for act in (opened(path).post("x"), opened(path).count()):
        with pytest.raises(ConfigError, match="a symbolic link"):
            await act
    assert real.read_bytes() == b""


async def test_a_file_that_others_may_write_is_not_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    await opened(path).post("one")
    path.chmod(0o622)
    with pytest.raises(ConfigError, match="writable by others"):
        await opened(path).post("two")
    path.chmod(0o600)
    assert await texts(path) == ["one"]


async def test_a_strangers_file_is_not_a_log(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = tmp_path / "log.jsonl"
    await opened(path).post("one")
    os.chown(path, 12_345, -1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        await opened(path).count()


async def test_a_pipe_is_not_a_log(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log.jsonl", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        await opened(tmp_path / "log.jsonl").post("x")


async def test_a_log_without_a_signer_only_reads(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        await opened(tmp_path / "log.jsonl", reads=True).post("x")
    assert not (tmp_path / "log.jsonl").exists()


async def test_the_file_is_private_and_so_is_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "log.jsonl"
    await opened(path).post("x")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_an_open_log_notices_another_file_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = opened(path)
    await log.post_many(["a", "b", "c"])
    path.unlink()
    await opened(path).post_many(["x", "y", "z", "and more"])
    assert [entry.text for entry in await log.range(0, 9)] == ["x", "y", "z", "and more"]
    assert (await log.post("last")).index == 4


async def test_two_writers_of_one_file_take_turns(tmp_path: Path) -> None:
    """Each has a descriptor of its own, as two processes have: the lock belongs to it."""
    path = tmp_path / "log.jsonl"

    async def write(who: str) -> None:
        log = opened(path)
        for n in range(25):
            await log.post_many([f"{who} {n}", f"{who} {n} too"])

    async with anyio.create_task_group() as group:
        for who in "abcd":
            group.start_soon(write, who)
    found = await texts(path)
    assert len(found) == 200
    for who in "abcd":
        mine = [text for text in found if text[0] == who]
        assert mine == [text for n in range(25) for text in (f"{who} {n}", f"{who} {n} too")]
