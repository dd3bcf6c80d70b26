"""The word of a jail's PID 1: believed only when it is JSON, small, and what bubblewrap says too."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.jail.model import End, Limits
from fleet.jail.running_jail import RunningJail


def verdict(word: bytes, returncode: int) -> tuple[End, int]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    outer: Any = SimpleNamespace(returncode=returncode)
    with ours, theirs:
        if word:
            theirs.send(word)
        live = RunningJail(
            outer=outer,
            control=ours,
            listener=ours,
            stdin=-1,
            stdout=-1,
            stderr=-1,
            record=Path("none"),
            limits=Limits(),
        )
        return live._verdict()


@pytest.mark.parametrize(
    ("word", "returncode", "found"),
    [
        (b'{"exit": 3}', 3, (End.EXITED, 3)),
        (b'{"signal": 9}', 137, (End.SIGNALED, 9)),
        (b'{"exit": 0}', 1, (End.LOST, 0)),
        (b'{"signal": 9}', 9, (End.LOST, 0)),
        (b"", 0, (End.LOST, 0)),
        (b"exit 0", 0, (End.LOST, 0)),
        (b'{"exit": NaN}', 0, (End.LOST, 0)),
        (b'{"exit": ' + b"0" * 200 + b"}", 0, (End.LOST, 0)),
        (b'{"exit": ' + b"9" * 4_000 + b"}", 0, (End.LOST, 0)),
        (b'{"exit": ' + b"[" * 4_000, 0, (End.LOST, 0)),
        (b"\xff\xfe{", 0, (End.LOST, 0)),
    ],
)
def test_a_word_is_believed_only_when_bubblewrap_agrees(
    word: bytes, returncode: int, found: tuple[End, int]
) -> None:
    assert verdict(word, returncode) == found
