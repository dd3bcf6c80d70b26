"""Persona files from disk: distrusted, rejected one by one, each error with its line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fleet.errors import PersonaError
from fleet.files import UnfitFile, read_bounded
from fleet.personas.check import ACTS, BadArgs, BadExpectation, Complaint, Rules, complaints, suggestion
from fleet.personas.frontmatter import FrontMatter, Loc, split
from fleet.personas.model import Persona
from fleet.text import clean

LIMIT = 65_536
"""Largest persona file, in bytes."""
REGULAR = "put a readable regular file there"
IGNORED = frozenset({"README.md"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPersona:
    """One valid persona file; `sha256` is of the whole file, hex."""

    persona: Persona
    body: str
    sha256: str
    path: Path


def load_persona(
    path: Path,
    *,
    tools: Collection[str],
    bad_args: BadArgs,
    bad_expectation: BadExpectation,
    acts: Collection[str] = ACTS,
) -> LoadedPersona:
    """Load one persona file; raises only PersonaError, with file, line, key and remedy.

    `bad_args(tool, args)` and `bad_expectation(cel)` return why something is invalid, or None.
    """
    rules = Rules(tools, bad_args, bad_expectation, acts)
    file = clean(str(path), 500)
    raw = _read(path, file)
    front = split(_text(raw, file), file)
    persona = _model(front, front.data(file), file)
    found = list(complaints(persona, path.stem, rules))
    if found:
        raise _error(front, found[0], file, more=len(found) - 1)
    return LoadedPersona(persona=persona, body=front.body, sha256=hashlib.sha256(raw).hexdigest(), path=path)


def load_all(
    folder: Path,
    *,
    tools: Collection[str],
    bad_args: BadArgs,
    bad_expectation: BadExpectation,
    acts: Collection[str] = ACTS,
) -> tuple[list[LoadedPersona], list[PersonaError]]:
    """Every `*.md` of a folder by name; errors of bad files are returned beside the good ones."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".md"))
    except OSError as error:
        remedy = "name a folder of persona files"
        return [], [PersonaError(f"cannot be read: {error.strerror}", file=str(folder), remedy=remedy)]
    good: list[LoadedPersona] = []
    bad: list[PersonaError] = []
    for name in names:
        if name in IGNORED or name.startswith("."):
            continue
        try:
            good.append(
                load_persona(
                    folder / name, tools=tools, bad_args=bad_args, bad_expectation=bad_expectation, acts=acts
                )
            )
        except PersonaError as error:
            bad.append(error)
    return good, bad


def _read(path: Path, file: str) -> bytes:
    """The bytes of a regular file; a link, a pipe or a folder is refused without blocking."""
    try:
        return read_bounded(path, LIMIT)
    except UnfitFile as unfit:
        remedy = "shorten the prompt" if unfit.rule == "size" else REGULAR
        reason = "cannot be read: Is a directory" if path.is_dir() else f"is {unfit.strerror}"
        raise PersonaError(reason, file=file, remedy=remedy) from None
    except (OSError, ValueError) as error:
        reason = "is a symbolic link" if path.is_symlink() else getattr(error, "strerror", None) or "bad path"
        raise PersonaError(f"cannot be read: {reason}", file=file, remedy=REGULAR) from None


def _text(raw: bytes, file: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise PersonaError("is not UTF-8", file=file, line=line, remedy="save it as UTF-8") from None


def _model(front: FrontMatter, data: dict[str, Any], file: str) -> Persona:
    try:
        return Persona.model_validate(data)
    except ValidationError as error:
        found = [_explained(one) for one in error.errors(include_url=False, include_context=False)]
        raise _error(front, found[0], file, more=len(found) - 1) from None


def _explained(error: Mapping[str, Any]) -> Complaint:
    """A pydantic error as a complaint about this file."""
    loc: Loc = tuple(error["loc"])
    message = str(error["msg"])
    if error["type"] == "extra_forbidden":
        valid = _valid_keys(loc)
        message = f"unknown key{suggestion(str(loc[-1]), valid)}"
        return Complaint(loc, message, f"valid keys here: {', '.join(valid)}")
    if error["type"] == "missing":
        return Complaint(loc, "is required", "add it", missing=True)
    return Complaint(loc, message, "correct the value")


def _valid_keys(loc: Loc) -> list[str]:
    """The keys of the table that `loc` points into."""
    here: type[BaseModel] = Persona
    for part in loc[:-1]:
        if isinstance(part, str):
            here = next(_models(here.model_fields[part].annotation), here)
    return sorted(here.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside an annotation such as `tuple[Probe, ...]` or `BudgetSection | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _error(front: FrontMatter, complaint: Complaint, file: str, *, more: int) -> PersonaError:
    key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in complaint.loc).lstrip(".")
    message = complaint.message + (f" (and {more} more)" if more else "")
    return PersonaError(
        clean(message, 600),
        file=file,
        line=front.line(complaint.loc[:-1] if complaint.missing else complaint.loc),
        key=clean(key, 200),
        remedy=clean(complaint.remedy, 600),
    )
