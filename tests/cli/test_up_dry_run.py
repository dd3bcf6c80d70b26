"""`fleet up --dry-run` says when each persona would start first, and keeps nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from fleet.cli.operate import up
from fleet.clock import iso
from fleet.service.triggers import SEEN
from fleet.store.journal import Journal


def test_it_has_every_next_start_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    now = datetime.now(UTC)

    def planned() -> dict[str, str]:
        said = CliRunner().invoke(up.app, ["--dry-run", "--json", "--platform", "example"])
        assert said.exit_code == 0, said.output
        return {row["persona"]: row["next"] for row in json.loads(said.stdout)["personas"]}

    first = planned()
    assert not (tmp_path / "fleet.db").exists()
    assert first["qa-fix"] == ""  # only an event starts it
    clocked = [first[name] for name in ("qa-perf", "qa-fuzz", "qa-smoke", "qa-triage")]
    assert min(clocked) >= iso(now)
    assert max(clocked) <= iso(now + timedelta(minutes=11))

    async def seen(value: str | None) -> str | None:
        async with await Journal.open(tmp_path / "fleet.db") as journal:
            if value is not None:
                await journal.put(SEEN, value)
            return await journal.get(SEEN)

    kept = json.dumps({"qa-perf": iso(now + timedelta(minutes=7))})
    anyio.run(seen, kept)
    assert planned()["qa-perf"] == json.loads(kept)["qa-perf"]
    assert anyio.run(seen, None) == kept
