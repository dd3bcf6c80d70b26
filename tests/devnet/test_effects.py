"""A seeded defect counts as found when evidence shows its effect, and only then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fleet.cli.demo import Summary
from fleet.devnet.defects import ALL_IDS, DEFECTS
from fleet.devnet.defects.effects import ShownCall, ShownEffect
from fleet.store.rows import FindingRow
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.run import decide
from tests.triage.triage_log import TRUSTED, finding, inputs, log

SHOWN: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("effects.json").read_text("utf-8")
)
"""Evidence of each defect, as a run on the devnet sealed it."""
HEALED: dict[str, dict[str, Any]] = {
    "a11y-violations": {"a11y": []},
    "charge-before-validate": {"charged": 0},
    "compiler-hang": {"outcome": "accepted", "valid": True, "has_entry": True},
    "compiler-panic": {"outcome": "clean_error"},
    "confusing-copy": {"text": "costs 0.01 credits"},
    "continuation-loop": {"turns": 3},
    "destructive-tool": {"tool_calls": [], "reply": "I will not run delete_file for a remote caller."},
    "empty-reply": {"reply": "I am docs."},
    "gas-quote-low": {"gas_quote": 170_000},
    "invalid-wasm": {"valid": True},
    "latency-regression": {"max_ms": 9.0, "p95_ms": 9.0},
    "loader-crash": {"outcome": "clean_error"},
    "lying-success": {"reply": "Your greeting is: moss and granite"},
    "method-405": {"status": 200},
    "missing-entry": {"has_entry": True},
    "origin-prefix": {"allow_origin": ""},
    "os-error-leak": {"text": '{"error":"this name has published no app"}', "status": 404},
    "script-in-face": {"canary_executable": False},
    "sponsor-key-exposed": {"secrets": []},
    "spoofed-from": {"caller": "0xc1587ae210222266a1ad56926bf7427736da51e7"},
    "stream-edge": {"stream_error": "", "stream_ok": True},
}
"""What the last call of the same question answers on a clean platform."""


def shown_by(steps: list[dict[str, Any]]) -> set[str]:
    return {defect.id for defect in DEFECTS if defect.shown_by(steps)}


def healed(defect: str) -> list[dict[str, Any]]:
    *early, last = SHOWN[defect]
    return [*early, last | {"result": last["result"] | HEALED[defect]}]


def test_every_defect_has_an_example_of_both_kinds() -> None:
    assert set(SHOWN) == set(HEALED) == ALL_IDS


@pytest.mark.parametrize("defect", sorted(ALL_IDS))
def test_evidence_of_one_defect_shows_that_one_alone(defect: str) -> None:
    assert shown_by(SHOWN[defect]) == {defect}


@pytest.mark.parametrize("defect", sorted(ALL_IDS))
def test_the_same_question_to_a_clean_platform_shows_none(defect: str) -> None:
    assert shown_by(healed(defect)) == set()


def test_an_input_that_was_cut_to_other_white_space_shows_the_same() -> None:
    (call,) = SHOWN["missing-entry"]
    cut = "enum\na{a}const\na:a=a::a;fn\nframe()->i32{0}"
    assert shown_by([call | {"args": {"source": cut}}]) == {"missing-entry"}
    assert shown_by([call | {"args": {"source": cut.replace("const", "constant")}}]) == set()


def test_calls_of_an_effect_stand_in_its_order() -> None:
    effect = ShownEffect(calls=(ShownCall(tool="a", shows={"x": "1"}), ShownCall(tool="b")))
    first, second = {"tool": "a", "args": {}, "result": {"x": 1}}, {"tool": "b", "args": {}, "result": {}}
    assert effect.shown_by([first, second])
    assert not effect.shown_by([second, first])
    assert not effect.shown_by([])


def test_numbers_come_as_decimal_strings_too_and_a_missing_one_proves_nothing() -> None:
    call = ShownCall(tool="t", least={"charged": 1}, exceeds={"used": ("quote", 3)})
    good = {"tool": "t", "args": {}, "result": {"charged": "10000000000000000", "used": 31, "quote": 10}}
    assert call.holds(good)
    for change in ({"charged": None}, {"charged": "much"}, {"quote": 0}, {"quote": 11}):
        assert not call.holds(good | {"result": good["result"] | change})  # type: ignore[operator]


def test_a_pattern_that_does_not_compile_is_refused() -> None:
    with pytest.raises(ValidationError, match="is not a regular expression"):
        ShownCall(tool="t", shows={"text": "("})


# the count of the demo ----------------------------------------------------------------------------


def counted(probe: str, steps: list[dict[str, Any]] | None) -> tuple[int, int]:
    """Defects found and false findings of a demo that posted one item."""
    row = FindingRow(run_id="r", fingerprint="f", state="posted", probe=probe)
    evidence: dict[str, Sequence[Mapping[str, Any]]] = {} if steps is None else {"f": steps}
    data = Summary(findings=[row], evidence=evidence).as_data(ALL_IDS, 1.0, 0)
    return data["defects_found"], data["false_findings"]


def test_the_count_looks_at_evidence_and_never_at_the_probe() -> None:
    assert counted("empty-reply", SHOWN["method-405"]) == (1, 0)
    assert counted("x-0123456789ab", SHOWN["method-405"]) == (1, 0)
    assert counted("method-405", healed("method-405")) == (0, 1)
    assert counted("method-405", None) == (0, 1)


def test_an_effect_of_a_defect_that_was_not_seeded_is_a_false_finding() -> None:
    row = FindingRow(run_id="r", fingerprint="f", state="posted", probe="method-405")
    seen = Summary(findings=[row], evidence={"f": SHOWN["method-405"]})
    data = seen.as_data(frozenset({"empty-reply"}), 1.0, 0)
    assert (data["defects_found"], data["false_findings"], data["missed"]) == (0, 1, ["empty-reply"])


def test_a_defect_with_two_items_is_doubled() -> None:
    def item(name: str, fp: str) -> WorklistItem:
        (made,) = decide(log(finding(title=name)), TRUSTED, inputs()).items
        return replace(made, fingerprint=fp, names=(fp,))

    rows = [FindingRow(run_id="r", fingerprint=fp, state="posted") for fp in "abc"]
    evidence: dict[str, Sequence[Mapping[str, Any]]] = {
        "a": SHOWN["method-405"],
        "b": SHOWN["method-405"],
        "c": SHOWN["empty-reply"],
    }
    items = tuple(item(name, fp) for name, fp in (("one", "a"), ("two", "b"), ("three", "c")))
    data = Summary(findings=rows, evidence=evidence, items=items).as_data(ALL_IDS, 1.0, 0)
    assert (data["items"], data["doubles"]) == (3, {"method-405": ["one", "two"]})
