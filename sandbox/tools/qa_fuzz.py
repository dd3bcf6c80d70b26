"""One round of a search in one jail: many executions of the platform's compiler, or of its loader."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from sandbox.errors import JailBroken
from sandbox.fuzz.port import MOST_DEFECTS, ROUND_ENDS, WORDS, Reproducer
from sandbox.spec import Context, Cost, Effect, Impact, Mistake, Mode, OneOf, ToolSpec
from sandbox.text import clean
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MOST_SECONDS = 60.0
MOST_EXECUTIONS = 1_000_000
WALL_S = 90.0
"""Of a call: a round, what it must still finish, and the start of the program."""
FINISH_S = 20.0
"""Of the call's time, for what comes after a round."""
CORPUS_BYTES = 64 << 10
CORPUS_INPUTS = 512
SOURCE_BYTES = 32 << 10
"""Of one input of a defect; a defect whose input stays larger is left out."""
DEFECTS_BYTES = 512 << 10
"""Of all defects together, as JSON; the longest are left out."""
GIVEN_BYTES = 128 << 10


@dataclass(frozen=True, slots=True)
class Args:
    """A round with the same arguments on one program asks the same inputs, as far as its time reaches."""

    part: str = "compiler"
    """`compiler` (inputs are text) or `loader` (inputs are hex)."""
    seed: int = 0
    """Where its chance begins."""
    seconds: float = 20.0
    """[s] Length of the round."""
    executions: int = 100_000
    """Most executions of the round."""
    corpus: tuple[str, ...] = ()
    """Inputs to start from, the most valuable first."""
    known: tuple[str, ...] = ()
    """Signatures of defects that need no other example."""
    grammar: str = ""
    """A table of productions; empty for none."""
    seeds_done: int = 0
    """Suspicious programs that earlier rounds have executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    runner: str = ""
    """How executions shared the program's start."""
    stopped: Annotated[str, OneOf(("", *ROUND_ENDS))] = ""
    """Why the round ended."""
    executions: int = 0
    """Executions, shrinking included."""
    accepted: int = 0
    """Accepted inputs."""
    lost: int = 0
    """Executions without a result: the program killed, stopped or limited what started it."""
    shrinking: int = 0
    """Executions spent on shrinking."""
    behaviours: int = 0
    """Inputs whose behaviour was new."""
    unstable: int = 0
    """Anomalies that did not repeat."""
    seeds_done: int = 0
    """Where the next round goes on."""
    seconds: float = 0.0
    """[s] Length of the round."""
    cpu_s: float = 0.0
    """[s] Processor time of executions and of the search."""
    defects: tuple[Reproducer, ...] = ()
    """What was found, each with a minimal input."""
    corpus: tuple[str, ...] = ()
    """New inputs whose behaviour was new."""


def run(args: Args, ctx: Context) -> Result:
    from sandbox.fuzz.round import reproducer, searched, written  # 50 modules that only a jail needs

    given, part = _checked(args, ctx), args.part
    search, stopped, name = searched(
        ctx.program,
        part,
        args.seconds,
        ctx.deadline_s - FINISH_S,
        args.executions,
        seed=args.seed,
        known=frozenset(args.known),
        grammar=args.grammar,
        given=given,
        seeds_done=args.seeds_done,
    )
    most = CORPUS_BYTES if part == "compiler" else CORPUS_BYTES // 2
    return Result(
        ok=True,
        runner=clean(name, WORDS),
        stopped=stopped,
        executions=search.trials.executions,
        accepted=search.trials.accepted,
        lost=search.trials.lost,
        shrinking=search.anomalies.shrinking,
        behaviours=search.corpus.new,
        unstable=search.anomalies.unstable,
        seeds_done=args.seeds_done + search.seeds_done,
        seconds=round(search.trials.seconds, 3),
        cpu_s=round(search.trials.cpu_s + time.process_time(), 3),
        defects=_fitting([reproducer(part, found) for found in search.defects.values()]),
        corpus=tuple(written(part, one) for one in search.corpus.valuable(most, CORPUS_INPUTS)),
    )


def _checked(args: Args, ctx: Context) -> list[bytes]:
    """The corpus as bytes; Mistake for arguments that no round can have."""
    if args.part not in ("compiler", "loader"):
        raise Mistake("/args/part: expected compiler or loader")
    if not (ctx.program.command if args.part == "compiler" else ctx.program.loader):
        raise JailBroken(f"this platform has no {args.part} configured")
    if not 0 < args.seconds <= MOST_SECONDS:
        raise Mistake(f"/args/seconds: expected more than 0, at most {MOST_SECONDS:g}")
    if not 0 < args.executions <= MOST_EXECUTIONS:
        raise Mistake(f"/args/executions: expected 1 to {MOST_EXECUTIONS}")
    if args.seeds_done < 0:
        raise Mistake("/args/seeds_done: expected 0 or more")
    if sum(map(len, args.corpus)) > GIVEN_BYTES:
        raise Mistake(f"/args/corpus: expected at most {GIVEN_BYTES} characters in all")
    try:
        return [one.encode() if args.part == "compiler" else bytes.fromhex(one) for one in args.corpus]
    except ValueError:
        raise Mistake("/args/corpus: the inputs of a loader are hex") from None


def _fitting(shown: Sequence[Reproducer]) -> tuple[Reproducer, ...]:
    """Those that a result has room for, the shortest first where there is not enough."""
    left, taken = DEFECTS_BYTES, set[int]()
    sizes = {at: len(json.dumps(asdict(one))) for at, one in enumerate(shown)}
    for at, size in sorted(sizes.items(), key=lambda item: item[1]):
        one, left = shown[at], left - size
        if left >= 0 and max(len(one.source), len(one.variant)) <= SOURCE_BYTES:
            taken.add(at)
    return tuple(one for at, one in enumerate(shown) if at in taken)


SPEC = ToolSpec(
    "qa_fuzz",
    Args,
    Result,
    Effect.COMPUTE,
    Cost(calls=1),
    "search for inputs that the compiler, or the loader, does not handle: many executions in one jail",
    run,
    group="compiler",
    modes=(
        Mode("loader search", given="part", value="loader", needs=("compiler.loader",), asks="the loader"),
        Mode("search", needs=("compiler",), asks="the compiler"),
    ),
    impacts={
        "": Impact(10, 10, 10, "the same many times, inside the jail"),
    },
    points_at={},
    resources="fuzz",
    wall_s=WALL_S,
    example={"part": "compiler", "seconds": 5.0},
    expects="size(result.defects) == 0",
    public=PUBLIC
    | {"part", "seed", "seconds", "executions", "corpus", "known", "grammar", "seeds_done", "runner"}
    | {"stopped", "accepted", "lost", "shrinking", "behaviours", "unstable", "cpu_s", "defects"},
    volatile=VOLATILE
    | {"executions", "accepted", "lost", "shrinking", "behaviours", "unstable", "seconds", "cpu_s"}
    | {"stopped", "defects", "corpus", "runner"},
    caps={
        "runner": WORDS,
        "stopped": WORDS,
        "corpus": CORPUS_INPUTS,
        "defects": MOST_DEFECTS,
        "signature": 2 * WORDS,
        "kind": WORDS,
        "said": WORDS,
        "place": WORDS,
        "origin": WORDS,
        "source": SOURCE_BYTES,
        "variant": SOURCE_BYTES,
    },
)
