"""What the reader of the log leaves unread, and which grammar a header is in."""

from __future__ import annotations

from fleet.findings.envelope import MAX_BYTES, read
from fleet.findings.reader import MAX_CHARS


def test_an_entry_is_read_as_far_as_its_limit() -> None:
    """What stands behind it is not even looked at: the repro there is none of this entry's."""
    head = "qa/v1 source=qa-ux sev=low surface=web run=abcd1234 fp=0123456789ab rate=3/3\ntitle\n"
    near = head + "x" * (MAX_CHARS - len(head) - 12) + "\nrepro: none"
    far = head + "x" * MAX_CHARS + '\nrepro: qa_fetch(url="{site}/")'
    assert (MAX_CHARS, read(near).repro_state, read(far).repro_state) == (16_384, "none", "none")
    assert read(far).title == "title"
    assert read(far).repro == ()


def test_words_behind_the_fields_make_an_older_header() -> None:
    """There a severity of any spelling is taken, as `unknown`; in a canonical header it is not."""
    older = read("qa/v1 source=qa-ux sev=p3 surface=web the title stands here\nand more")
    assert (older.grammar, older.severity, older.title) == ("sop", "unknown", "the title stands here")
    assert read("qa/v1 source=qa-ux sev=p3 surface=web\nthe title").grammar == "free"


def test_an_entry_of_ours_has_at_most_2048_bytes() -> None:
    assert MAX_BYTES == 2_048
