"""A daemon whose jail does not prove itself is none, however much of it was loaded by then."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from fleet.app.bootstrap import Bootstrap
from fleet.errors import JailError
from fleet.gate.stop import stopped
from fleet.jail.model import Tier
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


@pytest.mark.parametrize(("seen", "stops"), [("saw open; no filter", True), ("no jail could be made", False)])
async def test_a_jail_that_let_something_out_sets_stop(tmp_path: Path, seen: str, stops: bool) -> None:
    async def proof() -> Tier:
        return Tier(backend="x", tier="standard", ok=False, checks=(("unix sockets", False, seen),))

    missing: Any = None
    proving = asyncio.ensure_future(proof())
    held = Bootstrap(tmp_path, tmp_path, missing, missing, missing, missing, missing, proving)
    with pytest.raises(JailError, match="no jail works here"):
        await held.proven()
    reading = stopped(tmp_path)
    assert (reading is not None) is stops
    assert reading is None or ("unix sockets: saw open" in reading.why and reading.check)
