"""The platform's compiler and loader, run inside this jail: their output and outcome."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from dataclasses import dataclass, field, replace

from sandbox.errors import Deadline
from sandbox.judging import validators, verdict, wasm
from sandbox.judging.behaviour import behaviour
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs import machine, process
from sandbox.programs.hang import AGAIN, HangVerdict, ProcessorTime, judge
from sandbox.programs.process import Ending
from sandbox.programs.program import EMPTY_MODULE, OutputKind, Program
from sandbox.programs.program_call import ProgramCall
from sandbox.runners.keeper import Keeper
from sandbox.runners.port import Execution
from sandbox.runners.standing import Interfered
from sandbox.spec import Context
from sandbox.text import decode

CPU_PART, WALL_PART = 0.4, 0.6
"""The shares of a call's time that a first try may have: of the processor, and in all. The rest is for the
control, and for a second try."""

_SPAN_FIRST = re.compile(r"(?:error: )?(?:LH\d{4}: )?\[(\d{1,9})\.\.(\d{1,9})\]", re.ASCII)
_SPAN_LAST = re.compile(r"\[(\d{1,9})\.\.(\d{1,9})\]$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Compilation:
    """`module` is the output, empty unless the ending is ACCEPTED; spans are byte offsets, -1 when none was
    given. `verdict` is what is to be said of it, `behaviour` a digest of what a valid module does, or "".

    Processor times of the process and of the control that it was compared with, 0 when none was needed.
    `diagnostic` of an UNKNOWN ending says how busy the machine is.
    """

    ending: Ending
    exit_code: int
    module: bytes
    entry: str
    valid: bool
    diagnostic: str
    span: tuple[int, int]
    cpu_ms: float = 0.0
    control_cpu_ms: float = 0.0
    verdict: ExecutionVerdict = field(default_factory=lambda: ExecutionVerdict(""))
    behaviour: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.module).hexdigest() if self.module else ""


@dataclass(frozen=True, slots=True)
class CompilerProcess:
    """How the process ended in the end. `why` is the reason of an UNKNOWN ending."""

    ended: process.ProcessEnd
    ending: Ending
    control: ProcessorTime | None = None
    why: str = ""

    @property
    def cpu_ms(self) -> float:
        return round(self.ended.spent.cpu_s * 1000, 3)

    @property
    def control_cpu_ms(self) -> float:
        return round(self.control.cpu_s * 1000, 3) if self.control else 0.0


def compile_source(
    source: str, ctx: Context, deadline: Deadline, cpu_s: float = math.inf, *, other: bool = False
) -> Compilation:
    """One source by the platform's compiler, or by the `other` that the profile compares it with."""
    program = ctx.program
    call = ProgramCall(program, program.other if other else program.command)
    tried = _tried(call, source.encode(), program.sample.encode(), deadline, cpu_s)
    said = verdict.judge(program, source.encode(), _execution(tried))
    return _compilation(tried, said, program)


def compile_printed(source: str, ctx: Context, deadline: Deadline, cpu_s: float = math.inf) -> Compilation:
    """What the profile's printer makes of a source's output, compiled again. UNKNOWN, with its reason, where
    the compiler does not accept the source, or the printer fails."""
    program = ctx.program
    first = compile_source(source, ctx, deadline, cpu_s)
    if first.ending is not Ending.ACCEPTED:
        return replace(
            first, ending=Ending.UNKNOWN, diagnostic="nothing to print: the source is not accepted"
        )
    text = ProgramCall(program, program.printer, loads=True).run(first.module, deadline.left() / 2, cpu_s)
    if text.ending is not Ending.ACCEPTED:
        return replace(first, ending=Ending.UNKNOWN, diagnostic="its printer fails on the output")
    return compile_source(decode(text.stdout), ctx, deadline, cpu_s)


def _compilation(tried: CompilerProcess, said: ExecutionVerdict, program: Program) -> Compilation:
    accepted = tried.ending is Ending.ACCEPTED
    output = tried.ended.stdout if accepted else b""
    is_wasm = program.output == OutputKind.WASM
    valid = accepted and said.kind in ("accepted", "missing-entry")
    diagnostic = tried.why or verdict.reason(program, _execution(tried), said.kind)
    return Compilation(
        ending=tried.ending,
        exit_code=tried.ended.code,
        module=output,
        entry=wasm.entry(output),
        valid=valid,
        diagnostic="" if accepted and said.kind != "internal-error" else diagnostic,
        span=span(diagnostic) if tried.ending is Ending.CLEAN_ERROR else (-1, -1),
        cpu_ms=tried.cpu_ms,
        control_cpu_ms=tried.control_cpu_ms,
        verdict=said,
        behaviour=behaviour(output) if is_wasm and valid else "",
    )


def load_module(module: bytes, ctx: Context, deadline: Deadline, cpu_s: float = math.inf) -> Compilation:
    """The platform's loader on given bytes: it prints the entry it found; other words mean none."""
    program = replace(ctx.program, output=OutputKind.NONE.value, entries=())
    tried = _tried(ProgramCall(program, program.loader, loads=True), module, EMPTY_MODULE, deadline, cpu_s)
    accepted = tried.ending is Ending.ACCEPTED
    said = decode(tried.ended.stdout[:64]).strip()
    judged = verdict.judge(program, module, _execution(tried))
    return Compilation(
        ending=tried.ending,
        exit_code=tried.ended.code,
        module=module,
        entry=said if accepted and said in wasm.ENTRIES else "",
        valid=accepted and bool(module) and not validators.refusal(module),
        diagnostic="" if accepted else tried.why or verdict.reason(program, _execution(tried), judged.kind),
        span=(-1, -1),
        cpu_ms=tried.cpu_ms,
        control_cpu_ms=tried.control_cpu_ms,
        verdict=judged,
    )


def _execution(tried: CompilerProcess) -> Execution:
    ended = tried.ended
    return Execution(tried.ending, ended.code, ended.stdout, ended.stderr, ended.spent.cpu_s)


def _tried(
    call: ProgramCall, source: bytes, control_source: bytes, deadline: Deadline, cpu_s: float
) -> CompilerProcess:
    """As `_try`, in a process that is watched; where the program interferes with it, a control is asked."""
    with contextlib.closing(Keeper(call.run)) as keeper:
        try:
            return _try(call.program, keeper, source, control_source, deadline, cpu_s)
        except Interfered as how:
            said = str(how)
        try:
            control = keeper.run(control_source, deadline.left(), math.inf)
        except Interfered:
            control = None
    lost = process.ProcessEnd(Ending.INTERFERENCE, 0, b"", said.encode(), ProcessorTime(0.0, 0.0, 0.0, True))
    if control is not None and control.spent.ended:
        return CompilerProcess(lost, Ending.INTERFERENCE, control.spent)
    return CompilerProcess(lost, Ending.UNKNOWN, None, f"could not tell: its control {said} as well")


def _try(
    program: Program, call: Keeper, source: bytes, control_source: bytes, deadline: Deadline, cpu_s: float
) -> CompilerProcess:
    """The process to its end. One that had to be stopped is compared with a control, and tried once more
    where the control shows that the program itself is slow."""
    before = machine.ticks()
    cpu_s = min(cpu_s, deadline.left() * CPU_PART)
    engine = _load_engine if program.output == OutputKind.WASM else _nothing
    ended = call.run(source, deadline.left() * WALL_PART, cpu_s, engine)
    if ended.spent.ended and _says_memory(program, source, ended):
        return _too_large(call, ended, control_source, deadline)
    if ended.spent.ended:
        return CompilerProcess(ended, _ending(ended, program))
    control = call.run(control_source, deadline.left() / 2, math.inf).spent
    hang = judge(ended.spent, control, cpu_s)
    if hang is HangVerdict.AGAIN:
        ended = call.run(source, deadline.left(), AGAIN * control.cpu_s)
        if ended.spent.ended:
            return CompilerProcess(ended, _ending(ended, program), control)
        hang = judge(ended.spent, control, cpu_s)
    if hang is HangVerdict.HANG:
        return CompilerProcess(ended, Ending.HANG, control)
    return CompilerProcess(ended, Ending.UNKNOWN, control, _busy(ended.spent, control, before))


def _says_memory(program: Program, source: bytes, ended: process.ProcessEnd) -> bool:
    """By its end, or in its own words, as a Python program does."""
    execution = Execution(ended.ending, ended.code, ended.stdout, ended.stderr)
    return ended.code != 0 and verdict.judge(program, source, execution).kind == "memory"


def _too_large(
    call: Keeper, ended: process.ProcessEnd, control_source: bytes, deadline: Deadline
) -> CompilerProcess:
    """One that used up its memory, or that the kernel killed: a control on a good input shows why."""
    control = call.run(control_source, deadline.left(), math.inf)
    if control.spent.ended and control.ending is not Ending.MEMORY:
        return CompilerProcess(ended, Ending.MEMORY, control.spent)
    why = "could not tell: its control uses up the memory, or does not end, as well"
    return CompilerProcess(ended, Ending.UNKNOWN, control.spent, why)


def _busy(child: ProcessorTime, control: ProcessorTime, before: machine.Ticks) -> str:
    facts = machine.pressure(before) or "nothing to be read of its load"
    state = "ended" if control.ended else "had not ended"
    return (
        f"could not tell: this machine is busy ({facts}); stopped after {child.cpu_s:.2f} s of processor time"
        f" in {child.wall_s:.1f} s, a control {state} after {control.cpu_s:.2f} s in {control.wall_s:.1f} s"
    )


def _ending(ended: process.ProcessEnd, program: Program) -> Ending:
    """With the program's own statuses of a clean error."""
    if ended.ending not in (Ending.CLEAN_ERROR, Ending.PANIC):
        return ended.ending
    clean_exit = ended.code in program.clean_exits and (ended.stderr.strip() or ended.stdout.strip())
    return Ending.CLEAN_ERROR if clean_exit else Ending.PANIC


def _nothing() -> None:
    pass


def _load_engine() -> None:
    """While the compiler works: it is wanted after it."""
    with contextlib.suppress(ImportError):  # validators.py says so, when it is needed
        import wasmtime  # noqa: F401


def span(diagnostic: str) -> tuple[int, int]:
    """`[s..e]` at the start of a message (after a code) or at its end; (-1, -1) when there is none."""
    found = _SPAN_FIRST.match(diagnostic) or _SPAN_LAST.search(diagnostic)
    return (int(found[1]), int(found[2])) if found else (-1, -1)
