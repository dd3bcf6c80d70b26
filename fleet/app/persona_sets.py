"""Loads the personas, shipped and the operator's own, checked against the real tool table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fleet.config import Platform, parse, read_text
from fleet.config.files import config_dirs, persona_dirs
from fleet.drivers.expect_check import check as check_expectation
from fleet.errors import PersonaError, UsageError
from fleet.files import state_dir
from fleet.gate.scope import Scope
from fleet.personas.check import BadExpectation, Surroundings
from fleet.personas.load import LoadedPersona, load_all, load_persona
from fleet.runs.call.guest_protocol import bad_args
from fleet.text import suggestion
from sandbox.chain.contract import VIEWS
from sandbox.tools import TOOLS


def roster(
    *places: Path,
    bad_expectation: BadExpectation = check_expectation,
    around: Surroundings | None = None,
) -> tuple[dict[str, LoadedPersona], list[PersonaError]]:
    """Every valid persona of a file, or of folders, by name, and the error of each bad file.

    Without any place those of `persona_dirs`.
    """
    if len(places) == 1 and places[0].is_file():
        try:
            single = load(places[0], bad_expectation=bad_expectation, around=around)
        except PersonaError as error:
            return {}, [error]
        return {single.persona.name: single}, []
    found, errors = load_all(
        *(places or persona_dirs(state_dir()).values()),
        around=around,
        tools=frozenset(TOOLS),
        bad_args=_bad_args,
        bad_expectation=bad_expectation,
    )
    return {persona.persona.name: persona for persona in found}, errors


def load(
    path: Path, *, bad_expectation: BadExpectation = check_expectation, around: Surroundings | None = None
) -> LoadedPersona:
    """Load one persona file; raises PersonaError."""
    return load_persona(
        path,
        tools=frozenset(TOOLS),
        bad_args=_bad_args,
        bad_expectation=bad_expectation,
        around=around,
    )


def surroundings(platform: Platform) -> Surroundings:
    """What a persona may point at on this platform; a role of any shipped profile is a known one."""
    scope, web = Scope.of(platform, VIEWS), platform.web
    files = [file for folder in config_dirs() for file in sorted((folder / "platforms").glob("*.toml"))]
    profiles = [platform, *(parse(Platform, read_text(file), file=str(file)) for file in files)]
    roles = {role for profile in profiles for role in profile.targets}
    hosts = {urlsplit(url).netloc for url in (web.site, web.proxy, web.face) if url}
    return Surroundings(frozenset(roles), scope.has_url, ", ".join(sorted({*hosts, *web.hosts})))


def one(name: str) -> LoadedPersona:
    """The named persona; raises its file's error if it is bad, UsageError if it does not exist."""
    found, errors = roster()
    if name in found:
        return found[name]
    for error in errors:
        if Path(error.file).stem == name:
            raise error
    close = suggestion(name, found)
    raise UsageError(f"no persona {name!r}{close}", remedy=f"choose one of {', '.join(sorted(found))}")


def _bad_args(tool: str, args: Mapping[str, Any]) -> str | None:
    return bad_args(TOOLS[tool], args)
