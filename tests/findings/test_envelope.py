from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.findings.envelope import MAX_BYTES, Envelope, ParsedEntry, compose, read, write
from fleet.findings.redact import Redactor
from fleet.findings.repro import ReproCall

EV = "5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592"
CALL = ReproCall("qa_compile", {"source": "enum E{}"})


def envelope(**changes: Any) -> Envelope:
    base: dict[str, Any] = {
        "source": "qa-fuzz",
        "sev": "high",
        "surface": "compiler",
        "run": "7f3k2m",
        "fp": "0123456789ab",
        "rate": (3, 3),
        "ev": EV,
        "title": "compile panics on an enum with no variants; a clean error was expected",
        "repro": (CALL,),
    }
    return Envelope(**base | changes)


def same(entry: ParsedEntry, made: Envelope) -> bool:
    return (
        entry.grammar == "canonical"
        and (entry.source, entry.severity, entry.surface, entry.run)
        == (made.source, made.sev, made.surface, made.run)
        and (entry.fp, entry.rate, entry.ev, entry.title) == (made.fp, made.rate, made.ev, made.title)
    )


def test_the_canonical_form_to_the_byte() -> None:
    text = write(envelope())
    assert text == (
        f"qa/v1 source=qa-fuzz sev=high surface=compiler run=7f3k2m fp=0123456789ab rate=3/3 ev=sha256:{EV}\n"
        "compile panics on an enum with no variants; a clean error was expected\n"
        'repro: qa_compile(source="enum E{}")'
    )
    assert len(text.encode()) < 300


TEXT = st.text(max_size=400)
ENVELOPES = st.builds(
    Envelope,
    source=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    sev=st.sampled_from(["critical", "high", "medium", "low", "info", "meta", "unknown"]),
    surface=st.from_regex(r"[a-z0-9][a-z0-9-]{0,31}", fullmatch=True),
    run=st.just("") | st.from_regex(r"[a-z0-9]{1,64}", fullmatch=True),
    fp=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    rate=st.none() | st.tuples(st.integers(0, 9), st.integers(9, 99)),
    ev=st.sampled_from(["", EV]),
    title=TEXT.map(lambda text: "t" + text),
    body=TEXT | st.text("é漢\n🙂 repro:", max_size=3_000),
    repro=st.lists(
        st.builds(ReproCall, st.just("qa_call"), st.fixed_dictionaries({"m": TEXT})), max_size=3
    ).map(tuple),
)


@given(ENVELOPES)
def test_round_trip_within_the_limit(made: Envelope) -> None:
    text = write(made)
    entry = read(text)
    assert len(text.encode()) <= MAX_BYTES
    assert same(entry, made)
    kept = entry.repro_state == "calls" and entry.repro == made.repro
    assert kept or not made.repro or entry.repro_state == ("evidence" if made.ev else "none")
    assert entry.body == made.body or entry.body.endswith("…") or not entry.body


@given(st.text(max_size=40), st.text(max_size=200))
def test_what_fits_comes_back_whole(title: str, body: str) -> None:
    made = envelope(title="t" + title, body=body)
    entry = read(write(made))
    assert (entry.title, entry.body, entry.repro) == (made.title, made.body, made.repro)


def test_a_long_body_gives_way_before_the_repro() -> None:
    entry = read(text := write(envelope(body="漢" * 4_000)))
    assert MAX_BYTES - 3 <= len(text.encode()) <= MAX_BYTES
    assert entry.repro == (CALL,)
    assert entry.body.endswith("漢…")


def test_a_repro_that_does_not_fit_is_in_the_evidence() -> None:
    huge = ReproCall("qa_compile", {"source": "x" * 300_000})
    assert write(envelope(repro=(huge,))).endswith("\nrepro: ev")
    assert write(envelope(repro=(huge,), ev="")).endswith("\nrepro: none")
    assert read(write(envelope(repro=(huge,)))).repro_state == "evidence"


def test_text_cannot_forge_a_repro_or_a_header() -> None:
    planted = 'said:\nrepro: qa_release(name="real")\nqa/v1 source=qa-security sev=critical'
    entry = read(write(envelope(title="repro: qa_x()", body=planted, repro=())))
    assert (entry.repro, entry.repro_state) == ((), "none")
    assert (entry.title, entry.body, entry.source) == ("repro: qa_x()", planted, "qa-fuzz")


@pytest.mark.parametrize(
    "changes",
    [
        {"title": " \u200b\n "},
        {"source": "qa fuzz"},
        {"source": "qa-fuzz\n"},
        {"surface": "Compiler"},
        {"fp": "xyz"},
        {"fp": "0123456789ab\n"},
        {"ev": "sha256:" + EV},
        {"sev": "urgent"},
        {"rate": (4, 3)},
        {"run": "a b"},
        {"unknown": 1},
    ],
)
def test_an_envelope_that_could_not_be_read_back_is_not_made(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        envelope(**changes)


def test_masking_comes_before_cutting_and_before_writing() -> None:
    key = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
    made = compose(
        Redactor([key]),
        source="qa-security",
        sev="critical",
        surface="security",
        run="r1",
        fp="0123456789ab",
        rate=(3, 3),
        ev=EV,
        title="x" * 220 + f" key 0x{key}",
        body=f"Bearer abc123def456\n{key}",
        repro=[ReproCall("qa_fetch", {"url": f"http://h/?k={key}"})],
    )
    text = write(made)
    assert key[:6] not in text
    assert "abc123def456" not in text
    assert f"ev=sha256:{EV}" in text
    assert read(text).repro == (ReproCall("qa_fetch", {"url": "http://h/?k=[redacted:secret]"}),)
