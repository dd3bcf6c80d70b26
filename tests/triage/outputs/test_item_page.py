"""The page of an item: what is said of its life, where else it was met, and what a stranger's may say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.findings.instances import Instance
from fleet.findings.kinds import Kind, kinds
from fleet.store.rows import FindingRow
from fleet.triage.items.life import Stage
from fleet.triage.outputs.html_page import to_html
from fleet.triage.outputs.item_page import also_seen, item_page, life, waits
from fleet.triage.outputs.repro_shell import ShellPlace
from tests.triage.outputs.test_formats import HEADER, NOW, OWN, item

LATER = "2026-11-22T01:00:00Z"
ITEM = item(
    1,
    "Open redirect: GET /go redirects to evil.test",
    **OWN
    | {
        "links": (),
        "reason": "",
        "stuck": f"waits for a fix since {NOW}",
        "stages": (Stage("new", NOW, "qa-ux"), Stage("confirmed", NOW, "3 of 3")),
        "since": NOW,
        "last_seen": LATER,
        "also": (Instance("{site}/a", 3, "2026-11-27T13:05Z", "2026-11-27T13:09Z"), Instance("{site}/b")),
        "more": 2,
    },
)


def test_a_life_says_each_time_once() -> None:
    assert life(ITEM, LATER) == (
        ("2026-11-21 22:51", "new for under a minute by qa-ux"),
        ("", "confirmed for 2 h by 3 of 3"),
        ("2026-11-22 01:00", "last seen"),
    )
    assert waits(ITEM) == "waits for a fix"
    page = to_html([ITEM], HEADER).decode()
    article = page[page.index("<article>") : page.index("</article>")]
    assert article.count("22:51") == 1
    assert "<li>2026-11-21 22:51 UTC: new" in article


def test_where_else_it_was_met_is_said_with_times() -> None:
    first, _, more = also_seen(ITEM)
    assert first == "{site}/a (3 times, 2026-11-27T13:05Z to 2026-11-27T13:09Z)"
    assert more == "2 more places"
    page = to_html([ITEM], HEADER).decode()
    assert "<h3>Also seen at</h3>" in page
    assert "{site}/a (3 times, " in page


@pytest.mark.parametrize("kind", kinds().values(), ids=kinds())
def test_a_page_of_every_kind_says_all_that_its_kind_knows(kind: Kind) -> None:
    page = item_page(f"{kind.name}: GET /a", 'qa_fetch(url="{site}/a")', ShellPlace(site="http://site.test"))
    assert (page.kind, page.wrong, page.expected) == (kind.id, kind.wrong, kind.healthy)
    assert (page.why, page.fix) == (kind.why, kind.fix)
    assert [name for name, _ in page.references] == list(kind.references)
    assert (page.where, page.observed) == (("GET http://site.test/a",), "GET /a")
    shown = to_html([replace(ITEM, title=f"{kind.name}: GET /a")], HEADER).decode()
    for text in (kind.wrong, kind.healthy, kind.why, kind.fix):
        assert text in shown.replace("&#39;", "'")


def test_what_an_oracle_decided_by_stands_beside_what_its_kind_expects() -> None:
    title, repro = "Refused call is charged: claude costs 1 credits", 'qa_call(target="claude", message="")'
    row = FindingRow(
        run_id="r", fingerprint="f", title=title, data={"oracle": "paid-refusal", "fields": ["charged"]}
    )
    steps = [{"tool": "qa_call", "args": {"target": "claude"}, "result": {"charged": 10**18}}]
    (field,) = item_page(title, repro, ShellPlace(), row=row, bundle={"steps": steps}).fields
    assert (field.name, field.expected, field.observed) == ("charged", "0 credits", "1 credits")


def test_a_title_of_a_stranger_names_no_kind() -> None:
    page = to_html([replace(ITEM, trusted=False)], HEADER).decode()
    assert "Open redirect: GET /go" in page
    assert kinds()["open-redirect"].wrong not in page
    assert "<a href" not in page


def test_what_accounts_were_asked_is_said_row_by_row() -> None:
    args = {
        "url": "http://site.test/api/members",
        "fields": {"email": "{email}"},
        "steps": [["one", "GET", "/api/books?q=x", {}], ["one", "GET", "/api/books?q=%27", {}]],
    }
    result = {"answers": [{"status": 200, "own": True, "links": []}, {"status": 500, "said": "near"}]}
    data = {"oracle": "account-sql", "fields": ["answers"], "seen": "a quote answers 500"}
    row = FindingRow(run_id="r", fingerprint="f", title="a title", data=data)
    steps = [{"tool": "qa_account", "args": args, "result": result}]
    page = item_page("SQL injection: GET /api/books", "", ShellPlace(), row=row, bundle={"steps": steps})
    assert page.where == ("GET http://site.test/api/books",)
    assert [(one.name, one.observed) for one in page.fields] == [("answers", "status 200, 500")]
    (shown,) = page.exchanges
    assert shown.request.splitlines()[-2:] == ["one: GET /api/books?q=x", "one: GET /api/books?q=%27"]
    assert shown.response.splitlines() == [
        "one: GET /api/books?q=x answers 200; own yes",
        "one: GET /api/books?q=%27 answers 500; said near",
    ]
