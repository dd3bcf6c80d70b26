"""Which requests that end a server are one defect."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.oracles import table
from fleet.oracles.model import Exchange, Facts

ENDED = {"ok": False, "status": 0, "error_class": "http", "ended": True, "silent_ms": 700.0}
GOOD = {"ok": True, "status": 200, "text": "here"}


def signature(*asked: dict[str, Any]) -> str:
    *before, last = [{"url": one.pop("url")} | one for one in asked]
    seen = [Exchange("qa_fetch", args, GOOD) for args in before]
    seen.append(Exchange("qa_fetch", last | {"alive": "{site}/"}, ENDED))
    (one,) = table.judge(seen, Facts(site="http://h.test"))
    assert (one.oracle, one.severity, one.surface) == ("ends-server", "high", "security")
    assert one.sighting.title == f"{seen[-1].asked}: after it no caller is answered"
    return one.sighting.signature


@pytest.mark.parametrize(
    "asked",
    [
        [{"url": "{site}/a/b%"}],
        [{"url": "{site}/?q=qa1&name=qa2"}],
        [{"url": "{site}/a"}, {"url": "{site}/a", "method": "HEAD"}],
        [{"url": "{site}/a"}, {"url": "{site}/a", "headers": {"x-a": "1"}}],
        [{"url": "{site}/etc/passwd"}, {"url": "{site}/../../etc/passwd"}],
    ],
)
def test_what_breaks_before_all_pages_is_one_defect_of_the_host(asked: list[dict[str, Any]]) -> None:
    assert signature(*asked) == "ends {site}"


def test_an_input_of_a_page_is_a_place_of_its_own() -> None:
    one = signature({"url": "{site}/a?n=1"}, {"url": "{site}/a?n=%27"})
    other = signature({"url": "{site}/b?n=1"}, {"url": "{site}/b?n=%27"})
    assert one == "ends GET {site}/a parameter n" != other


def test_one_that_answers_ends_nothing() -> None:
    seen = [Exchange("qa_fetch", {"url": "{site}/a%", "alive": "{site}/"}, GOOD | {"ended": False})]
    assert "ends-server" not in [one.oracle for one in table.judge(seen, Facts(site="http://h.test"))]
