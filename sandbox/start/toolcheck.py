"""The guest that tries the platform's compiler and loader before a run believes anything about them.

The fields of a Program in; per program that there is `{"ours": why it could
not be tried, "ending": how it ended, "said": its diagnostic}` out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from sandbox.compiler import Compilation, compile_source, load_module
from sandbox.errors import Deadline, Failure, JailBroken
from sandbox.programs.program import Program
from sandbox.spec import Context
from sandbox.text import clean
from sandbox.validate import build

DEADLINE_S = 20.0
Seen = dict[str, str]


def main() -> int:
    """Try each program once: the compiler on the sample, the loader on what came of it."""
    program = build(Program, json.loads(sys.stdin.readline()))
    print(json.dumps(tried(Context(run="check", prefix="qa-check-", program=program))))
    return 0


def tried(context: Context) -> dict[str, Seen]:
    """What came of it, by program; one that the platform does not have is left out."""
    seen: dict[str, Seen] = {}
    module = b""
    if context.program.command:
        done, seen["compiler"] = _attempt(
            lambda limit: compile_source(context.program.sample, context, limit)
        )
        module = done.module if done else b""
    if context.program.loader:
        _, seen["loader"] = _attempt(lambda limit: load_module(module, context, limit))
        seen["loader"]["module"] = "sample" if module else ""
    return seen


def _attempt(act: Callable[[Deadline], Compilation]) -> tuple[Compilation | None, Seen]:
    try:
        done = act(Deadline(DEADLINE_S))
    except (Failure, JailBroken, OSError) as error:
        return None, {"ours": clean(str(error)), "ending": "", "said": ""}
    return done, {"ours": "", "ending": done.ending.value, "said": clean(done.diagnostic, 200)}
