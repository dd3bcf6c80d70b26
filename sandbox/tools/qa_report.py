"""One entry in the feedback log under the fleet's identity; defined here, executed on the trusted side."""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.spec import Cost, Effect, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer


@dataclass(frozen=True, slots=True)
class Args:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`read_back` is true if the entry at `index` is this text."""

    tx: str = ""
    index: int = -1
    read_back: bool = False


SPEC = ToolSpec(
    "qa_report",
    Args,
    Result,
    Effect.REPORT,
    Cost(calls=1),
    "write one entry to the feedback log",
    group="core",
    points_at={},
    public=PUBLIC | {"text", "tx", "index", "read_back"},
    volatile=VOLATILE | {"tx", "index"},
)
