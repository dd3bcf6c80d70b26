"""Where a program failed, from the trace that it printed itself: names without what varies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sandbox.judging.faults import FaultWords, template

FRAMES = 3
"""Frames that a place has at most."""
NEAR = 2
_CONSTRUCTOR = ":__init__"
LONG = 60
"""A trace with more frames is a recursion, whatever its last line says (which may be cut off)."""
RECURSION_CHARS = 240
_RECURSION = " recursion"
_LONGEST_CYCLE = 40
_NOISE = 12
"""Frames on top of a recursion that may differ with the depth: where exactly the limit was met."""

_PYTHON = re.compile(r'^ {2}File "([^"\n]{1,300})", line \d+, in ([^\n]{1,200})$', re.M)
_REPEATED = re.compile(r"^ {2}\[Previous line repeated (\d{1,7}) more times?\]$", re.M)
_JAVASCRIPT = re.compile(
    r"^ {4}at (?:async )?(?:new )?(?:([^\s(][^(\n]{0,160}?) (?:\[as (?!dynCall_)[^\]\n]{1,80}\] )?\()?"
    r"((?:node:|file://|wasm://|/|[A-Za-z<])[^()\n]{0,300}?):[\d:x\[\]a-f]+\)?$",
    re.M,
)
_RUST = re.compile(
    r"^ +\d{1,4}: (?:0x[0-9a-f]+ - )?([^\n]{1,300})(?:\n +at ([^\n:]{1,300}):\d+(?::\d+)?)?", re.M
)
_GO = re.compile(r"^([\w./*()\-\[\]{}]{1,200}?)\([^\n]{0,300}\)\n\t([^\n:]{1,300}):\d+", re.M)
_SANITIZER = re.compile(
    r"^ +#\d{1,3} 0x[0-9a-f]+ in ([^\n]{1,200}?)(?: ([^\s:()]{1,200})(?::\d+)*| \([^\n]*\))?$", re.M
)
_PANIC_NEW = re.compile(r"panicked at ([^\n:]{1,200}?):\d+(?::\d+)?:\n?([^\n]{0,300})")
_PANIC_OLD = re.compile(r"panicked at '([^\n]{0,300}?)', ([^\n:]{1,200}):\d+(?::\d+)?")
_ASSERT = re.compile(r"([^\s:]{1,200}):\d{1,7}: ([^\n:]{1,200}?(?:\([^\n)]*\))?): Assertion [`'\"]")
_ICE = re.compile(r"internal compiler error: in ([\w:~<>]{1,120}), at ([^\s:]{1,200}):\d+")
_THROW = re.compile(r"^([^\s(]{1,200})\(\d+\): Throw in function ([^\n]{1,300})$", re.M)
_INTERNAL_AT = re.compile(r"[Ii]nternal compiler error \(([^\s():]{1,200}):(\d+)\)")
"""Of solc before 0.8: the line of the check stands for its function, which is not named."""

_ACCIDENT = re.compile(
    r"^(AttributeError|IndexError|KeyError|NameError|TypeError|UnboundLocalError|ValueError|ZeroDivisionError"
    r"|RangeError|ReferenceError)\b(?!: Maximum call stack)"
    r"(?:[^\n]* has no attribute '(\w+)'|[^\n]*\(reading '(\w+)'\)|[^\n]*?(\w+) is not a function)?",
    re.M,
)
_RAISED = re.compile(r"^ {4}raise [^\n]*\n(?: +[\^~]+[^\n]*\n)?\S", re.M)
"""The last line of code of a Python trace."""

_CHAIN_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CHAIN_DURING = "\nDuring handling of the above exception, another exception occurred:\n"
_HASH = re.compile(r"::h[0-9a-f]{16}\b|0x[0-9a-f]+|\+0x[0-9a-f]+")
_ARGUMENTS = re.compile(r"\([^()]*\)$")


@dataclass(frozen=True, slots=True)
class TraceFrame:
    file: str
    name: str


def place(trace: str, words: FaultWords, source: str = "") -> str:
    """At most three frames, the nearest to the failure first, or the file of a panic; "" without a trace.

    An expression that failed (a missing attribute, a key, an undefined value) is at fault itself, whatever
    called it: its frame alone, with the exception. A check that was made on purpose speaks of its callers.
    """
    frames = frames_of(trace)
    kept = [one for one in frames if not any(our in one.file for our in words.ours)]
    own = [
        one
        for one in kept
        if not words.runtime_file.search(one.file) and not words.runtime_name.search(one.name)
    ]
    if panic := _panic(trace):
        return panic
    shown = [_spelled(one) for one in own or kept]
    if len(shown) > LONG or words.recursion.search(trace) or words.parser_limit.search(trace):
        return _recursion(shown)
    if shown and (what := _accident(trace, source)):
        return f"{shown[0]} {what}"
    return " < ".join(_nearest(shown))


def _nearest(shown: Sequence[str]) -> list[str]:
    """Two different frames: that of the check, and its caller. A constructor is shown and does not count."""
    near: list[str] = []
    for one in dict.fromkeys(shown):
        near.append(one)
        if len(near) == FRAMES or sum(not each.endswith(_CONSTRUCTOR) for each in near) == NEAR:
            break
    return near


def _recursion(shown: Sequence[str]) -> str:
    """The frames that repeat, in one canonical rotation of the cycle; of a recursion in a library, or in what
    interprets the program, who called it. Of what is too long to be shown, a sample: the first frames by
    name, which cycles that overlap have in common.
    """
    if not shown:
        return ""
    named = _cycle(shown) if len(shown) > FRAMES else shown[:1]
    if not named:
        counts = Counter(shown)
        most = max(counts.values())
        repeated = {name for name, count in counts.items() if 2 * count >= most}
        if most == 1:  # a part of one round: on top is what the cycle called at the limit, each time another
            repeated = set(shown[len(shown) // 2 :])
        named = sorted(repeated)
    if len(" < ".join(named)) > RECURSION_CHARS:
        named = sorted(set(named))
        while len(named) > 1 and len(" < ".join(named)) > RECURSION_CHARS:
            named.pop()
    return f"{' < '.join(named)}{_RECURSION}"


def same_recursion(one: str, other: str) -> bool:
    """Whether two signatures name one recursion: at least half of the frames of the shorter cycle are in the
    other. An expression in brackets, in a call and in a list goes round by different ways through one parser.
    """
    (kind, _, first), (other_kind, _, second) = (signature.partition(" ") for signature in (one, other))
    if kind != other_kind or not (first.endswith(_RECURSION) and second.endswith(_RECURSION)):
        return False
    frames, others = (set(place.removesuffix(_RECURSION).split(" < ")) for place in (first, second))
    return 2 * len(frames & others) >= min(len(frames), len(others))


def frames_of(trace: str) -> list[TraceFrame]:
    """Frames of a trace of any tool chain, the nearest to the failure first."""
    if python := _python(trace):
        return python
    for pattern, file, name in ((_JAVASCRIPT, 2, 1), (_SANITIZER, 2, 1), (_GO, 2, 1), (_RUST, 2, 1)):
        if found := [TraceFrame(hit[file] or "", hit[name] or "") for hit in pattern.finditer(trace)]:
            return found
    for pattern, file, name in ((_ASSERT, 1, 2), (_ICE, 2, 1), (_THROW, 1, 2), (_INTERNAL_AT, 1, 2)):
        if hit := pattern.search(trace):
            return [TraceFrame(hit[file], hit[name])]
    return []


def last_exception(trace: str) -> str:
    """The part of a chain of Python exceptions that was not caught, with its direct causes."""
    uncaught = trace.rsplit(_CHAIN_DURING, 1)[-1]
    return uncaught.rsplit(_CHAIN_CAUSE, 1)[-1]


def _cause(trace: str) -> str:
    return trace.rsplit(_CHAIN_DURING, 1)[-1].split(_CHAIN_CAUSE, 1)[0]


def _python(trace: str) -> list[TraceFrame]:
    """Of the exception that began it: the first of direct causes, not one that was being handled."""
    for part in (_cause(trace), last_exception(trace)):
        found = [TraceFrame(hit[1], hit[2]) for hit in _PYTHON.finditer(part)]
        if found:
            times = sum(int(hit[1]) for hit in _REPEATED.finditer(part))
            return found[::-1] if times < LONG else [found[-1]] * (LONG + 1) + found[::-1]
    return []


def _panic(trace: str) -> str:
    if hit := _PANIC_OLD.search(trace):
        where, said = hit[2], hit[1]
    elif hit := _PANIC_NEW.search(trace):
        where, said = hit[1], hit[2]
    else:
        return ""
    return f"{_base(where)}: {template(said)}".rstrip(": ")


def _spelled(frame: TraceFrame) -> str:
    name = _ARGUMENTS.sub("", _HASH.sub("", frame.name)).strip()
    return ":".join(filter(None, (_base(frame.file), name)))


def _base(path: str) -> str:
    return _HASH.sub("", path.replace("\\", "/").rsplit("/", 1)[-1])


def _cycle(frames: Sequence[str]) -> list[str]:
    """The repeating part of a recursion in one canonical rotation, whatever the depth; [] without one."""
    count = len(frames)
    for skip in range(min(_NOISE, count - 2)):
        for period in range(1, min(_LONGEST_CYCLE, (count - skip) // 2) + 1):
            wanted = min(max(3 * period, 2 * _NOISE), count - skip - period)
            if all(frames[skip + at] == frames[skip + at + period] for at in range(wanted)):
                cycle = frames[skip : skip + period]
                turned: Iterable[list[str]] = ([*cycle[at:], *cycle[:at]] for at in range(len(cycle)))
                return min(turned)
    return []


def _accident(trace: str, source: str) -> str:
    """The exception of an expression that failed, and the attribute that was missing unless the source names
    it; "" for one that was raised."""
    cause = _cause(trace)
    if _RAISED.search(cause):
        return ""
    found = list(_ACCIDENT.finditer(cause))
    if not found:
        return ""
    hit = found[-1]
    name = next(filter(None, hit.groups()[1:]), "")
    return f"{hit[1]} {name}" if name and not re.search(rf"\b{name}\b", source) else hit[1]
