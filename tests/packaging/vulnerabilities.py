"""Known vulnerabilities of everything in the locks, by a copy of OSV's database: `make check` runs it.

`OSV_DATABASES` names a folder with `PyPI.zip` and `npm.zip`, which are `PyPI/all.zip` and `npm/all.zip` of
https://osv-vulnerabilities.storage.googleapis.com. Without it the check says that it was skipped. Exit status
1 for each one that nobody accepted here, with a reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from fleet.app.sbom import bill
from fleet.files import ROOT
from fleet.service.advisories import ECOSYSTEMS, known, records_of

ACCEPTED: Mapping[str, str] = {}
"""Ids of OSV that are known and not mended, with the reason."""


def pins(root: Path) -> dict[tuple[str, str], str]:
    """The version of each package of the locks, by OSV's ecosystem and name."""
    found = {}
    for one in bill(root, "0")["components"]:
        kind, _, name = one["purl"].removeprefix("pkg:").partition("@")[0].partition("/")
        if one["purl"].startswith("pkg:npm/%40"):
            kind, _, name = "npm", "", one["name"]
        found[ECOSYSTEMS[kind], unquote(name).lower()] = one["version"]
    return found


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
