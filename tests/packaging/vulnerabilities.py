"""Known vulnerabilities of everything in the locks, by a copy of OSV's database: `make check` runs it.

`OSV_DATABASES` names a folder with `PyPI.zip` and `npm.zip`, which are `PyPI/all.zip` and `npm/all.zip` of
https://osv-vulnerabilities.storage.googleapis.com. Without it the check says that it was skipped. Exit status
1 for each one that nobody accepted here, with a reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

from fleet.app.sbom import bill
from fleet.files import ROOT

ECOSYSTEMS: Mapping[str, str] = {"pypi": "PyPI", "npm": "npm"}
ACCEPTED: Mapping[str, str] = {}
"""Ids of OSV that are known and not mended, with the reason."""


class Vulnerability(NamedTuple):
    """One that holds of a pin; `fixed` are the versions that end it."""

    package: str
    version: str
    ident: str
    summary: str
    fixed: tuple[str, ...]


def pins(root: Path) -> dict[tuple[str, str], str]:
    """The version of each package of the locks, by OSV's ecosystem and name."""
    found = {}
    for one in bill(root, "0")["components"]:
        kind, _, name = one["purl"].removeprefix("pkg:").partition("@")[0].partition("/")
        if one["purl"].startswith("pkg:npm/%40"):
            kind, _, name = "npm", "", one["name"]
        found[ECOSYSTEMS[kind], unquote(name).lower()] = one["version"]
    return found


def known(
    records: Iterable[Mapping[str, Any]], locked: Mapping[tuple[str, str], str]
) -> Iterator[Vulnerability]:
    """What OSV's records say of the pins; withdrawn ones say nothing."""
    for record in records:
        if record.get("withdrawn"):
            continue
        for part in record.get("affected", ()):
            package = part.get("package", {})
            ecosystem = package.get("ecosystem", "")
            name = str(package.get("name", "")).lower()
            name = re.sub(r"[-_.]+", "-", name) if ecosystem == "PyPI" else name
            version = locked.get((ecosystem, name))
            if version and _holds(part, version):
                fixed = [event["fixed"] for events in _ranges(part) for event in events if "fixed" in event]
                yield Vulnerability(name, version, record["id"], record.get("summary", ""), tuple(fixed))


def _holds(part: Mapping[str, Any], version: str) -> bool:
    return version in part.get("versions", ()) or any(_within(events, version) for events in _ranges(part))


def _ranges(part: Mapping[str, Any]) -> Iterator[list[Mapping[str, str]]]:
    for one in part.get("ranges", ()):
        if one.get("type") in ("ECOSYSTEM", "SEMVER"):
            yield one["events"]


def _within(events: Iterable[Mapping[str, str]], version: str) -> bool:
    """OSV's rule: the events in order of version, each of which begins or ends what is affected."""
    here, affected = _order(version), False
    for event in sorted(events, key=lambda one: _order(next(iter(one.values())))):
        (kind, at), *_ = event.items()
        if kind == "introduced" and _order(at) <= here:
            affected = True
        elif (kind == "fixed" and _order(at) <= here) or (kind == "last_affected" and _order(at) < here):
            affected = False
    return affected


def _order(text: str) -> tuple[Version, str]:
    """A version of either ecosystem, in an order that both share for releases; what is none comes first."""
    plain = text.partition("+")[0]
    try:
        return Version(plain), ""
    except InvalidVersion:
        release = re.match(r"\d+(?:\.\d+)*", plain)
        return Version(f"{release[0]}.dev0" if release else "0"), plain


def records_of(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Every record of the databases in a folder; FileNotFoundError for one that is missing."""
    for name in ECOSYSTEMS.values():
        with zipfile.ZipFile(folder / f"{name}.zip") as archive:
            for member in archive.namelist():
                yield json.loads(archive.read(member))


def main(folder: str, root: Path = ROOT) -> int:
    """Say what is known; 1 for what nobody accepted."""
    if not folder:
        print("known vulnerabilities: skipped, OSV_DATABASES names no folder with a copy of OSV's database")
        return 0
    locked = pins(root)
    found = sorted({one for one in known(records_of(Path(folder)), locked) if one.ident not in ACCEPTED})
    for one in found:
        ends = f"; fixed in {', '.join(one.fixed)}" if one.fixed else ""
        print(f"{one.package} {one.version}: {one.ident} {one.summary}{ends}")
    print(f"known vulnerabilities: {len(found)} of {len(locked)} pins, {len(ACCEPTED)} accepted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("OSV_DATABASES", "")))
