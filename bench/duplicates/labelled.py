"""The labelled set: one entry a line, see README.md."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fleet.store.rows import MirroredEntry

Part = Literal[
    "build", "held_out", "unseen", "drawn", "drawn_again", "fresh", "independent", "independent_again"
]
Kind = Literal["paraphrase", "near-miss", "false-premise", "not-a-defect"]

FOLDER = Path(__file__).parent
FLEET = "0x" + "aa" * 20
START = 1_781_259_648
"""Unix seconds: block time of the first of the real findings."""
SEED = 20_261_123


@dataclass(frozen=True, slots=True)
class LabelledEntry:
    """One entry; two are about the same thing exactly when their `finding` is equal."""

    id: str
    finding: str
    text: str
    sender: Literal["fleet", "stranger"]
    kind: Kind
    note: str


def labelled(part: Part) -> list[LabelledEntry]:
    """The entries of one part in the order in which they are fed: shuffled, the same each time."""
    lines = (FOLDER / part / "entries.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [LabelledEntry(**json.loads(line)) for line in lines]
    random.Random(SEED).shuffle(entries)
    return entries


def logged(entries: list[LabelledEntry]) -> list[MirroredEntry]:
    """The entries as a log: the fleet's under its address, each stranger's under one of its own."""
    return [
        MirroredEntry(epoch=0, index=index, sender=_address(one), timestamp=START + 60 * index, text=one.text)
        for index, one in enumerate(entries)
    ]


def _address(one: LabelledEntry) -> str:
    return FLEET if one.sender == "fleet" else "0x" + hashlib.sha256(one.id.encode()).hexdigest()[:40]
