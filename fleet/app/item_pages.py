"""Gathers the pages of items for their outputs: rows of the journal, evidence and pictures of their runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from fleet.app.journal import from_journal
from fleet.app.program import program
from fleet.config import load_fleet, load_platform
from fleet.errors import FleetError
from fleet.files import read_bounded
from fleet.findings.evidence import load
from fleet.store.rows import FindingRow
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.item_page import ItemPage, Picture, item_page
from fleet.triage.outputs.repro_shell import ShellPlace
from sandbox.tools import TOOLS

MOST = 500
"""Items of a list whose evidence is read; the others are shown by their kind and repro."""
PICTURE = 1_000_000
"""Bytes of one picture."""
PICTURES = 3
"""Of one item: the page as it was seen, or the plots of a measure."""
ALL_PICTURES = 16_000_000
"""Bytes of all pictures in one output."""
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_TYPES: dict[str, Literal["image/png", "image/svg+xml"]] = {".png": "image/png", ".svg": "image/svg+xml"}


async def pages_of(state: Path, items: Sequence[WorklistItem]) -> dict[str, ItemPage]:
    """The pages of a list's items by fingerprint."""
    rows: list[FindingRow] = await from_journal(state, lambda journal: journal.findings(), [])
    by_name: dict[str, list[FindingRow]] = {}
    for row in rows:
        for name in row.names:
            by_name.setdefault(name, []).append(row)
    place, left = place_of(state, load_fleet().platform), ALL_PICTURES
    pages = {}
    for at, item in enumerate(items):
        mine = [row for name in {item.fingerprint, *item.names} for row in by_name.get(name, ())]
        page = page_of(state, item, mine if at < MOST else (), place)
        size = sum(len(one.data) for one in page.pictures)
        if size > left:
            page, size = replace(page, pictures=()), 0
        left -= size
        pages[item.fingerprint] = page
    return pages


def page_of(
    state: Path, item: WorklistItem, rows: Iterable[FindingRow], place: ShellPlace, planted: str = ""
) -> ItemPage:
    """The page of one item; `rows` are its findings. What a stranger says has no kind and no proof."""
    if not item.trusted:
        return ItemPage(observed=item.title, script=item_page("", planted, place).script)
    row, bundle = proven(state, sorted(rows, key=lambda one: one.at))
    return item_page(
        item.title,
        item.repro or str((bundle or {}).get("repro", "")),
        place,
        row=row,
        bundle=bundle,
        pictures=tuple(pictures(state, row, bundle)),
    )


def proven(state: Path, rows: Sequence[FindingRow]) -> tuple[FindingRow | None, dict[str, Any] | None]:
    """The latest row whose evidence is here, with it; else the latest row, and none."""
    for row in reversed(rows):
        if bundle := evidence_of(state, row):
            return row, bundle
    return (rows[-1] if rows else None), None


def evidence_of(state: Path, row: FindingRow) -> dict[str, Any] | None:
    """The evidence of a finding, if it is here and is what was hashed."""
    try:
        return load(state / "runs" / row.run_id / "evidence", row.evidence) if row.evidence else None
    except FleetError:
        return None


def pictures(state: Path, row: FindingRow | None, bundle: Mapping[str, Any] | None) -> Iterable[Picture]:
    """The screenshots that the evidence names by hash, and the plots of this finding."""
    if row is None:
        return
    folder = state / "runs" / row.run_id
    steps = bundle["steps"] if bundle else ()
    drawn = {name for name, spec in TOOLS.items() if spec.attaches}  # the look at a node is by no tool
    shots = {str(one["result"].get("sha256", "")) for one in steps if one["tool"] in drawn}
    paths = [
        ("the page as a browser showed it", folder / "evidence" / f"{name}.png")
        for name in sorted(shots)
        if _SHA256.fullmatch(name)
    ]
    paths += [
        ("how long answers took", folder / "plots" / f"{row.fingerprint}.svg"),
        ("the same over time", folder / "plots" / f"{row.fingerprint}-history.svg"),
    ]
    for name, path in paths[:PICTURES]:
        try:
            data = read_bounded(path, PICTURE)
        except (OSError, ValueError):
            continue
        yield Picture(name=name, type=_TYPES[path.suffix], data=base64.b64encode(data).decode())


def place_of(state: Path, name: str) -> ShellPlace:
    """The platform's addresses; none where its profile cannot be read."""
    fleet = program(anywhere=True)
    try:
        platform, _ = load_platform(name, state)
    except FleetError:
        return ShellPlace(fleet=fleet, state=str(state))
    from fleet.chain.node.digest import metadata_key

    keys = {role: "0x" + metadata_key(key).hex() for role, key in platform.metadata.names.items()}
    return ShellPlace.of(platform, keys, fleet, str(state))
