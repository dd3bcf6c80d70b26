"""An item lists where else its defect was met, from all its entries."""

from __future__ import annotations

from fleet.findings.envelope import Envelope, write
from fleet.findings.instances import Instance, spread, written
from fleet.findings.repro import ReproCall
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import decide
from tests.triage.triage_log import EV, HUMAN, TRUSTED, inputs, log

MORNING, NOON = "2026-11-27T08:00Z", "2026-11-27T12:00Z"


def entry(page: str, *also: Instance, fp: str = "a" * 12, was: str = "b" * 12, run: str = "r1") -> str:
    made = Envelope(
        source="qa-ux",
        sev="medium",
        surface="ux",
        run=run,
        fp=fp,
        was=was,
        former=() if fp == "c" * 12 else ("c" * 12,),
        rate=(3, 3),
        ev=EV,
        title=f"Script injection: GET {page}",
        body=f"intent: text stays text\n{written(also)}",
        repro=(ReproCall("qa_fetch", {"url": f"{{site}}/{page}/7?q=x"}),),
    )
    return write(made)


def item(*texts: str | tuple[str, str]) -> WorklistItem:
    (made,) = (one for one in decide(log(*texts), TRUSTED, inputs()).items if one.trusted)
    return made


def test_the_places_that_its_entries_list_are_added_up() -> None:
    here, there = Instance("{site}/here", 2, MORNING, NOON), Instance("{site}/there", 1, NOON, NOON)
    found = item(entry("a", here), entry("a", Instance("{site}/here", 3, NOON, NOON), there, run="r2"))
    assert found.also == (Instance("{site}/here", 5, MORNING, NOON), there)
    assert spread(found.also, found.more) == "on 3 pages"


def test_what_another_entry_is_about_is_a_place_too() -> None:
    """An older one of the same defect, under the name that it had."""
    found = item(entry("old", fp="c" * 12), entry("new"))
    assert {"{site}/old/{n}", "{site}/new/{n}"} > {one.where for one in found.also}
    assert [one.times for one in found.also] == [1]


def test_an_items_own_place_is_not_another_one() -> None:
    assert item(entry("a"), entry("a", run="r2")).also == ()


def test_a_stranger_adds_no_place() -> None:
    forged = (HUMAN, entry("b", Instance("{site}/evil", 9, MORNING, NOON)))
    assert item(entry("a"), forged).also == ()
