"""Where else one defect was met: in the row, on the log, and back."""

from __future__ import annotations

import pytest

from fleet.findings.envelope import MAX_BYTES, compose, read, write
from fleet.findings.instances import LINE_BYTES, MOST, Instance, noted, read_line, recorded, spread, written
from fleet.findings.redact import Redactor
from fleet.findings.repro import ReproCall

AT = ("2026-11-27T13:05:09Z", "2026-11-27T13:09:59Z")


def row(*where: str) -> dict[str, object]:
    data: dict[str, object] = {}
    for at, page in enumerate(where):
        data["places"] = noted(data, page, AT[min(at, 1)])
    return data


def test_a_row_counts_each_place_from_first_to_last() -> None:
    found = recorded(row("{site}/a", "{site}/b", "{site}/a"))
    assert found == (
        Instance("{site}/a", 2, "2026-11-27T13:05Z", "2026-11-27T13:09Z"),
        Instance("{site}/b", 1, "2026-11-27T13:09Z", "2026-11-27T13:09Z"),
    )


def test_places_of_an_earlier_version_are_kept() -> None:
    data = {"places": ["{site}/a"]}
    assert recorded(data) == (Instance("{site}/a"),)
    assert recorded({"places": noted(data, "{site}/a", AT[0])})[0].times == 2


def test_the_place_of_the_sighting_that_leads_now_is_no_other_place() -> None:
    data = {"places": noted({"places": ["{site}/a", "{site}/b"]}, "{site}/c", AT[0], "{site}/a")}
    assert [one.where for one in recorded(data)] == ["{site}/b", "{site}/c"]


def test_a_row_holds_a_bounded_number_of_places() -> None:
    assert len(recorded(row(*(f"{{site}}/{at}" for at in range(MOST + 5))))) == MOST


@pytest.mark.parametrize(
    "found",
    [
        (Instance("{site}/a", 2, "2026-11-27T13:05Z", "2026-11-27T13:09Z"),),
        (Instance("a call of claude (2)", 1, AT[0][:16] + "Z", AT[0][:16] + "Z"), *recorded(row("b; c"))),
    ],
)
def test_the_line_is_read_as_it_was_written(found: tuple[Instance, ...]) -> None:
    assert read_line(written(found)) == (found, 0)


def test_what_does_not_fit_on_the_line_is_counted() -> None:
    found = recorded(row(*(f"{{site}}/{at}/" + "x" * 90 for at in range(MOST))))
    text = written(found)
    shown, more = read_line(text) or ((), 0)
    assert len(text.encode()) <= LINE_BYTES
    assert more > 0
    assert len(shown) + more == MOST
    assert spread(shown, more) == f"on {MOST + 1} pages"


@pytest.mark.parametrize("text", ["also at: nowhere", "also at: a (2 times)", "also at: ", "x also at: x"])
def test_any_other_line_is_words(text: str) -> None:
    assert read_line(text) is None


def test_an_entry_carries_them_and_its_former_names_within_the_limit() -> None:
    found = recorded(row("{site}/a", "{site}/b"))
    for source in ("x", "x y " * 600):
        entry = compose(
            Redactor(()),
            source="qa-x",
            sev="high",
            surface="ux",
            run="r1",
            fp="a" * 12,
            was="b" * 12,
            former=["c" * 12, "d" * 12],
            rate=(3, 3),
            ev="e" * 64,
            title="Script injection: /docs",
            body=f"intent: text stays text\n{written(found)}",
            repro=[ReproCall("qa_compile", {"source": source})],
        )
        text = write(entry)
        parsed = read(text)
        assert len(text.encode()) <= MAX_BYTES
        assert parsed.grammar == "canonical"
        assert (parsed.fp, parsed.was, parsed.former) == ("a" * 12, "b" * 12, ("c" * 12, "d" * 12))
        assert (parsed.also, parsed.body) == (found, "intent: text stays text")
