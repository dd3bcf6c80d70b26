"""One entry in the feedback log under the fleet's identity; defined here, executed on the trusted side."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.spec import Cost, Effect, Impact, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer


@dataclass(frozen=True, slots=True)
class Args:
    text: str
    """Text of the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    tx: str = ""
    """Hash of the transaction."""
    index: int = -1
    """Index of the entry; -1 without one."""
    read_back: bool = False
    """Whether the entry at `index` is this text."""


SPEC = ToolSpec(
    "qa_report",
    Args,
    Result,
    Effect.REPORT,
    Cost(calls=1),
    "write one entry to the feedback log",
    group="core",
    impacts={
        "": Impact(7, 7, 10, "an entry on the feedback log", "it stays; a later one corrects it"),
    },
    points_at={},
    example={"text": "a note for people"},
    expects="result.read_back",
    public=PUBLIC | {"text", "tx", "index", "read_back"},
    volatile=VOLATILE | {"tx", "index"},
)
