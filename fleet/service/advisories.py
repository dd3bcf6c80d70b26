"""Known vulnerabilities and malicious packages of an installation, by the operator's copy of OSV's data.

`advisories/` in the state directory has `PyPI.zip` and `npm.zip`, which are `PyPI/all.zip` and `npm/all.zip`
of https://osv-vulnerabilities.storage.googleapis.com; the operator renews them. The service looks once a day,
and when they are newer than the last look, in a process of its own: `python -m fleet.service.advisories
FOLDER`.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from packaging.version import InvalidVersion, Version

from fleet.files import SHIPPED, write_atomic

FOLDER, LOOK = "advisories", "look.json"
STALE = timedelta(days=7)
"""Age of the copy from which on nothing can be said of the latest vulnerabilities."""
EVERY = timedelta(days=1)
ROUND_S = 3_600.0
ECOSYSTEMS: Mapping[str, str] = {"pypi": "PyPI", "npm": "npm"}
NAMED = 3
"""Vulnerabilities that a line names; the others are counted."""
_LOG = logging.getLogger("fleet.advisories")


class Vulnerability(NamedTuple):
    """One that holds of a pin; `fixed` are the versions that end it."""

    package: str
    version: str
    ident: str
    summary: str
    fixed: tuple[str, ...]


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


def installed() -> dict[tuple[str, str], str]:
    """The version of each package of this installation, by OSV's ecosystem and name."""
    found = {
        ("PyPI", re.sub(r"[-_.]+", "-", one.name).lower()): one.version
        for one in importlib.metadata.distributions()
    }
    bill = SHIPPED / "sbom.cdx.json"
    parts = json.loads(bill.read_bytes())["components"] if bill.is_file() else []
    return found | {
        ("npm", one["name"]): one["version"] for one in parts if one["purl"].startswith("pkg:npm/")
    }


def known_here(folder: Path, now: datetime) -> tuple[bool, str]:
    """Whether the last look at a folder found nothing, at a copy that is not stale; and what it found."""
    copies = [folder / f"{name}.zip" for name in ECOSYSTEMS.values()]
    if missing := [one.name for one in copies if not one.is_file()]:
        return not folder.is_dir(), f"not looked up: {folder} has no {', '.join(missing)}"
    age = now - datetime.fromtimestamp(min(one.stat().st_mtime for one in copies), UTC)
    stale = f"the copy of OSV's database is {age.days} days old: renew it" if age > STALE else ""
    try:
        rows = [Vulnerability(*one) for one in json.loads((folder / LOOK).read_bytes())["found"]]
    except (OSError, ValueError, KeyError, TypeError):
        return False, "; ".join(
            filter(None, ("not looked up yet: the service does it within the hour", stale))
        )
    named = [f"{one.ident} of {one.package} {one.version}" for one in rows[:NAMED]]
    more = [f"and {len(rows) - NAMED} more"] if len(rows) > NAMED else []
    known_ = f"known vulnerabilities: {', '.join([*named, *more])}: install newer ones" if rows else ""
    bad = "; ".join(filter(None, (known_, stale)))
    return not bad, bad or f"none known of {len(installed())} packages, by a copy {age.days} days old"


class AdvisoryWatch:
    """Looks when it is due; what it cannot do is only logged."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    async def run(self) -> None:
        """Each hour, until cancelled."""
        while True:
            await self.look()
            await anyio.sleep(ROUND_S)

    async def look(self) -> None:
        """Look if there are copies, and the last look is older than they are, or than a day."""
        try:
            copies = [(self._folder / f"{name}.zip").stat().st_mtime for name in ECOSYSTEMS.values()]
        except OSError:
            return
        looked = self._folder / LOOK
        last = looked.stat().st_mtime if looked.is_file() else 0.0
        if last > max(copies) and datetime.now(UTC) - datetime.fromtimestamp(last, UTC) < EVERY:
            return
        command = [sys.executable, "-P", "-m", __name__, str(self._folder)]
        done = await anyio.run_process(command, check=False, stderr=subprocess.PIPE)
        if done.returncode:
            _LOG.error("known vulnerabilities are not looked up: %s", done.stderr.decode()[-300:].strip())


def main(folder: Path) -> None:
    """Look, and keep what was found."""
    found = sorted({*known(records_of(folder), installed())})
    write_atomic(folder / LOOK, json.dumps({"found": found}).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
