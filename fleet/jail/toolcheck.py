"""Do the platform's programs, and the browser, work in a jail here? Tried, before a run relies on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from fleet.errors import JailError
from fleet.jail.model import End, Image, Jail
from fleet.text import line
from sandbox import strict_json
from sandbox.programs.program import Program

_DEADLINE_S = 45.0


class _MissingFolder(JailError):
    """The jail works, but the profile names a missing folder."""


@dataclass(frozen=True, slots=True)
class ToolTrial:
    """Result for one program; `ours`: it could not be tried, so nothing is known about it.

    `jailed` is false without a jail, or without time for one.
    """

    name: str
    ok: bool
    ours: bool
    seen: str
    jailed: bool = True


async def try_programs(
    image: Image, program: Program, open_jail: Callable[[Image], Jail]
) -> tuple[ToolTrial, ...]:
    """Compile the sample and load its module in one fresh jail of this image; empty without any program."""
    there = {"compiler": program.command, "loader": program.loader}
    if not any(there.values()):
        return ()
    try:
        answer = await _ask(replace(image, guest="sandbox.start.toolcheck"), asdict(program), open_jail)
    except JailError as error:
        seen = f"{error}; {error.remedy}" if error.remedy else str(error)
        jailed = isinstance(error, _MissingFolder)
        return tuple(ToolTrial(name, False, True, seen, jailed) for name in there if there[name])
    return judged(answer, bool(program.sample))


async def _ask(
    image: Image, request: Mapping[str, Any], open_jail: Callable[[Image], Jail]
) -> Mapping[str, Any]:
    for path, _ in image.mounts:
        if not path.is_dir():
            raise _MissingFolder(
                f"[compiler] root {path} is not a folder", remedy="name the folder that holds them"
            )
    jail = open_jail(image)
    try:
        outcome = await jail.call(json.dumps(request).encode() + b"\n", deadline_s=_DEADLINE_S)
    finally:
        await jail.aclose()
    try:
        if outcome.end is End.EXITED and outcome.code == 0:
            answer: dict[str, Any] = strict_json.loads(outcome.stdout)
            return answer
    except ValueError:
        pass
    tail = outcome.stderr.decode(errors="replace").strip()[-200:]
    raise JailError(f"the check of the programs ended {outcome.end} {outcome.code}: {tail}")


def judged(answer: Mapping[str, Any], has_sample: bool) -> tuple[ToolTrial, ...]:
    """Judge the report; without a sample it only shows that a program starts."""
    try:
        return tuple(
            _judged(name, answer[name], has_sample) for name in ("compiler", "loader") if name in answer
        )
    except (KeyError, TypeError, AttributeError):
        return (ToolTrial("compiler", False, True, "the check of the programs returned garbage"),)


def _judged(name: str, seen: Mapping[str, str], has_sample: bool) -> ToolTrial:
    ended = line(f"{seen['ending']}: {seen['said']}".removesuffix(": "), 300)
    if seen["ours"]:
        return ToolTrial(name, False, True, line(seen["ours"], 300))
    if seen["ending"] == "unknown":
        return ToolTrial(name, False, True, "could not tell: this machine is too busy", jailed=False)
    if not has_sample or seen.get("module") == "":
        return ToolTrial(
            name, True, False, f"it starts ({ended}); no module of a [compiler] sample was tried"
        )
    what = "[compiler] sample" if name == "compiler" else "the module of [compiler] sample"
    if seen["ending"] == "accepted":
        return ToolTrial(name, True, False, f"{what}: accepted")
    return ToolTrial(name, False, False, f"{what} was expected to be accepted: {ended}")


async def try_browser(jail: Jail) -> str:
    """Why the browser does not start, "" if it does; the jail's image needs no guest but ours."""
    try:
        outcome = await jail.call(b"\n", deadline_s=_DEADLINE_S, resources="browser")
    except JailError as error:
        return line(f"could not look: {error}", 300)
    if outcome.end is End.EXITED and outcome.code == 0:
        return ""
    tail = outcome.stderr.decode(errors="replace").strip()[-200:]
    return line(f"it does not start in a jail: {outcome.end} {outcome.code}: {tail}", 300)
