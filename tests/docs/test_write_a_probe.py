"""docs/write-a-probe.md: what `check` refuses, and what it takes, as the page says."""

from __future__ import annotations

import re

import pytest

from fleet.drivers.expect_check import check
from fleet.files import ROOT

PAGE = (ROOT / "docs/write-a-probe.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| (.+?) \|$", PAGE, re.M)
_MARK = r"`([^`]*(?:has\(result|in result|result\.headers\.get)[^`]*)`"
GOOD = re.findall(_MARK, PAGE.partition("## What is not there")[2])


@pytest.mark.parametrize(("text", "said"), ROWS)
def test_what_the_page_says_of_a_wrong_expectation_is_what_check_says(text: str, said: str) -> None:
    first = check(text, ["qa_fetch"], "bool")[0]
    assert first.message.startswith(said)
    assert first.remedy


@pytest.mark.parametrize("text", GOOD)
def test_what_the_page_recommends_is_taken(text: str) -> None:
    tool = "qa_publish" if "gas" in text else "qa_fetch"
    assert check(text, [tool], "bool") == []


def test_the_page_has_both() -> None:
    assert len(ROWS) >= 18
    assert len(GOOD) >= 5
