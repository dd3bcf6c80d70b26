"""Personas of two folders, the shipped ones and one's own: the file in the last folder is in use."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fleet.personas.load import LoadedPersona
from fleet.service.persona_watcher import PersonaWatcher
from fleet.triggers.files import Change, ChangeKind

pytestmark = pytest.mark.anyio


def loaded(path: Path) -> LoadedPersona:
    return cast("LoadedPersona", SimpleNamespace(path=path, sha256=path.read_text(), persona=path.stem))


async def planned(_: object) -> None: ...


async def test_one_s_own_file_stands_before_the_shipped_one_and_gives_way_to_it(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped" / "qa-x.md", tmp_path / "own" / "qa-x.md"
    told = list[str]()
    triggers: Any = SimpleNamespace(plan=planned, drop=lambda name: told.append(f"dropped {name}"))
    feed: Any = SimpleNamespace(publish=lambda event: told.append(event.type))
    watcher = PersonaWatcher((shipped.parent, own.parent), {}, loaded, triggers, feed)

    async def seen(kind: ChangeKind, path: Path, text: str = "") -> tuple[str, list[str]]:
        """What is in use after a change of a file, and what was told of it."""
        told.clear()
        path.parent.mkdir(exist_ok=True)
        path.write_text(text) if text else path.unlink()
        await watcher.take(Change(kind, path, text))
        used = watcher.personas.get("qa-x")
        return used.sha256 if used else "", list(told)

    assert await seen("added", shipped, "1") == ("1", ["persona.added"])
    assert await seen("added", own, "2") == ("2", ["persona.changed"])
    assert await seen("changed", shipped, "3") == ("2", [])  # it is not the one in use
    assert await seen("removed", own) == ("3", ["persona.changed"])
    assert await seen("removed", shipped) == ("", ["dropped qa-x", "persona.removed"])
