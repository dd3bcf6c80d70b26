"""Records of an item's life: written in one form, read strictly, never longer than an entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.findings.envelope import MAX_BYTES
from fleet.findings.reader import read
from fleet.findings.records import ItemRecord, RecordKind, name_of, read_record, write_record
from fleet.findings.redact import Redactor
from fleet.severity import Severity
from fleet.store.rows import DecisionKind, LinkKind

FP, OTHER, AT = "0123456789ab", "ba9876543210", "2026-11-23T07:00:00Z"
GOLDEN = Path(__file__).parent / "golden" / "records.txt"
HEAD = f"qa/v1 source=qa-triage sev=info surface=ux fp={FP}\n"
NINES = "9" * 5_000 + "}"
PERSON: dict[str, Any] = {"item": FP, "at": AT, "who": "alice@box", "reason": 'as "designed"'}
COMPLETE = [
    ItemRecord(kind="fixed", **PERSON),
    ItemRecord(kind="dismiss", **PERSON),
    ItemRecord(kind="dismiss", until="2026-12-23T00:00:00Z", **PERSON),
    ItemRecord(kind="snooze", until="2026-12-23T00:00:00Z", **PERSON),
    ItemRecord(kind="reopen", **PERSON),
    ItemRecord(kind="severity", severity=Severity.LOW, **PERSON),
    ItemRecord(kind="merge", other=OTHER, **PERSON),
    ItemRecord(kind="split", **PERSON),
    ItemRecord(kind="link", other=OTHER, link="same-cause", **PERSON),
    ItemRecord(kind="unlink", other=OTHER, **PERSON),
    ItemRecord(kind="undo", undoes=OTHER, **PERSON),
    ItemRecord(kind="release", **PERSON),
    ItemRecord(kind="verified-fixed", item=FP, at=AT, who="r2", runs=3),
    ItemRecord(kind="seen", item=FP, at=AT, runs=29, days=4, last="2026-11-23T06:00:00Z"),
    ItemRecord(kind="proposed", **PERSON),
    ItemRecord(kind="needs-repro", **PERSON),
]
"""One of every form."""


def written(record: ItemRecord) -> str:
    return write_record(record, surface="ux", title="it is wrong")


def test_each_kind_is_written_as_the_golden_file_says() -> None:
    assert "\n\n".join(map(written, COMPLETE)) + "\n" == GOLDEN.read_text()


@pytest.mark.parametrize("record", COMPLETE, ids=lambda record: record.kind)
def test_each_kind_reads_back(record: ItemRecord) -> None:
    assert read_record(read(written(record))) == record


def test_the_kinds_are_those_of_decisions_and_four_of_the_machine() -> None:
    machines = ("verified-fixed", "seen", "proposed", "needs-repro")
    assert get_args(RecordKind) == (*get_args(DecisionKind), *machines)
    assert {one.kind for one in COMPLETE} == set(get_args(RecordKind))
    for kind in get_args(LinkKind):
        assert ItemRecord(kind="link", other=OTHER, link=kind, **PERSON).link == kind


TEXT = st.text(st.characters(exclude_categories=()), max_size=3_000)


@given(who=TEXT, reason=TEXT, title=TEXT, severity=st.sampled_from(("critical", "low")))
def test_any_record_fits_and_reads_back(who: str, reason: str, title: str, severity: Any) -> None:
    made = ItemRecord(kind="severity", item=FP, at=AT, who=f"a{who}", reason=f"a{reason}", severity=severity)
    masked = Redactor().text(made.reason)
    text = write_record(made, surface="a" * 32, title=title)
    assert len(text.encode()) <= MAX_BYTES
    back = read_record(read(text))
    assert back is not None
    assert (back.kind, back.who, back.severity, back.name) == ("severity", made.who, severity, made.name)
    assert back == ItemRecord(kind="severity", item=FP, at=AT, who=made.who, reason=masked, severity=severity)


def test_reason_and_title_are_masked_and_the_name_stays() -> None:
    key = "0x" + "ab12" * 16
    made = ItemRecord(kind="fixed", item=FP, at=AT, who="alice", reason=f"key {key} and hunter2hunter2")
    text = write_record(made, surface="ux", title=f"leaks {key}", redactor=Redactor(["hunter2hunter2"]))
    assert "ab12ab12" not in text
    assert "hunter2" not in text
    back = read_record(read(text))
    assert back is not None
    assert (back.name, back.reason) == (made.name, "key [redacted:private-key] and [redacted:secret]")


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("fixed: t", '{"at":"2026-11-23T07:00:00Z","reason":"a"}'),
        ("fixed: t", '{"at":"2026-11-23T07:00:00Z","reason":"","who":"b"}'),
        ("fixed: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b","who":"c"}'),
        ("fixed: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b","more":1}'),
        ("fixed: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b","until":"2026-11-24T07:00:00Z"}'),
        ("fixed: t", '{"at":"2026-13-23T07:00:00Z","reason":"a","who":"b"}'),
        ("fixed: t", '{"at":"2026-11-23T07:00:00+01:00","reason":"a","who":"b"}'),
        ("fixed: t", '{"at":1,"reason":"a","who":"b"}'),
        ("fixed: t", '["at"]'),
        ("fixed: t", "NaN"),
        ("fixed: t", "words of a person"),
        ("fixed: t", ""),
        ("fixed", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b"}'),
        ("closed: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b"}'),
        ("seen: t", '{"at":"2026-11-23T07:00:00Z","days":1,"last":"2026-11-23T07:00:00Z","runs":1e9999}'),
        ("seen: t", '{"at":"2026-11-23T07:00:00Z","days":1,"last":"2026-11-23T07:00:00Z","runs":9999999999}'),
        ("seen: t", '{"at":"2026-11-23T07:00:00Z","days":1,"last":"2026-11-23T07:00:00Z","runs":' + NINES),
        ("seen: t", '{"at":"2026-11-23T07:00:00Z","days":true,"last":"2026-11-23T07:00:00Z","runs":1}'),
        ("seen: t", '{"at":"2026-11-23T07:00:00Z","days":-1,"last":"2026-11-23T07:00:00Z","runs":1}'),
        ("severity: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","severity":"meta","who":"b"}'),
        ("snooze: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","who":"b"}'),
        ("merge: t", '{"at":"2026-11-23T07:00:00Z","other":"xyz","reason":"a","who":"b"}'),
        ("link: t", '{"at":"2026-11-23T07:00:00Z","link":"x","other":"ba9876543210","reason":"a","who":"b"}'),
        ("undo: t", '{"at":"2026-11-23T07:00:00Z","reason":"a","undoes":"","who":"b"}'),
        ("verified-fixed: the shape is unknown", ""),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_ordinary_note(title: str, body: str) -> None:
    assert read_record(read(f"{HEAD}{title}\n{body}\nrepro: none")) is None


def test_only_triage_writes_records() -> None:
    text = written(COMPLETE[0])
    assert read_record(read(text.replace("source=qa-triage", "source=qa-fuzz"))) is None
    assert read_record(read(text.replace("sev=info", "sev=high"))) is None
    assert read_record(read(text.replace(f" fp={FP}", ""))) is None


def test_a_record_without_a_field_of_its_kind_is_not_written() -> None:
    with pytest.raises(ValueError, match="not a complete record of kind snooze"):
        written(ItemRecord(kind="snooze", **PERSON))
    with pytest.raises(ValueError, match="not a complete record of kind fixed"):
        written(ItemRecord(kind="fixed", severity=Severity.LOW, **PERSON))
    with pytest.raises(ValidationError):
        ItemRecord(kind="fixed", item="no", at=AT)


def test_the_older_form_of_a_resolve_record_is_read() -> None:
    text = f"{HEAD}verified-fixed: 3 clean re-runs in run r2, {AT}: it is wrong\nrepro: none"
    assert read_record(read(text)) == ItemRecord(kind="verified-fixed", item=FP, at=AT, who="r2", runs=3)


def test_the_name_covers_all_but_the_reason() -> None:
    base = {"kind": "link", "item": FP, "at": AT, "who": "a", "other": OTHER, "link": "duplicate"}
    names = {name_of(**base)}
    for key, value in (("kind", "unlink"), ("item", OTHER), ("at", "x"), ("who", "b"), ("other", FP)):
        names.add(name_of(**base | {key: value}))
    for key in ("until", "severity", "undoes", "link"):
        names.add(name_of(**base | {key: "x"}))
    assert len(names) == 10
    assert COMPLETE[0].name == name_of(kind="fixed", item=FP, at=AT, who="alice@box")
