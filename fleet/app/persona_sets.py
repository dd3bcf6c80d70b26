"""Loads the personas of this checkout, checked against the real tool table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleet.config import ROOT
from fleet.drivers.expect import check as check_expectation
from fleet.errors import PersonaError, UsageError
from fleet.personas.check import BadExpectation
from fleet.personas.load import LoadedPersona, load_all, load_persona
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS

FOLDER = ROOT / "personas"


def roster(
    folder: Path = FOLDER, *, bad_expectation: BadExpectation = check_expectation
) -> tuple[dict[str, LoadedPersona], list[PersonaError]]:
    """Every valid persona by name, and the error of each bad file; a bad file affects no other."""
    found, errors = load_all(
        folder,
        tools=frozenset(TOOLS),
        bad_args=_bad_args,
        bad_expectation=bad_expectation,
    )
    return {persona.persona.name: persona for persona in found}, errors


def load(path: Path, *, bad_expectation: BadExpectation = check_expectation) -> LoadedPersona:
    """Load one persona file; raises PersonaError."""
    return load_persona(path, tools=frozenset(TOOLS), bad_args=_bad_args, bad_expectation=bad_expectation)


def one(name: str) -> LoadedPersona:
    """The named persona; raises its file's error if it is bad, UsageError if it does not exist."""
    found, errors = roster()
    if name in found:
        return found[name]
    for error in errors:
        if Path(error.file).stem == name:
            raise error
    raise UsageError(f"no persona {name!r}", remedy=f"choose one of {', '.join(sorted(found))}")


def _bad_args(tool: str, args: Mapping[str, Any]) -> str | None:
    return bad_args(TOOLS[tool], args)
