"""One defect as several observations of one place: the more specific one remains."""

from __future__ import annotations

from typing import Any

from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.runs.proof.candidates import covering
from fleet.runs.proof.grades import graded
from fleet.store.rows import FindingRow


def row(
    oracle: str, place: str = "GET {site}/find parameter q", platform: str = "p", **data: Any
) -> FindingRow:
    return FindingRow(
        run_id="r",
        fingerprint="f" * 12,
        state="dropped",
        probe="x",
        persona="qa-x",
        surface="ux",
        severity="low",
        title=oracle,
        data={"oracle": oracle, "place": place, "platform": platform} | data,
    )


def test_the_more_specific_one_covers_the_other_at_its_place_only() -> None:
    error, quote = row("server-error"), row("quote-injection")
    assert covering(error, [error, quote]) is quote
    assert covering(quote, [error, quote]) is None
    assert covering(error, [row("quote-injection", place="GET {site}/other parameter q")]) is None
    assert covering(error, [row("quote-injection", platform="another")]) is None
    assert covering(row("server-error", place=""), [row("quote-injection", place="")]) is None
    assert covering(error, [row("overcharged")]) is None


def test_a_covered_one_says_why_it_is_not_filed() -> None:
    assert graded(row("server-error", covered_by="a quote breaks it")).why == (
        "another finding says more of the same place: a quote breaks it"
    )


def test_an_error_and_an_injection_of_one_input_have_one_place() -> None:
    def page(value: str, status: int = 200) -> Exchange:
        url = {"url": f"{{site}}/find?q={value}"}
        return Exchange("qa_fetch", url, {"status": status, "text": "", "content_type": "text/html"})

    facts = Facts(site="http://h")
    (error,) = judge([page("moss"), page("%22x", 500)], facts)
    (quote,) = (
        one
        for one in judge([page("moss"), page("moss%27", 500), page("moss%27%27"), page("moss")], facts)
        if one.oracle == "quote-injection"
    )
    assert error.sighting.place == quote.sighting.place == "GET {site}/find parameter q"
