"""What a search by hand starts from: the mounts of a target's jails, its sample, its corpus and grammar."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from fleet.config import read_text
from fleet.config.compiler import CompilerSection
from fleet.config.files import beside
from fleet.config.target import FuzzTarget
from fleet.errors import ConfigError, Unreachable
from fleet.files import INSTALLED, SHIPPED
from fleet.fuzzing.grammar import examples, productions
from fleet.fuzzing.inputs import SearchStart
from fleet.jail.model import Image, Jail
from fleet.jail.toolcheck import try_programs

GRAMMAR_PROGRAMS = 60
"""Programs of a grammar that a search begins with."""


def target_image(target: FuzzTarget, file: Path) -> Image:
    """The mounts of a target's jails; Unreachable, with a remedy, for what is not there."""
    root = target.compiler.root
    mounts = [(beside(file, root), "tc")] if root else []
    mounts += [(beside(file, path), name) for name, path in target.mounts.items()]
    remedy = f"correct {file}"
    if target.install.pip or target.install.npm:
        script = shlex.join([sys.executable, str(SHIPPED / "config" / "targets" / "install.py"), target.name])
        remedy = script if INSTALLED else "make targets"
    for path, name in mounts:
        if not path.is_dir():
            raise Unreachable(f"{target.name}: {path.resolve()} (/opt/{name}) is not there", remedy=remedy)
    for program in target.needs:
        if not Path(program).exists():
            raise Unreachable(f"{target.name}: {program} is not installed", remedy=f"install {program}")
    return Image(mounts=tuple((path.resolve(), name) for path, name in mounts))


async def works(target: FuzzTarget, image: Image, open_jail: Callable[[Image], Jail]) -> None:
    """Try the programs on the target's sample; ConfigError or Unreachable with what was seen."""
    program = target.compiler.program
    if not (program.command or program.loader):
        raise ConfigError(f"{target.name}: it names no compiler", remedy="set [compiler] command")
    for one in await try_programs(image, program, open_jail):
        if one.ours:
            raise Unreachable(
                f"{target.name}: could not try its {one.name}: {one.seen}", remedy="fleet check machine"
            )
        if not one.ok:
            raise ConfigError(f"{target.name}: its {one.name} does not work: {one.seen}", remedy="correct it")


def read_start(section: CompilerSection, file: Path) -> SearchStart:
    """What the target, or the platform, of this file names for a search. ConfigError, BadGrammar."""
    return SearchStart(read_corpus(section, file), read_grammar(section, file))


def read_grammar(section: CompilerSection, file: Path) -> str:
    """The grammar as a table of productions; "" without one. ConfigError, BadGrammar."""
    return productions(read_text(file.parent / section.grammar)) if section.grammar else ""


def read_corpus(section: CompilerSection, file: Path) -> tuple[str, ...]:
    """The sources in the corpus folder that are text, by name, then programs of the grammar. ConfigError,
    BadGrammar."""
    made = tuple[str, ...]()
    if section.grammar:
        made = examples(read_text(file.parent / section.grammar), GRAMMAR_PROGRAMS, seed=0)
    return (*_sources(file.parent / section.corpus, file), *made) if section.corpus else made


def _sources(folder: Path, file: Path) -> tuple[str, ...]:
    if not folder.is_dir():
        raise ConfigError(f"{file}: [compiler] corpus {folder} is not a folder", remedy=f"correct {file}")
    found = []
    for path in sorted(folder.iterdir())[:1_000]:
        if path.is_file() and path.stat().st_size <= 16 << 10:
            try:
                found.append(path.read_text("utf-8"))
            except UnicodeDecodeError:
                continue
    return tuple(found)
