"""What is to be said of one execution: the same inside a search and in the single call that proves it."""

from __future__ import annotations

import re
import signal
from functools import cache

from sandbox.judging.crash_place import last_exception, place
from sandbox.judging.faults import FaultWords, faults, headline, template
from sandbox.judging.port import ExecutionVerdict
from sandbox.judging.validators import check
from sandbox.programs.process import STDOUT, Ending
from sandbox.programs.program import Program
from sandbox.runners.port import Execution
from sandbox.text import clean, decode

LOOKED_AT = 64 << 10
"""Bytes of a diagnostic that are read."""

_TRACEBACK = "Traceback (most recent call last):"
_STACK = re.compile(r"(?:^ {4}at [^\n]{1,400}:\d+:\d+\)?\n?){2}", re.M)
_THROWN = re.compile(r"^(?:Uncaught )?\w*(?:Error|Exception)\b[^\n]{0,300}\n {4}at ", re.M)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: |$)", re.M)
_HONEST = re.compile(r"UnimplementedFeatureError|\b[Uu]nimplemented feature\b")
_INTERNAL = re.compile(r"InternalCompilerError|[Ii]nternal compiler error")


def judge(program: Program, source: bytes, done: Execution) -> ExecutionVerdict:
    """The verdict on one execution of the program on this source (or of the loader on these bytes).

    An ending UNKNOWN gives the kind `unknown`: nothing can be said. A match of the dictionary that stands in
    the source as well says nothing: the program quoted it.
    """
    if done.ending in (Ending.HANG, Ending.UNKNOWN):
        return ExecutionVerdict(done.ending.value)
    if done.ending is Ending.INTERFERENCE:  # in words of the runner, not of the program
        return ExecutionVerdict(done.ending.value, clean(decode(done.stderr)))
    words = faults(program.tool_chain)
    told = diagnostic(program, done)
    text = decode(source)
    if done.ending is Ending.MEMORY or (done.code != 0 and _out_of_memory(told, text, words)):
        return ExecutionVerdict("memory", _said(told, text, words), place(told, words, text))
    if done.code == 0 and done.ending is not Ending.CRASH:
        if _seen(_sanitizer(), told, text):
            return ExecutionVerdict("internal-error", _said(told, text, words), place(told, words, text))
        return check(program, text, done.stdout)
    kind = _broken(program, done, told, text, words)
    if kind == "clean_error":
        return ExecutionVerdict(kind, _said(told, text, words))
    said = _said(told, text, words) or _status(done)
    if kind == "crash":
        said = " ".join(filter(None, (_status(done), _said(told, text, words))))
    return ExecutionVerdict(kind, said, place(told, words, text))


def diagnostic(program: Program, done: Execution) -> str:
    """What the program said: on standard error, or where it refused its input, on standard output."""
    raw = done.stderr or (done.stdout if done.code in program.clean_exits else b"")
    return faults(program.tool_chain).margin.sub("", clean(decode(raw[:LOOKED_AT]), LOOKED_AT))


def reason(program: Program, done: Execution, kind: str) -> str:
    """The one line of it to be shown: for an internal error the exception, else the first that is not a mere
    introduction or warning."""
    told, words = diagnostic(program, done), faults(program.tool_chain)
    if kind == "internal-error":
        return clean(headline(_fault(told, words), words))
    lines = [line for line in told.splitlines() if line.strip()]
    if kind == "clean_error":
        lines = [line for line in lines if not words.no_headline.search(line)] or lines
    return clean(lines[0].strip()) if lines else ""


def _broken(program: Program, done: Execution, told: str, text: str, words: FaultWords) -> str:
    """The kind of an execution that did not accept."""
    if done.ending is Ending.CRASH or done.code < 0:
        return "crash"
    if done.code not in program.clean_exits or not told.strip():
        return "panic"
    clean_error = _compiled(program.clean_error)
    if _seen(words.fatal, told, text) and not _unimplemented(told):
        return "internal-error"
    if uncaught := _uncaught(told, words, program.tool_chain):
        return "clean_error" if clean_error and clean_error.search(uncaught) else "internal-error"
    cut = len(done.stderr or done.stdout) >= LOOKED_AT  # the words may stand behind
    return "clean_error" if cut or clean_error is None or clean_error.search(told) else "internal-error"


def _out_of_memory(told: str, text: str, words: FaultWords) -> bool:
    """By its own words. Python's parser says the same of a source that is nested too deeply for it."""
    return _seen(words.memory, told, text) and not words.parser_limit.search(told)


def _uncaught(told: str, words: FaultWords, tool_chain: str) -> str:
    """The message of an exception with its stack, or of one that Python defines; "" when there is none.

    Without a stack `TypeError: …` is only an exception where the program is written in Python: solc has user
    errors of that name.
    """
    last = last_exception(told).strip()
    if _TRACEBACK in told or (tool_chain == "python" and words.builtin.search(last)):
        lines = [line for line in last.splitlines() if _EXCEPTION.match(line)]
        return "\n".join(line for line in lines if line != _TRACEBACK) or last[-500:]
    return headline(told, words) if _STACK.search(told) and not _unimplemented(told) else ""


def _unimplemented(told: str) -> bool:
    """An honest message that a feature is missing is a clean error, with or without a place in its code."""
    return bool(_HONEST.search(told)) and not _INTERNAL.search(told)


def _seen(pattern: re.Pattern[str], told: str, text: str) -> bool:
    return any(hit[0].strip() not in text for hit in pattern.finditer(told))


def _said(told: str, text: str, words: FaultWords) -> str:
    return template(headline(_fault(told, words), words), text, words.words)


def _fault(told: str, words: FaultWords) -> str:
    """From where a diagnostic tells of the program's own failure: errors of the user may precede."""
    told = last_exception(told)
    starts = [hit.start() for hit in (words.fatal.search(told), _THROWN.search(told)) if hit]
    return told[told.rfind("\n", 0, min(starts)) + 1 :] if starts else told


def _status(done: Execution) -> str:
    if len(done.stdout) >= STDOUT:
        return "output without end"
    if done.code >= 0:
        return f"status {done.code}"
    try:
        return signal.Signals(-done.code).name
    except ValueError:
        return f"signal {-done.code}"


@cache
def _compiled(pattern: str) -> re.Pattern[str] | None:
    return re.compile(pattern, re.M) if pattern else None


@cache
def _sanitizer() -> re.Pattern[str]:
    """What a program that was built with a sanitizer reports and goes on."""
    return re.compile(
        r"^[^\n]{1,200}:\d+:\d+: runtime error: |\bERROR: (?:Address|Leak|Memory)Sanitizer\b", re.M
    )
