"""Neighbours of a repro, and a benign control: what a fix must hold for besides the repro itself. Pure.

They come from the generators that explorers and searches use, and a fixer never sees them. The same item and
the same run give the same ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fleet.config.platform import Platform
from fleet.drivers.explore.origins import origins
from fleet.drivers.explore.web import attacks
from fleet.drivers.explore.web.points import Point
from fleet.findings.repro import ReproCall, spell
from fleet.fix.build_calls import SITE, answered_by, resolved
from fleet.fix.model import FixTask
from sandbox.fuzz.inputs.table import LOADER, seeds, strategies
from sandbox.programs.program import EMPTY_MODULE, Program

MOST = 12
"""Other values of one input."""
_WHOLE = re.compile(r"\s*([+-]?)(\d{1,30})\s*\Z", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(\d{0,30}\.\d{1,30}|\d{1,30}\.)(e[+-]?\d+)?\s*\Z", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{3,}")


def others(value: Any, chance: Random) -> list[Any]:  # noqa: ANN401  any JSON
    """Values unlike this one and one another, spellings first; of a JSON value, others of its own type."""
    if isinstance(value, bool) or value is None:
        found: Iterator[Any] = iter([not value, 0, 1, "", "null"])
    elif isinstance(value, int):
        found = iter([value * 1.0, str(value), -value, value * 10, value + 1, value - 1])
    elif isinstance(value, float):
        found = iter([-value, str(value), value * 10, value / 10])
    elif isinstance(value, str):
        found = _texts(value, chance)
    else:
        found = iter([[value], str(value)])
    unlike: dict[str, Any] = {}
    for one in found:
        unlike.setdefault(repr(one), one)
    unlike.pop(repr(value), None)
    return list(islice(unlike.values(), MOST))


def _texts(text: str, chance: Random) -> Iterator[str]:
    if whole := _WHOLE.match(text):
        sign, digits = whole.groups()
        number = int(digits)
        minus = "-" if sign == "-" else ""
        yield from (f"{minus}0{digits}", f"{minus}00{digits}")
        yield from (f"+{digits}", f"-{digits}") if number == 0 or not minus else (digits,)
        yield from (f"{sign}{digits}.0", f"{sign}{digits}e0", f" {sign}{digits}", f"{sign}{digits} ")
        yield from (f"{minus}{number:#x}", f"{minus}{number:#b}")
        yield "".join(chr(0xFF10 + int(digit)) for digit in digits)  # digits of another script
        yield from (f"{minus}{number + 1}", f"{minus}{digits}0")
    elif _DECIMAL.match(text):
        yield from (f"{text}0", f"0{text}", f"+{text}", f"-{text}", f" {text}", f"{text} ", f"{text}e0")
    else:
        yield from (
            text.upper(),
            text.lower(),
            text.swapcase(),
            f" {text}",
            f"{text} ",
            f"\t{text}",
            text * 2,
        )
        if not text:
            yield from (" ", "\t", "%00")
        elif _WORD.search(text):  # its signs stay, its words do not
            yield from (_WORD.sub(lambda _: _word(chance), text) for _ in range(3))
        else:
            yield from (f"{text}{_word(chance)}", f"{_word(chance)}{text}")


def _word(chance: Random) -> str:
    return "".join(chance.choice("abcdefghkmnprstuvwxyz") for _ in range(chance.randint(4, 8)))


GENERATED = 4
"""Neighbours by generators, besides those that mean the same as the repro."""
TRIES = 40
QUESTIONS = 4
"""Questions about one input of a page: each is a control and up to nine attacks."""
INPUTS = 2
"""Inputs of a call of which other values are tried."""
BENIGN = "moss"
"""A value that a benign caller may send anywhere."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Calls beside the repro's. `keeps`: they mean what the repro means, so its expectation holds of them;
    `same`: its input is the very same, so that they say nothing of other values."""

    calls: tuple[ReproCall, ...]
    keeps: bool = False
    same: bool = False


@dataclass(frozen=True, slots=True)
class Variants:
    """`controls` are benign calls; those that the base answers must be answered with the patch as before.
    `varied` are those of them that have another value in the repro's own input."""

    neighbours: tuple[Neighbour, ...]
    controls: tuple[ReproCall, ...]
    varied: tuple[ReproCall, ...] = ()


def make_variants(task: FixTask, platform: Platform) -> Variants:
    """The neighbours of a task's repro, each different from it and from the others."""
    chance = Random(f"{task.item.fingerprint}/{task.run}")
    last = task.calls[-1]
    varied: tuple[ReproCall, ...] = ()
    if answered_by(last) == "compiler":
        found = _of_program(task, platform.compiler.program, chance)
        controls = _program_controls(last, platform.compiler.program)
    else:
        found = _of_page(task, platform, chance)
        controls = _page_controls(task, platform)
        varied = (ReproCall(last.tool, {"url": _benign(_spelled(platform, last))}),)
    unlike = {spell(one.calls): one for one in found}
    unlike.pop(spell(task.calls), None)
    return Variants(tuple(unlike.values()), tuple(controls), varied)


def _of_program(task: FixTask, program: Program, chance: Random) -> Iterator[Neighbour]:
    last = task.calls[-1]
    if text := str(last.args.get("source", "")):
        for same in (f"\n{text}", f"{text}\n "):
            yield _changed(task, {"source": same}, keeps=True)
        for made in _generated(text.encode(), program, "compiler", chance):
            yield _changed(task, {"source": made.decode("utf-8", "replace")})
        return
    module = bytes.fromhex(str(last.args.get("module_hex", "")).removeprefix("0x"))
    yield _changed(task, {"module_hex": "0x" + module.hex()}, keeps=True)
    for made in _generated(module, program, LOADER, chance):
        yield _changed(task, {"module_hex": made.hex()})


def _generated(source: bytes, program: Program, part: str, chance: Random) -> Iterator[bytes]:
    """From each strategy in turn, of the repro alone; then of it and what a search begins with."""
    sources = list(strategies(program, part, "").values())
    chance.shuffle(sources)
    seen, left = {source}, GENERATED
    for at in range(TRIES):
        corpus = [source] if at < TRIES // 2 else [source, *seeds(program, part)]
        made = sources[at % len(sources)](corpus, chance) if sources else None
        if made and made not in seen and left:
            seen.add(made)
            left -= 1
            yield made


def _program_controls(last: ReproCall, program: Program) -> Iterator[ReproCall]:
    if last.args.get("module_hex"):
        yield ReproCall(last.tool, {"module_hex": EMPTY_MODULE.hex()})
    elif program.sample:
        yield ReproCall(last.tool, {"source": program.sample})


def _of_page(task: FixTask, platform: Platform, chance: Random) -> Iterator[Neighbour]:
    """The same with another parameter, header or canary in every call; other values of inputs; attacks."""
    last, word = task.calls[-1], f"qa{chance.getrandbits(32):08x}"
    yield _every(task, lambda args: {**args, "url": _with_parameter(str(args["url"]), word)})
    yield _every(task, lambda args: {**args, "headers": {**args.get("headers", {}), f"x-{word}": "1"}})
    if canary := str(last.args.get("canary", "")):
        yield _every(task, lambda args: dict(json.loads(json.dumps(args).replace(canary, word))))
    yield from _other_values(task, chance)
    url = _benign(_spelled(platform, last))
    asked = [origins(url, (SITE,), chance)] if last.args.get("origin") else []
    points = _points(url, str(last.args.get("method", "GET")))
    for questions in (*asked, *(attacks.questions(point, chance) for point in points)):
        for question in islice(questions, QUESTIONS):
            yield Neighbour(tuple(ReproCall(step.tool, dict(step.args)) for step in question.steps))


def _every(task: FixTask, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Neighbour:
    calls = (
        ReproCall(one.tool, change(dict(one.args))) if answered_by(one) == "service" else one
        for one in task.calls
    )
    return Neighbour(tuple(calls), keeps=True, same=True)


def _other_values(task: FixTask, chance: Random) -> Iterator[Neighbour]:
    """Each input of the last call: other spellings of its value, others of its type, and other places."""
    last = task.calls[-1]
    url, fields = str(last.args["url"]), dict(last.args.get("fields") or {})
    for point in islice(_points(url, str(last.args.get("method", "GET")), empty=True), INPUTS):
        for value in others(point.value, chance):
            yield _changed(task, {"url": str(point.step(value).args["url"])})
        if point.kind == "query":
            for place in _other_places(url, point):
                yield replace(_changed(task, {"url": place}), same=True)
    for name, value in islice(fields.items(), INPUTS):
        for other in others(value, chance):
            yield _changed(task, {"fields": {**fields, name: other}})


def _other_places(url: str, point: Point) -> Iterator[str]:
    """The same parameter twice, first, and last."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    mine = [pair for pair in given if pair[0] == point.name]
    rest = [pair for pair in given if pair[0] != point.name]
    for order in ([*given, *mine], [*mine, *rest, (BENIGN, "1")], [(BENIGN, "1"), *rest, *mine]):
        yield parts._replace(query=urlencode(order)).geturl()


def _with_parameter(url: str, name: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{name}=1"


def _benign(url: str) -> str:
    """The URL with a benign value for each parameter."""
    for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)[:2]:
        url = str(Point(url, "query", name, BENIGN).step(BENIGN).args["url"])
    return url


def _points(url: str, method: str, *, empty: bool = False) -> Iterator[Point]:
    """Each parameter of the query; without any, the last segment of the path. `empty` values stay so."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    for name, value in given[:2]:
        yield Point(url, "query", name, value if empty else value or BENIGN, method)
    segments = parts.path.split("/")
    if not given and len(segments) > 1:
        at = len(segments) - 1 if segments[-1] else len(segments) - 2
        if at:
            yield Point(url, "path", str(at), segments[at], method)


def _page_controls(task: FixTask, platform: Platform) -> Iterator[ReproCall]:
    """The page that says that the service is ready, and the repro's page with benign values."""
    service, last = task.repository.service, task.calls[-1]
    if service is not None:
        yield ReproCall(last.tool, {"url": "{site}" + service.ready})
    yield ReproCall(last.tool, {"url": _benign(_spelled(platform, last))})
    for call in task.calls[:-1]:
        if answered_by(call) == "service":
            yield ReproCall(call.tool, dict(call.args))


def _spelled(platform: Platform, call: ReproCall) -> str:
    return str(resolved(platform, call).args["url"]).replace(SITE, "{site}")


def _changed(task: FixTask, args: Mapping[str, Any], *, keeps: bool = False) -> Neighbour:
    last = task.calls[-1]
    return Neighbour((*task.calls[:-1], ReproCall(last.tool, {**last.args, **args})), keeps)
