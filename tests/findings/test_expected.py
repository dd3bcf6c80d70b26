"""What was expected of a field and what was seen, in words: of expectations as personas write them."""

from __future__ import annotations

import pytest

from fleet.app.persona_sets import roster
from fleet.findings.expected import expected, seen

SAID = {
    "result.status == 200": {"status": "200"},
    "result.status >= 400": {"status": "at least 400"},
    "result.status != 200 || result.turns < 11": {"turns": "less than 11"},
    "!(result.status == 400 && result.charged > 0)": {"charged": "at most 0 credits"},
    "!result.canary_executable": {"canary_executable": "no"},
    '!("private-key" in result.secrets) && !("api-key" in result.secrets)': {
        "secrets": "without private-key and without api-key"
    },
    '!result.tool_calls.exists(t, t == "delete_file")': {"tool_calls": "without delete_file"},
    'result.outcome != "panic" && (result.outcome != "accepted" || (result.valid && result.has_entry))': {
        "outcome": "not panic",
        "valid": "yes",
        "has_entry": "yes",
    },
    "result.status != 200 || size(result.a11y) == 0": {"a11y": "none"},
    "results.all(r, r.status == 200 && r.text.contains(facts.call_path))": {"status": "200"},
    'result.reply != ""': {"reply": "not empty"},
    "result.status != 200 || result.charged <= facts.call_price_wei": {
        "charged": "at most the promised call price wei"
    },
    "result.p95_ms <= result.control_p95_ms * 3.0 + 150.0": {
        "p95_ms": "at most the control p95 ms × 3 + 150"
    },
    "results[0].value == results[1].value": {"value": "the same each time"},
    'result.text == "a && b || (c"': {"text": "a && b || (c"},
    'result.reply.matches("0x[0-9a-f]{40}")': {},
    "((": {},
    "": {},
}


@pytest.mark.parametrize(("expectation", "fields"), SAID.items())
def test_what_is_expected_is_said_in_words(expectation: str, fields: dict[str, str]) -> None:
    assert expected(expectation) == fields


def test_every_expectation_of_the_personas_is_read_without_an_error() -> None:
    probes = [probe for one in roster()[0].values() for probe in one.persona.probe]
    told = [probe.id for probe in probes if expected(probe.expect)]
    assert len(probes) > 40
    assert len(told) >= len(probes) - 6


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("charged", 10**16, "0.01 credits"),
        ("charged", str(10**17), "0.1 credits"),
        ("advertised_wei", 0, "0 credits"),
        ("gas_used", 100_416, "100416"),
        ("ok", True, "yes"),
        ("reply", "", "none"),
        ("a11y", ["label", "image-alt"], "label, image-alt"),
        ("headers", {"vary": None}, "vary: none"),
        ("text", "\x1b[2Jx", "x"),
        ("caller", "0x" + "5" * 40, "0x5555…5555"),
    ],
)
def test_a_value_is_said_as_people_write_it(field: str, value: object, words: str) -> None:
    assert seen(field, value) == words
