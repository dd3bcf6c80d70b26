"""How the bench of released packages reads its list, draws from it, and counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.known import KnownDefect
from bench.packages import PLACE
from bench.wild import LISTS, WildPackage, drawn, packages
from fleet.files import ROOT


@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
def test_a_list_can_be_checked(path: Path) -> None:
    listed = packages(path)
    for one in listed.values():
        assert one.defects, one.name
        assert (bool(one.pypi), bool(one.npm)) in ((True, False), (False, True)), one.name
        assert bool(one.before) == bool(one.pypi), one.name
        for defect in one.defects:
            re.compile(defect.shows)
            assert re.match(r"(CVE|GHSA|HackerOne|huntr)\b", defect.name), defect.name
            assert defect.requests, defect.name


def test_none_was_used_before() -> None:
    used = {name for file in ("known.md", "released.md") for name in _words(file)}
    first, second = (packages(path) for path in LISTS.values())
    assert not used & {*first, *second}
    assert not {*first} & {*second}


def _words(file: str) -> list[str]:
    return re.findall(r"[\w@/.-]+", (ROOT / "docs" / "bench" / file).read_text("utf-8"))


def test_a_lot_is_the_same_for_the_same_seed() -> None:
    names = [f"package-{number}" for number in range(25)]
    assert drawn(names, 7, "half") == drawn(list(reversed(names)), 7, "half")
    assert len(drawn(names, 7, "half")) == 13
    assert drawn(names, 7, "all") != drawn(names, 8, "all")
    assert [*drawn(names, 7, "half"), *drawn(names, 7, "rest")] == drawn(names, 7, "all")
    assert sorted(drawn(names, 7, "all")) == sorted(names)


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Open redirect: GET /login?next: it leads to evil.example", True),
        ("Open redirect: GET /out?to: it leads to evil.example", False),
        ("Page is not accessible: /login", False),
    ],
)
def test_a_defect_is_reported_by_its_kind_and_its_place(title: str, *, found: bool) -> None:
    assert KnownDefect("redirect", (), "", "^Open redirect", "login").reported_by(title) is found


def test_a_package_is_served_from_its_own_folder(tmp_path: Path) -> None:
    one = WildPackage(name="moss", start="serve $port", defects=(), npm=("moss@1",), files={"a/app.js": "x"})
    *fence, shell, _, line = one.words(tmp_path, 8080)
    assert (fence[-3:], shell) == (["--bind", str(tmp_path), str(tmp_path)], "/bin/sh")
    assert "serve 8080 &" in line
    assert (tmp_path / "a" / "app.js").read_text() == "x"
    assert (tmp_path / "node_modules").readlink() == PLACE / "moss" / "node_modules"
