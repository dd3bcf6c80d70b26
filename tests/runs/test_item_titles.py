"""An item of which only the log is left: its title says whether a probe's expectation found it."""

from __future__ import annotations

import pytest

from fleet.findings.repro import ReproCall
from fleet.findings.sighting import of_probe, titled
from fleet.runs.proof.item_questions import UNKNOWN, ItemQuestion, by_repro
from fleet.store.rows import ItemRow

LONG = "{site}/handbook/of/the/garden/with/beds/and/trees/and/walls/entries"


def asked(title: str, url: str) -> str:
    """Why a clean answer to this item's repro does not tell that it is gone."""
    item = ItemRow(
        fingerprint="0" * 12,
        state="confirmed",
        severity="low",
        surface="ux",
        title=title,
        persona="qa-ux",
        repro="",
        names=("0" * 12,),
        trusted=True,
    )
    made = by_repro(item, [ReproCall("qa_fetch", {"url": url})])
    assert isinstance(made, ItemQuestion)
    return made.unsure


@pytest.mark.parametrize("url", ["{site}/a", f"{LONG}/a", "{face:docs}?q=%3Cscript%3Ex%3C%2Fscript%3E"])
@pytest.mark.parametrize("error_class", ["", "too_large"])
def test_what_a_probe_expected_is_known_by_its_title(url: str, error_class: str) -> None:
    result = {"status": 0 if error_class else 404, "error_class": error_class, "error": "more than 8 MB"}
    calls = [{"tool": "qa_fetch", "args": {"url": url}}]
    seen = of_probe("result.status == 200", calls, [result], "").title
    assert asked(titled("the page of entries is gone", seen), url) == UNKNOWN


@pytest.mark.parametrize("url", ["{site}/a", f"{LONG}/a"])
def test_what_an_oracle_found_is_judged_by_it(url: str) -> None:
    assert asked(titled("Request causes a server error", f"GET {url} answers 500"), url) == ""
