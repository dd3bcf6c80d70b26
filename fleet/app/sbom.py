"""The software bill of materials (CycloneDX 1.6) from the locks, and whether an installation is as built.

The first half has the standard library alone: the build runs this file before anything is installed.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAME = "sbom.cdx.json"
"""In `fleet/shipped` of a wheel."""
DISTRIBUTION = "qa-fleet"
PYTHON_LOCKS = ("requirements.lock", ".ci/bwrap.lock", ".ci/node.lock")
NPM_LOCKS = ("package-lock.json",)
INVENTORY = ".ci/dependencies.json"
"""Licence, day of the release and use of each Python pin (tests/packaging/inventory.py)."""
CRITICALITY = {"service": 3, "extra": 2, "tests": 1}
"""By use: what each run stands on; what an operator may add; what no installation has."""
UPKEEP = ((365, 1), (730, 2))
"""Days since the release of a pin, and the factor up to there; 3 beyond: it may be abandoned."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def bill(root: Path, version: str) -> dict[str, Any]:
    """The bill of the checkout at `root`; the same bytes for the same locks."""
    found = [one for lock in PYTHON_LOCKS if (root / lock).is_file() for one in _of_python(root / lock, lock)]
    found += [one for lock in NPM_LOCKS if (root / lock).is_file() for one in _of_npm(root / lock, lock)]
    inventory = json.loads((root / INVENTORY).read_bytes()) if (root / INVENTORY).is_file() else {}
    parts = {one["bom-ref"]: _assessed(one, inventory) for one in found}
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


def _assessed(part: dict[str, Any], inventory: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """With licence, day of the release and use, where the inventory has this pin."""
    known = inventory.get(f"{re.sub(r'[-_.]+', '-', part['name']).lower()}=={part['version']}")
    if known is None or not part["purl"].startswith("pkg:pypi/"):
        return part
    told = [{"name": f"qa-fleet:{name}", "value": known[name]} for name in ("use", "released")]
    licences = [{"license": {"name": known["licence"]}}]
    return part | {"licenses": licences, "properties": [*part["properties"], *told]}


def risks(parts: Iterable[Mapping[str, Any]], today: date) -> dict[str, int]:
    """The risk of each part, 1 to 9: how critical its use is, times how long ago its pin was released."""
    found = {}
    for part in parts:
        told = {one["name"].partition(":")[2]: one["value"] for one in part["properties"]}
        days = (today - date.fromisoformat(told["released"])).days if "released" in told else 0
        upkeep = next((factor for most, factor in UPKEEP if days <= most), 3)
        found[part["name"]] = CRITICALITY[told.get("use", "extra")] * upkeep
    return found


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


def shipped_parts(shipped: Path) -> list[dict[str, Any]]:
    """The parts of this installation's bill; [] without one."""
    try:
        found: list[dict[str, Any]] = json.loads((shipped / NAME).read_bytes())["components"]
    except (OSError, ValueError, KeyError):
        return []
    return found


def other_versions(shipped: Path) -> list[str]:
    """Installed packages of another version than the bill of this installation names; [] without a bill."""
    parts, found = shipped_parts(shipped), []
    for one in (part for part in parts if part["purl"].startswith("pkg:pypi/")):
        try:
            here = importlib.metadata.version(one["name"])
        except importlib.metadata.PackageNotFoundError:
            continue
        if here != one["version"]:
            found.append(f"{one['name']} {here} for {one['version']}")
    return found
