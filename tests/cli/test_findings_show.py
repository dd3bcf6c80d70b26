"""`fleet findings show` of a finding whose evidence is here: the fields that decide, and all of them."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.cli.findings.findings import _print
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import FindingRow

RESULT = {"status": 200, "reply": "", "turns": 11, "text": "\x1b[2Jhidden", "headers": {}, "charged": 0}
SEEN = Recurrence().model_dump(mode="json")


def shown(capsys: pytest.CaptureFixture[str], *, whole: bool, **data: Any) -> list[str]:
    row = FindingRow(
        run_id="r1",
        fingerprint="a" * 12,
        probe="p",
        persona="qa-x",
        surface="ux",
        severity="low",
        title="It",
        repro="",
        evidence="b" * 64,
        data=data,
    )
    steps = [{"tool": "qa_call", "args": {"target": "moss"}, "result": RESULT}]
    bundle = {"expectation": 'result.reply != ""', "steps": steps}
    _print(
        row, {"seen": SEEN, "evidence_bundle": bundle, "evidence_on": "", "index": -1, "tx": ""}, whole=whole
    )
    said = capsys.readouterr().out.splitlines()
    return said[said.index("  a call of moss") + 1 :]


def test_the_fields_that_decide_are_shown_though_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, whole=False, fields=["reply"]) == [
        "    status: 200",
        '    reply: ""',
        "  3 other fields of these answers: --evidence",
    ]


def test_all_fields_are_shown_when_asked_or_when_none_is_known_to_decide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = ["    status: 200", "    turns: 11", '    text: "\\u001b[2Jhidden"', "    charged: 0"]
    assert shown(capsys, whole=False) == whole
    assert shown(capsys, whole=True, fields=["reply"]) == [whole[0], '    reply: ""', *whole[1:]]
