"""The two files that every pass of triage writes, and the reader of the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fleet.config import read_text
from fleet.files import disk_errors, write_atomic
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistDocument, WorklistHeader
from fleet.triage.outputs.json_file import read_document, to_json
from fleet.triage.outputs.markdown import to_markdown

NAME = "worklist.json"
_MOST = 1 << 30


def written(state: Path) -> WorklistDocument | None:
    """The list of the last triage; None when there is none. ConfigError for one that cannot be read."""
    path = state / NAME
    return read_document(read_text(path, limit=_MOST)) if path.exists() else None


def save(folder: Path, items: Sequence[WorklistItem], header: WorklistHeader, known: str = "") -> None:
    """Write `worklist.json` and `worklist.md`, each atomically; raises TryAgain when the disk is full."""
    texts = {"json": to_json(items, header, known), "md": to_markdown(items, header)}
    for kind, text in texts.items():
        path = folder / f"worklist.{kind}"
        with disk_errors(path):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(path, text)
