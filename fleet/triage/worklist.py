"""The worklist for people and programs: `worklist.json` and `worklist.md`.

Everything in an item was cleaned when it was read; Markdown gets its own escaping here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fleet.files import disk_errors, write_atomic
from fleet.text import markdown, markdown_code
from fleet.triage.unproven import UnprovenCandidate

State = Literal["verified", "flaky", "unverified", "needs-repro", "untrusted"]

SCHEMA = 1
SHOWN = 200
"""Items in the Markdown file; the JSON file has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorklistItem:
    """One cluster of findings and the reason for its rank.

    `repro` is empty for untrusted items: a stranger's is shown only to a person who asks. `evidence` is the
    SHA-256 of the bundle. Times are ISO 8601; `resolved_at` is set when `regression` is.
    """

    rank: int
    fingerprint: str
    severity: str
    surface: str
    title: str
    count: int
    verified: bool
    repro: str
    evidence: str
    score: float
    why: str
    first_seen: str
    last_seen: str
    senders: tuple[str, ...]
    trusted: bool
    state: State
    regression: bool = False
    resolved_at: str = ""


def digest(items: Sequence[WorklistItem]) -> str:
    """SHA-256 of the whole list: equal lists, equal digests."""
    return hashlib.sha256(_dump([asdict(item) for item in items], indent=None)).hexdigest()


def to_json(items: Sequence[WorklistItem], changed_at: str, left: Sequence[UnprovenCandidate] = ()) -> bytes:
    """`worklist.json`: ends with a newline, keys in a fixed order. `left` are not on the log."""
    record = {
        "schema": SCHEMA,
        "digest": digest(items),
        "changed_at": changed_at,
        "items": [asdict(item) for item in items],
    } | ({"unproven": [asdict(one) for one in left]} if left else {})
    return _dump(record, indent=1) + b"\n"


def _dump(value: Any, *, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8")


def to_markdown(
    items: Sequence[WorklistItem], changed_at: str, left: Sequence[UnprovenCandidate] = ()
) -> bytes:
    """`worklist.md`: a table for the eye, then one section per item with its why and its repro."""
    proven = sum(item.state in ("verified", "flaky") for item in items)
    lines = ["# Worklist", "", f"{len(items)} open, {proven} proven. Changed {changed_at or 'never'}.", ""]
    lines += _left(left)
    if not items:
        return "\n".join([*lines, "Nothing to do." if not left else "Nothing is proven.", ""]).encode()
    lines += ["| # | severity | surface | finding | count | state | score |", "|--:|---|---|---|--:|---|--:|"]
    lines += [_row(item) for item in items[:SHOWN]]
    for item in items[:SHOWN]:
        lines += ["", *_section(item)]
    if len(items) > SHOWN:
        lines += ["", f"{len(items) - SHOWN} more in `worklist.json`."]
    return ("\n".join(lines) + "\n").encode()


def _left(left: Sequence[UnprovenCandidate]) -> list[str]:
    """Grave findings that could not be proven: a separate section before the ranked items."""
    if not left:
        return []
    lines = [f"## Not proven yet: {len(left)}", ""]
    lines += [
        f"- {one.severity}, {markdown(one.surface)}: {markdown(one.title)} (`{one.fingerprint}`, "
        f"run {markdown(one.run)} of {markdown(one.persona)}: {markdown(one.why)})"
        for one in left[:SHOWN]
    ]
    return [*lines, ""]


def _row(item: WorklistItem) -> str:
    state = f"{item.state}, regression" if item.regression else item.state
    cells = (
        str(item.rank),
        item.severity,
        markdown(item.surface),
        markdown(item.title),
        str(item.count),
        state,
    )
    return f"| {' | '.join(cells)} | {item.score:g} |"


def _section(item: WorklistItem) -> list[str]:
    senders = ", ".join(markdown_code(sender) for sender in item.senders)
    lines = [
        f"## {item.rank}. {markdown(item.title)}",
        "",
        f"- why: {markdown(item.why)}",
        f"- fingerprint: `{item.fingerprint}`",
        f"- seen: {item.first_seen} to {item.last_seen}, by {senders}",
    ]
    if item.repro:
        lines.append(f"- repro: {markdown_code(item.repro)}")
    if item.evidence:
        lines.append(f"- evidence: `sha256:{item.evidence}`")
    return lines


def save(
    folder: Path, items: Sequence[WorklistItem], changed_at: str, left: Sequence[UnprovenCandidate] = ()
) -> None:
    """Write both files, each atomically; raises TryAgain when the disk is full."""
    texts = {"json": to_json(items, changed_at, left), "md": to_markdown(items, changed_at, left)}
    for kind, text in texts.items():
        path = folder / f"worklist.{kind}"
        with disk_errors(path):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(path, text)
