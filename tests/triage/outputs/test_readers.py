"""The worklist's files as readers of others have them: JUnit by `junitparser`, CSV by a guessed dialect."""

from __future__ import annotations

import csv
from io import StringIO

import junitparser

from fleet.findings.kinds import kinds
from fleet.triage.outputs.csv_file import to_csv
from fleet.triage.outputs.html_page import to_html
from fleet.triage.outputs.junit import to_junit
from fleet.triage.outputs.markdown import to_markdown
from fleet.triage.outputs.sarif import to_sarif
from tests.triage.outputs.test_formats import HEADER, ITEMS, OWN, item, paged


def test_junit_is_read_by_the_reader_of_others() -> None:
    read = junitparser.JUnitXml.fromstring(to_junit(ITEMS, HEADER))
    (suite,) = read
    cases = list(suite)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (len(ITEMS), 3, 0, 10)
    assert [case.name for case in cases if case.is_failure] == [
        "000000000014 GET {site}/a b: 500",
        "000000000015 agents",
        "000000000016 compile panics",
    ]
    assert sum(case.is_skipped for case in cases) == suite.skipped
    assert sum(case.is_passed for case in cases) == 2
    assert all(case.result[0].message for case in cases if case.is_failure)


def test_csv_is_one_table_to_a_reader_that_guesses_its_dialect() -> None:
    items, _ = paged()
    text = to_csv(items).decode()
    dialect = csv.Sniffer().sniff(text.splitlines()[0])
    rows = list(csv.DictReader(StringIO(text, newline=""), dialect=dialect))
    assert [row["title"] for row in rows] == [one.title for one in items]
    assert [int(row["rank"]) for row in rows] == [one.rank for one in items]
    assert csv.Sniffer().has_header(text)


def test_every_format_has_the_same_titles() -> None:
    """For each kind: what a reader of one file searches for, the reader of another finds."""
    items = [
        item(
            number, f"{kind.name}: GET /a{number}: 500", **OWN | {"links": (), "reason": "", "surface": "ux"}
        )
        for number, kind in enumerate(kinds().values(), 1)
    ]
    texts = [write(items, HEADER).decode() for write in (to_csv, to_junit, to_markdown, to_html, to_sarif)]
    for one in items:
        for text in texts:
            shown = text.replace("&#39;", "'").replace("&amp;", "&").replace("`", "")
            assert one.title in shown
