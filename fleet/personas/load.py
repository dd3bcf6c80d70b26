"""Persona files from disk: distrusted, rejected one by one, each error with its line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fleet.errors import PersonaError, UsageError
from fleet.files import UnfitFile, read_bounded
from fleet.personas.check import BadArgs, BadExpectation, Complaint, Rules, Surroundings
from fleet.personas.examine import examined
from fleet.personas.frontmatter import FrontMatter, split
from fleet.personas.model import Persona
from fleet.text import clean, suggestion

LIMIT = 65_536
"""Largest persona file, in bytes."""
REGULAR = "put a readable regular file there"
IGNORED = frozenset({"README.md"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPersona:
    """One valid persona file; `sha256` is of the whole file without a byte-order mark, hex."""

    persona: Persona
    body: str
    sha256: str
    path: Path

    def only(self, probe: str) -> LoadedPersona:
        """The same with this probe alone and without explorers; itself for "". UsageError."""
        if not probe:
            return self
        chosen = tuple(each for each in self.persona.probe if each.id == probe)
        if not chosen:
            ids = [each.id for each in self.persona.probe]
            raise UsageError(
                f"no probe {probe!r}{suggestion(probe, ids)}", remedy=f"probes: {', '.join(ids) or 'none'}"
            )
        return replace(self, persona=self.persona.model_copy(update={"probe": chosen, "explore": ()}))


def load_persona(
    path: Path,
    *,
    tools: Collection[str],
    bad_args: BadArgs,
    bad_expectation: BadExpectation,
    around: Surroundings | None = None,
) -> LoadedPersona:
    """Load one persona file; raises only PersonaError, with file, line, key and remedy, and its `others`.

    `bad_args(tool, args)` returns why arguments are invalid, or None; `bad_expectation` the faults of an
    expectation. With `around`, hosts and targets must exist there.
    """
    rules = Rules(tools, bad_args, bad_expectation, around)
    file = clean(str(path), 500)
    try:  # a link, a pipe or a folder is refused without blocking
        raw = read_bounded(path, LIMIT, mark="drop")
    except UnfitFile as unfit:
        remedy = {"size": "shorten the prompt", "mark": "save it as UTF-8"}.get(unfit.rule, REGULAR)
        reason = "cannot be read: Is a directory" if path.is_dir() else f"is {unfit.strerror}"
        raise PersonaError(reason, file=file, remedy=remedy) from None
    except (OSError, ValueError) as failed:
        reason = (
            "is a symbolic link" if path.is_symlink() else getattr(failed, "strerror", None) or "bad path"
        )
        raise PersonaError(f"cannot be read: {reason}", file=file, remedy=REGULAR) from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as broken:
        line = raw.count(b"\n", 0, broken.start) + 1
        raise PersonaError("is not UTF-8", file=file, line=line, remedy="save it as UTF-8") from None
    front = split(text, file)
    persona, found = examined(front.data(file), path.stem, rules)
    if found or persona is None:
        error, *others = [_error(front, one, file) for one in found]
        error.others = tuple(others)
        raise error
    return LoadedPersona(persona=persona, body=front.body, sha256=hashlib.sha256(raw).hexdigest(), path=path)


def load_all(
    *folders: Path,
    tools: Collection[str],
    bad_args: BadArgs,
    bad_expectation: BadExpectation,
    around: Surroundings | None = None,
) -> tuple[list[LoadedPersona], list[PersonaError]]:
    """Every `*.md` of the folders by name, of one name that of the last; errors of bad files beside them.

    The first folder must be there.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        try:
            files |= {one.name: folder / one.name for one in os.scandir(folder) if one.name.endswith(".md")}
        except OSError as error:
            if isinstance(error, FileNotFoundError) and folder != folders[0]:
                continue
            remedy = "name a persona file, or a folder of them"
            return [], [PersonaError(f"cannot be read: {error.strerror}", file=str(folder), remedy=remedy)]
    load = partial(
        load_persona,
        tools=tools,
        bad_args=bad_args,
        bad_expectation=bad_expectation,
        around=around,
    )
    good: list[LoadedPersona] = []
    bad: list[PersonaError] = []
    for name, path in sorted(files.items()):
        if name in IGNORED or name.startswith("."):
            continue
        try:
            good.append(load(path))
        except PersonaError as error:
            bad.append(error)
    return good, bad


def _error(front: FrontMatter, complaint: Complaint, file: str) -> PersonaError:
    key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in complaint.loc).lstrip(".")
    line, column = front.line(complaint.loc[:-1] if complaint.missing else complaint.loc), 0
    if complaint.text:
        line, column = front.place(complaint.text, complaint.at)
    return PersonaError(
        clean(complaint.message, 600),
        file=file,
        line=line,
        column=column,
        key=clean(key, 200),
        remedy=clean(complaint.remedy, 600),
    )
