"""The software bill of materials (CycloneDX 1.6) from the locks, and whether an installation is as built.

The first half has the standard library alone: the build runs this file before anything is installed.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAME = "sbom.cdx.json"
"""In `fleet/shipped` of a wheel."""
DISTRIBUTION = "qa-fleet"
PYTHON_LOCKS = ("requirements.lock", ".ci/bwrap.lock", ".ci/node.lock")
NPM_LOCKS = ("package-lock.json",)
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill(root: Path, version: str) -> dict[str, Any]:
    """The bill of the checkout at `root`; the same bytes for the same locks."""
    found = [one for lock in PYTHON_LOCKS if (root / lock).is_file() for one in _of_python(root / lock, lock)]
    found += [one for lock in NPM_LOCKS if (root / lock).is_file() for one in _of_npm(root / lock, lock)]
    parts = {one["bom-ref"]: one for one in found}
    own = {
        "type": "application",
        "bom-ref": DISTRIBUTION,
        "name": DISTRIBUTION,
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": f"pkg:pypi/{DISTRIBUTION}@{version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [parts[name] for name in sorted(parts)],
    }


def _of_python(lock: Path, name: str) -> Iterator[dict[str, Any]]:
    """A component for each pin, with the hashes of all files that the lock permits for it."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text("utf-8")):
        if found := _PINNED.match(block):
            package = re.sub(r"[-_.]+", "-", found[1]).lower()
            hashes = [{"alg": "SHA-256", "content": one} for one in _HASH.findall(block)]
            yield _component(
                f"pkg:pypi/{package}@{quote(found[2], safe='')}", found[1], found[2], hashes, name
            )


def _of_npm(lock: Path, name: str) -> Iterator[dict[str, Any]]:
    for path, one in json.loads(lock.read_text("utf-8"))["packages"].items():
        package = path.rpartition("node_modules/")[2]
        if package and "version" in one:
            algorithm, _, content = one.get("integrity", "").partition("-")
            hashes = (
                [{"alg": "SHA-512", "content": base64.b64decode(content).hex()}]
                if algorithm == "sha512"
                else []
            )
            made = _component(
                f"pkg:npm/{quote(package)}@{one['version']}", package, one["version"], hashes, name
            )
            yield made | ({"licenses": [{"expression": one["license"]}]} if one.get("license") else {})


def _component(purl: str, name: str, version: str, hashes: list[dict[str, str]], lock: str) -> dict[str, Any]:
    reference = {"type": "distribution", "url": purl, "hashes": hashes}
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        **({"externalReferences": [reference]} if hashes else {}),
        "properties": [{"name": "qa-fleet:lock", "value": lock}],
    }


def altered() -> list[str] | None:
    """Files of this installation that are not as its wheel had them, or are missing; None for a checkout.

    They are compared with the sums that every wheel carries (RECORD).
    """
    try:
        files = importlib.metadata.distribution(DISTRIBUTION).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    ours = [(one, one.hash.value) for one in files if one.parts[0] in ("fleet", "sandbox") and one.hash]
    if not ours:
        return None
    return [str(one) for one, wanted in ours if _differs(Path(str(one.locate())), wanted)]


def _differs(path: Path, wanted: str) -> bool:
    try:
        found = hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return True
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() != wanted


def other_versions(shipped: Path) -> list[str]:
    """Installed packages of another version than the bill of this installation names; [] without a bill."""
    try:
        parts = json.loads((shipped / NAME).read_bytes())["components"]
    except (OSError, ValueError, KeyError):
        return []
    found = []
    for one in (part for part in parts if part["purl"].startswith("pkg:pypi/")):
        try:
            here = importlib.metadata.version(one["name"])
        except importlib.metadata.PackageNotFoundError:
            continue
        if here != one["version"]:
            found.append(f"{one['name']} {here} for {one['version']}")
    return found
