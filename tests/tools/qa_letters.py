"""A tool that the house does not have: what a newcomer would add, one file."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sandbox.http import absolute
from sandbox.spec import Context, Cost, Effect, Impact, Points, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer


@dataclass(frozen=True, slots=True)
class Args:
    url: str
    letter: str = "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    letters: int = 0
    grade: str = ""
    aside: str = ""
    clock: float = 0.0


def run(args: Args, ctx: Context) -> Result:
    count = absolute(args.url).count(args.letter)
    return Result(
        ok=True, letters=count, grade="many" if count > 1 else "few", aside=ctx.run, clock=time.time()
    )


SPEC = ToolSpec(
    "qa_letters",
    Args,
    Result,
    Effect.LOOK,
    Cost(calls=2),
    "count a letter in a URL of the platform",
    run,
    needs=("faces",),
    group="letters",
    impacts={"": Impact(9, 10, 9, "a URL is counted in, and not asked for")},
    points_at={"url": Points.PAGE},
    asks=("counting in {url}", " the letter {letter}"),
    ends_in="grade",
    judged_as=("page",),
    public=PUBLIC | {"url", "letter", "letters", "grade", "clock"},
    volatile=VOLATILE | {"clock", "aside"},
)
