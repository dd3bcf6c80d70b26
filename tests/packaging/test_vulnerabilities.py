"""Known vulnerabilities of the locks, by a database of the test's own in OSV's form."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.files import ROOT
from fleet.service.advisories import LOOK, AdvisoryWatch, Vulnerability, known, known_here
from tests.packaging import vulnerabilities
from tests.packaging.vulnerabilities import main, pins

LOCKED = {("PyPI", "some-lib"): "2.3.1", ("npm", "@scope/tool"): "1.4.0"}


def record(ident: str, name: str = "some_lib", ecosystem: str = "PyPI", **part: Any) -> dict[str, Any]:
    one = {"package": {"ecosystem": ecosystem, "name": name}, **part}
    return {"id": ident, "summary": "it leaks", "affected": [one]}


def ranged(*events: dict[str, str], kind: str = "ECOSYSTEM") -> dict[str, Any]:
    return {"ranges": [{"type": kind, "events": list(events)}]}


@pytest.mark.parametrize(
    ("part", "holds"),
    [
        ({"versions": ["2.3.0", "2.3.1"]}, True),
        ({"versions": ["2.3.10"]}, False),
        (ranged({"introduced": "0"}), True),
        (ranged({"introduced": "0"}, {"fixed": "2.3.1"}), False),
        (ranged({"introduced": "0"}, {"fixed": "2.3.2"}), True),
        (ranged({"introduced": "0"}, {"fixed": "2.10"}), True),
        (ranged({"introduced": "2.4"}), False),
        (ranged({"introduced": "0"}, {"last_affected": "2.3.1"}), True),
        (ranged({"introduced": "0"}, {"last_affected": "2.3.0"}), False),
        (ranged({"fixed": "2.0"}, {"introduced": "0"}, {"introduced": "2.3"}, {"fixed": "2.5"}), True),
        (ranged({"introduced": "0"}, {"fixed": "abcdef"}, kind="GIT"), False),
        (ranged({"introduced": "0"}, {"fixed": "2.3.2-rc1"}), True),
    ],
)
def test_a_pin_is_judged_by_versions_and_ranges(part: dict[str, Any], holds: bool) -> None:
    assert bool(list(known([record("X-1", **part)], LOCKED))) is holds


def test_names_are_those_of_each_ecosystem_and_withdrawn_records_say_nothing() -> None:
    everything = ranged({"introduced": "0"}, {"fixed": "9.0"})
    rows = [
        record("X-1", "Some.Lib", **everything),
        record("X-2", "@scope/tool", "npm", **everything),
        record("X-3", "some-lib", "npm", **everything),
        record("X-4", "tool", "npm", **everything),
        record("X-5", **everything) | {"withdrawn": "2026-01-01T00:00:00Z"},
        {"id": "X-6"},
    ]
    assert list(known(rows, LOCKED)) == [
        Vulnerability("some-lib", "2.3.1", "X-1", "it leaks", ("9.0",)),
        Vulnerability("@scope/tool", "1.4.0", "X-2", "it leaks", ("9.0",)),
    ]


def test_the_locks_are_looked_up_and_what_is_found_fails_unless_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = pins(ROOT)
    version = locked["PyPI", "anyio"]
    assert ("npm", "axe-core") in locked or any(kind == "npm" for kind, _ in locked)
    rows = {
        "PyPI": record("X-1", "anyio", versions=[version]),
        "npm": record("X-2", "@nobody/has-this", "npm", **ranged({"introduced": "0"})),
    }
    for name, one in rows.items():
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr(f"{one['id']}.json", json.dumps(one))
    assert main(str(tmp_path)) == 1
    assert f"anyio {version}: X-1 it leaks" in capsys.readouterr().out
    monkeypatch.setattr(vulnerabilities, "ACCEPTED", {"X-1": "a test"})
    assert main(str(tmp_path)) == 0
    with pytest.raises(FileNotFoundError):
        main(str(tmp_path / "nothing"))


def test_without_a_database_the_check_says_that_it_was_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("") == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.anyio
async def test_the_service_looks_at_what_is_installed_once_a_day_and_says_when_the_copy_is_old(
    tmp_path: Path,
) -> None:
    folder, now = tmp_path / "advisories", datetime.now(UTC)
    watch = AdvisoryWatch(tmp_path)
    await watch.look()
    good, words = known_here(folder, now)
    assert (good, "not looked up" in words) == (True, True)  # the operator's choice
    folder.mkdir()
    assert known_here(folder, now)[0] is False
    everything = ranged({"introduced": "0"})
    rows = {
        "PyPI": record("MAL-1", "pytest", **everything),
        "npm": record("X-2", "nobody", "npm", **everything),
    }
    for name, one in rows.items():
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(f"{one['id']}.json", json.dumps(one))
        os.utime(folder / f"{name}.zip", (now.timestamp() - 60, now.timestamp() - 60))
    assert "within the hour" in known_here(folder, now)[1]
    await watch.look()
    good, words = known_here(folder, now)
    assert (good, words) == (
        False,
        f"known vulnerabilities: MAL-1 of pytest {pytest.__version__}: install newer ones",
    )
    first = (folder / LOOK).stat().st_ino
    await watch.look()
    assert (folder / LOOK).stat().st_ino == first
    (folder / "PyPI.zip").unlink()
    (folder / "npm.zip").rename(folder / "PyPI.zip")
    with zipfile.ZipFile(folder / "npm.zip", "w"):
        pass
    await watch.look()  # the copy is newer than the last look
    good, words = known_here(folder, now)
    assert (good, words.startswith("none known of")) == (True, True)
    good, words = known_here(folder, now + timedelta(days=9))
    assert (good, words) == (False, "the copy of OSV's database is 9 days old: renew it")
