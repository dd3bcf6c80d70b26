"""A daemon whose jail does not prove itself is none, however much of it was loaded by then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.service.conftest import Up

pytestmark = [pytest.mark.anyio, pytest.mark.devnet]


async def test_without_a_jail_that_holds_nothing_starts(up: Up, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'namespace failed' >&2\nexit 1\n")
    broken.chmod(0o755)
    process = up.start(PATH=f"{broken.parent}:{os.environ['PATH']}")
    await up.until(lambda: process.poll() is not None)
    assert process.returncode not in (0, None)
    assert "no jail works here" in up.log()
    assert not (up.state / "events.jsonl").exists()
