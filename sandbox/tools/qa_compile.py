"""Runs the platform's compiler on one source, or its loader on given bytes, in this jail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from sandbox.compiler import Compilation, compile_printed, compile_source, load_module
from sandbox.errors import Deadline
from sandbox.judging.port import JUDGED
from sandbox.programs.process import OUTCOMES, Ending
from sandbox.spec import Context, Cost, Effect, Impact, Mistake, Mode, OneOf, ToolSpec
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Args:
    """At most two fifths of the call's time are used."""

    source: str = ""
    """Source to compile."""
    module_hex: str = ""
    """Module for the loader, hex; then nothing is compiled."""
    timeout_s: float = 5.0
    """[s] Processor time, with descendants."""
    other: bool = False
    """Whether the compiler is the one that the profile compares with."""
    printed: bool = False
    """Whether what is compiled is what the profile's printer makes of the source's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` is `outcome == "accepted"`; with the outcome `unknown` the `error_class` is `busy`."""

    outcome: Annotated[str, OneOf(OUTCOMES)] = ""
    """How the program ended."""
    exit_code: int = 0
    """Exit status of the program."""
    size: int = 0
    """[bytes] Size of the output."""
    sha256: str = ""
    """Hash of the output, hex."""
    entry: str = ""
    """Name of the output's entry point."""
    has_entry: bool = False
    """Whether the output has one."""
    valid: bool = False
    """Whether a real engine, or the rules of the kind of output, accept the output."""
    span_start: int = -1
    """[bytes] Start of the error in the source; -1 without one."""
    span_end: int = -1
    """[bytes] End of the error in the source; -1 without one."""
    cpu_ms: float = 0.0
    """[ms] Processor time."""
    control_cpu_ms: float = 0.0
    """[ms] Processor time of the control that ran when the process had to be stopped."""
    kind: Annotated[str, OneOf(JUDGED)] = ""
    """Kind of the verdict, as in qa_fuzz."""
    said: str = ""
    """Message of the verdict, numbers folded."""
    place: str = ""
    """Where in the program it failed."""
    behaviour: str = ""
    """Digest of what a valid module does."""


def run(args: Args, ctx: Context) -> Result:
    if not 0 < args.timeout_s <= MAX_TIMEOUT_S:
        raise Mistake(f"/args/timeout_s: expected more than 0, at most {MAX_TIMEOUT_S:g}")
    if args.source and args.module_hex:
        raise Mistake("/args/module_hex: give source or module_hex, not both")
    if args.other and args.module_hex:
        raise Mistake("/args/other: compares compilers, not loaders")
    if args.printed and (args.module_hex or args.other):
        raise Mistake("/args/printed: asks the compiler about a source of its own, nothing else")
    deadline = Deadline(ctx.deadline_s * 0.9)
    if args.module_hex:
        try:
            module = bytes.fromhex(args.module_hex.removeprefix("0x"))
        except ValueError:
            raise Mistake("/args/module_hex: not hex") from None
        return result(load_module(module, ctx, deadline, args.timeout_s))
    if args.printed:
        return result(compile_printed(args.source, ctx, deadline, args.timeout_s))
    return result(compile_source(args.source, ctx, deadline, args.timeout_s, other=args.other))


def result(done: Compilation) -> Result:
    return Result(
        ok=done.ending is Ending.ACCEPTED,
        error=done.diagnostic,
        error_class="busy" if done.ending is Ending.UNKNOWN else "",
        outcome=done.ending.value,
        exit_code=done.exit_code,
        size=len(done.module),
        sha256=done.sha256,
        entry=done.entry,
        has_entry=bool(done.entry),
        valid=done.valid,
        span_start=done.span[0],
        span_end=done.span[1],
        cpu_ms=done.cpu_ms,
        control_cpu_ms=done.control_cpu_ms,
        kind=done.verdict.kind,
        said=done.verdict.said,
        place=done.verdict.place,
        behaviour=done.behaviour,
    )


SPEC = ToolSpec(
    "qa_compile",
    Args,
    Result,
    Effect.COMPUTE,
    Cost(calls=1),
    "compile a source, or load a module, and say how it ended",
    run,
    group="compiler",
    modes=(
        Mode("loader", given="module_hex", needs=("compiler.loader",), asks="the loader"),
        Mode("source", needs=("compiler",), asks="the compiler"),
    ),
    impacts={
        "": Impact(10, 10, 10, "a compiler of ours reads a program, inside the jail"),
    },
    points_at={},
    ends_in="outcome",
    judged_as=("program",),
    in_build="compiler",
    example={"source": "fn frame(t: i32) -> i32 { t + 1 }"},
    expects="result.outcome == 'accepted' && result.has_entry",
    public=PUBLIC
    | {
        "source",
        "module_hex",
        "timeout_s",
        "other",
        "printed",
        "outcome",
        "exit_code",
        "size",
        "sha256",
        "entry",
    }
    | {"has_entry", "valid", "span_start", "span_end", "cpu_ms", "control_cpu_ms", "kind", "said"}
    | {"place", "behaviour"},
    volatile=VOLATILE | {"cpu_ms", "control_cpu_ms"},
)
