"""The repeat operator of a repro: a long pump is one line on the log, and comes back whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.findings.envelope import MAX_BYTES, compose, read, write
from fleet.findings.evidence import Bundle, EvidenceStep, seal
from fleet.findings.fingerprint import fingerprint
from fleet.findings.redact import Redactor
from fleet.findings.repetition import MARGIN, MAX_RUNS, parts
from fleet.findings.repro import MAX_CHARS, MAX_PARTS, ReproCall, ReproError, parse_repro, spell, write_repro
from fleet.store.rows import MirroredEntry
from fleet.triage.items.index import TriageIndex
from fleet.triage.outputs.document import WorklistHeader
from fleet.triage.outputs.markdown import to_markdown
from tests.triage.triage_log import rank

PUMP = "fn f(){" + "(" * 5300 + "1" + ")" * 5300 + "}"
WRITTEN = 'qa_compile(source="fn f(){" + "("*5300 + "1" + ")"*5300 + "}")'
EV = "5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592"
TRUSTED = "0x" + "11" * 20

PIECES = st.lists(
    st.tuples(st.text(st.sampled_from('ab("\\\n\u00e9\ud800\U0001f600'), max_size=9), st.integers(0, 150)),
    max_size=5,
).map(lambda pieces: "".join(unit * times for unit, times in pieces))


def compiles(source: str) -> tuple[ReproCall, ...]:
    return (ReproCall("qa_compile", {"source": source}),)


def test_a_pump_is_written_as_a_sum() -> None:
    assert write_repro(compiles(PUMP)) == WRITTEN
    assert parse_repro(WRITTEN) == compiles(PUMP)


@given(PIECES | st.text(max_size=300))
@example("")
@example("ab" * 700 + "ba" * 300)
@example(("a" * 40 + "b") * 80)
@example("\\" * 500 + '"' * 500 + "\0" * 500)
def test_any_string_comes_back_and_has_one_spelling(source: str) -> None:
    text = write_repro(compiles(source))
    assert parse_repro(text) == compiles(source)
    assert write_repro(parse_repro(text)) == text
    assert text.isascii()
    assert text.isprintable()
    saved = len(spell(compiles(source))) - len(text)
    assert saved == 0 or saved >= MARGIN
    assert len(parts(source)) <= 2 * MAX_RUNS + 1 <= MAX_PARTS


@pytest.mark.parametrize("size", [1, 60, 100, 115])
def test_a_short_repro_keeps_its_spelling(size: int) -> None:
    assert write_repro(compiles("x" * size)) == f'qa_compile(source="{"x" * size}")'


def test_a_fingerprint_does_not_depend_on_the_spelling() -> None:
    assert spell(compiles("x" * 4_000)) == f'qa_compile(source="{"x" * 4_000}")'
    plain = parse_repro(f'qa_compile(source="{PUMP}")')
    assert fingerprint("compiler", plain, "") == fingerprint("compiler", parse_repro(WRITTEN), "")
    assert fingerprint("compiler", plain, "") == "07a23c2d3103"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('q(a="x"*999999999)', "expected ',' or ')' at character 7"),
        ('q(a="x"*9999999)', "more than 1000000 times at character 4"),
        ('q(a="x"*1000000)', "too long when written out at character 4"),
        ('q(a="x"*200000, b="y"*200000)', "too long when written out at character 18"),
        ('q(a="x"*200000); q(b="y"*200000)', "too long when written out at character 21"),
        ('q(a=["x"*3])', "not a JSON literal at character 4: JSONDecodeError"),
        ('q(a={"b":"x"*3})', "not a JSON literal at character 4: JSONDecodeError"),
        ('q(a=("x")*3)', "not a JSON literal at character 4: JSONDecodeError"),
        ('q(a="x" *3)', "expected ',' or ')' at character 7"),
        ('q(a="x"* 3)', "expected ',' or ')' at character 7"),
        ('q(a="x"*03)', "expected ',' or ')' at character 7"),
        ('q(a="x"*+3)', "expected ',' or ')' at character 7"),
        ('q(a="x"*-3)', "expected ',' or ')' at character 7"),
        ('q(a="x"*0)', "expected ',' or ')' at character 7"),
        ('q(a="x"*\u0663)', "expected ',' or ')' at character 7"),
        ('q(a="x"*3*3)', "expected ',' or ')' at character 9"),
        ('q(a="x"*3.5)', "expected ',' or ')' at character 9"),
        ("q(a=1*3)", "expected ',' or ')' at character 5"),
        ('q(a="x"+)', f"expected at most {MAX_PARTS} strings in the sum at character 4"),
        ('q(a="x"+1)', f"expected at most {MAX_PARTS} strings in the sum at character 4"),
        (
            "q(a=" + "+".join(['"x"'] * (MAX_PARTS + 1)) + ")",
            f"expected at most {MAX_PARTS} strings in the sum at character 4",
        ),
    ],
)
def test_a_hostile_sum_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ReproError) as caught:
        parse_repro(text)
    assert str(caught.value) == why


def test_what_fits_is_read() -> None:
    assert parse_repro('q(a="x"*1)') == (ReproCall("q", {"a": "x"}),)
    assert parse_repro('q(a="" \t+ "x"+"y"*2)') == (ReproCall("q", {"a": "xyy"}),)
    assert parse_repro("q(a=" + "+".join(['"x"'] * MAX_PARTS) + ")")[0].args == {"a": "x" * MAX_PARTS}
    assert parse_repro(f'q(a="x"*{MAX_CHARS})')[0].args == {"a": "x" * MAX_CHARS}
    with pytest.raises(ReproError):
        parse_repro(f'q(a="x"*{MAX_CHARS + 1})')


@settings(max_examples=300)
@given(st.from_regex(r'qa\(a="[x"]{0,3}("\*[0-9]{1,9}|"| ?\+ ?"y?){0,4}"?\)', fullmatch=True))
def test_no_sum_raises_anything_but_a_repro_error(text: str) -> None:
    try:
        calls = parse_repro(text, 4_096)
    except ReproError:
        return
    assert parse_repro(write_repro(calls)) == calls


def _entry(source: str) -> str:
    return write(
        compose(
            Redactor(),
            source="qa-fuzz",
            sev="high",
            surface="compiler",
            run="r1",
            fp="0123456789ab",
            rate=(3, 3),
            ev=EV,
            title="compile crashes on deep nesting",
            repro=compiles(source),
        )
    )


def test_a_pump_is_one_line_from_the_envelope_to_the_worklist() -> None:
    text = _entry(PUMP)
    assert len(text.encode()) < 400 < MAX_BYTES
    assert read(text).repro == compiles(PUMP)
    logged = MirroredEntry(epoch=0, index=0, sender=TRUSTED, timestamp=1, text=text)
    index = TriageIndex(frozenset({TRUSTED}))
    index.add([logged])
    items = rank([one.cluster() for one in index.items()])
    assert (items[0].repro, items[0].proof) == (WRITTEN, "confirmed")
    assert WRITTEN in to_markdown(items, WorklistHeader()).decode()


def test_what_an_entry_may_expand_to_is_bounded() -> None:
    """Triage holds every entry of a log in memory, and anyone may write one."""
    assert read(_entry("x" * 16_000)).repro == compiles("x" * 16_000)
    assert read(_entry("x" * 17_000)).repro_state == "evidence"
    hostile = _entry("x" * 16_000).replace("*16000", "*200000")
    assert (read(hostile).repro_state, read(hostile).repro) == ("invalid", ())


def _sealed(source: str, *secrets: str) -> dict[str, object]:
    bundle = Bundle(
        fingerprint="0123456789ab",
        run="r1",
        persona="qa-fuzz",
        persona_sha256="0" * 64,
        probe="p",
        expectation="",
        surface="compiler",
        severity="high",
        title="t",
        repro=write_repro(compiles(source)),
        steps=(EvidenceStep(tool="qa_compile", args={"source": source}, result={"ok": False}),),
        confirmed=3,
        tries=3,
        platform="devnet",
        chain_id=31337,
    )
    record: dict[str, object] = json.loads(seal(bundle, Redactor(secrets)).data)
    return record


def test_the_evidence_has_the_pump_in_full() -> None:
    record = _sealed(PUMP)
    assert record["steps"] == [{"tool": "qa_compile", "args": {"source": PUMP}, "result": {"ok": False}}]
    assert record["repro"] == WRITTEN


def test_a_repetition_does_not_split_a_secret() -> None:
    """The unit of the run is a rotation of the secret, which no search of the text would find."""
    source = "ret-" + "hunter2-secret-" * 20
    assert "hunter2-secret" not in write_repro(compiles(source)).split("*")[0].removesuffix('-hunter2-sec"')
    record = _sealed(source, "hunter2-secret")
    assert "hunter2" not in json.dumps(record)
    assert "[redacted:secret]" in str(record["repro"])
