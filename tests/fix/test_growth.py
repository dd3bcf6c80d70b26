"""The bound on a work tree counts what it can see, and takes what it cannot see for too much."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fleet.fix.jails.growth import MOST, _fits
from fleet.jail.jail_spec import UNPRIVILEGED


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Root reads every folder; so the look is an ordinary user's."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(UNPRIVILEGED)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_that_cannot_be_read_could_hold_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").mkdir()
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with ordinary_user():
        seen = _fits(Path(), MOST)
    (tmp_path / "shut").chmod(0)
    with ordinary_user():
        unseen = _fits(Path(), MOST)
    (tmp_path / "shut").chmod(0o700)
    assert (seen, unseen) == (True, False)
