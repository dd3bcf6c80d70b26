"""CHANGELOG.md: each version says what changes how the fleet decides, apart from what does not."""

from __future__ import annotations

import re

from fleet import __version__
from tests.docs.apts import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text()
CHANGES = "### Changes how the fleet decides, what bounds it or how it tests\n"
OTHERS = "### Does not\n"


def test_each_version_has_both_kinds_of_changes_whom_they_affect_what_shows_them_and_the_way_back() -> None:
    _, *versions = re.split(r"^## ", TEXT, flags=re.M)
    assert versions
    assert __version__ in versions[0].splitlines()[0]
    for version in versions:
        head, _, rest = version.partition(CHANGES)
        for word in ("Affects ", "Shown by ", "Back: "):
            assert word in head
        changes, _, others = rest.partition(OTHERS)
        assert changes.strip().startswith("- ")
        assert others.strip().startswith("- ")
