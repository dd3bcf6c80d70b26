"""A reading of the dial is of the file that has the dial's name, whatever happens while it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.gate.dial import DIAL, DialReading, read_dial
from fleet.gate.model import Rung


@pytest.fixture
def dial(tmp_path: Path) -> Path:
    path = tmp_path / DIAL
    turn(path, Rung.PROPOSE)
    return path


def turn(path: Path, rung: Rung) -> None:
    new = path.with_name("new")
    new.write_text(rung.value + "\n")
    new.chmod(0o600)
    new.replace(path)


def just(
    monkeypatch: pytest.MonkeyPatch, name: str, path: Path, act: Callable[[], object], *, times: int = 1
) -> None:
    """Let `act` happen right after `os.open` of the dial, or right before `os.read` of anything."""
    plain, left = getattr(os, name), [times]

    def raced(first: Any, *rest: Any, **named: Any) -> Any:
        mine = left[0] > 0 and (name == "read" or first == path)
        left[0] -= mine
        if mine and name == "read":
            act()
        found = plain(first, *rest, **named)
        if mine and name == "open":
            act()
        return found

    monkeypatch.setattr(os, name, raced)


def keep_and_turn(path: Path) -> None:
    """A link elsewhere keeps the old file alive, so that its count of names is one when it is replaced."""
    path.with_name("kept").unlink(missing_ok=True)
    os.link(path, path.with_name("kept"))
    turn(path, Rung.OBSERVE)


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_link_elsewhere_does_not_keep_an_old_word_alive(
    dial: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    just(monkeypatch, call, dial, lambda: keep_and_turn(dial))
    assert read_dial(dial) == DialReading(Rung.OBSERVE, True)
    assert (dial.with_name("kept").read_text(), dial.read_text()) == ("propose\n", "observe\n")


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_name_that_comes_while_it_is_read_is_seen(
    dial: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    just(monkeypatch, call, dial, lambda: os.link(dial, dial.with_name("other")))
    assert read_dial(dial) == DialReading(Rung.OBSERVE, False, "autonomy: has other names (hard links)")


def test_a_dial_that_goes_while_it_is_read_is_gone(dial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    just(monkeypatch, "read", dial, lambda: dial.rename(dial.with_name("kept")))
    assert read_dial(dial) == DialReading(Rung.OBSERVE, False, "autonomy: missing")


def test_a_mode_that_opens_while_it_is_read_is_seen(dial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    just(monkeypatch, "read", dial, lambda: dial.chmod(0o602))
    assert read_dial(dial) == DialReading(Rung.OBSERVE, False, "autonomy: writable by others")


def test_one_that_is_never_still_is_observe(dial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    just(monkeypatch, "open", dial, lambda: turn(dial, Rung.PROPOSE), times=99)
    assert read_dial(dial) == DialReading(Rung.OBSERVE, False, "autonomy: replaced repeatedly")


def away(path: Path) -> None:
    path.unlink()


def back(path: Path) -> None:
    os.link(path.with_name("other"), path)


@pytest.mark.parametrize("gone", ["open", "read"])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_hard_link_is_never_believed_whenever_its_name_goes_and_comes_back(
    dial: Path, monkeypatch: pytest.MonkeyPatch, gone: str, leaves: bool
) -> None:
    """Without its own name a file of two names has one: that must not be taken for a file of one name."""
    os.rename(dial, dial.with_name("other"))
    back(dial)
    plain = os.stat

    def named(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        """The last look: the name is back, and may go again before the file's state is read."""
        if path == dial and not os.path.lexists(dial):
            back(dial)
            if leaves:
                away(dial)
                return plain(dial.with_name("other"))
        return plain(path, *rest, **more)

    just(monkeypatch, gone, dial, lambda: away(dial) if os.path.lexists(dial) else None, times=99)
    monkeypatch.setattr(os, "stat", named)
    reading = read_dial(dial)
    assert (reading.rung, reading.trusted) == (Rung.OBSERVE, False)
