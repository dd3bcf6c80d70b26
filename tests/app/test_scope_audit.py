"""What left for a platform, held against its profile by records of real form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleet.app.scope_audit import audit_scope
from fleet.broker.egress_record import EGRESS
from fleet.config import ChainSection, Platform, WebSection
from fleet.config.scope import ScheduleSection
from fleet.events.record import RecordFile
from fleet.store.journal import Journal
from fleet.triage.outputs.period import PeriodFacts, period

pytestmark = pytest.mark.anyio
PROFILE = Platform(
    name="p",
    chain=ChainSection(rpc="http://node.test:8545", id=1, diamond="0x" + "00" * 20),
    web=WebSection(site="https://site.test", never=("{site}/logout",), ranges=("203.0.113.0/24",)),
    schedule=ScheduleSection.model_validate({"excluded": ["Sun 02:00-04:00"]}),
)
SATURDAY, SUNDAY = "2026-11-28T03:00:00.000Z", "2026-11-29T03:00:00.000Z"


def asked(**other: Any) -> dict[str, Any]:
    row = {"n": 1, "at": SATURDAY, "verb": "GET", "host": "site.test", "path": "/", "rule": ""}
    return row | {"address": "203.0.113.9"} | other


def record(state: Path, run: str, *rows: dict[str, Any]) -> None:
    (state / "runs" / run).mkdir(parents=True)
    file = RecordFile(state / "runs" / run / EGRESS, sync=False)
    file.append([json.dumps(row).encode() for row in rows])
    file.close()


async def audited(state: Path, *runs: str) -> dict[str, Any]:
    async with await Journal.open(state / "fleet.db") as journal:
        return await audit_scope(state, journal, PROFILE, runs)


OUTSIDE = [
    (asked(host="cdn.test"), "no host of the profile"),
    (asked(host="site.test:8443"), "no host of the profile"),
    (asked(path="/LOGOUT/now"), "{site}/logout is on web.never"),
    (asked(address="198.51.100.7"), "198.51.100.7 is outside of web.ranges"),
    (asked(at=SUNDAY), "outside of the windows of the schedule"),
    (asked(verb="RPC", host="other.test:8545"), "another node than node.test:8545"),
]


async def test_what_left_is_judged_again_by_the_profile(tmp_path: Path) -> None:
    inside = [asked(), asked(verb="POST"), asked(rule="timeout"), asked(verb="RPC", host="node.test:8545")]
    barred = [asked(host="cdn.test", rule="host"), asked(path="/logout", rule="never")]
    record(tmp_path, "good", *inside, *barred)
    record(tmp_path, "bad", *[row for row, _ in OUTSIDE])
    clean = await audited(tmp_path, "good", "asked nothing")
    assert (clean["requests"], clean["outside"], clean["score"]) == (4, 0, 100.0)
    assert (clean["refused"], clean["unproven"]) == ({"host": 1, "never": 1}, {})
    both = await audited(tmp_path, "good", "bad")
    assert (both["requests"], both["outside"], both["score"]) == (10, 6, 40.0)
    assert [one["why"] for one in both["named"]] == [why for _, why in OUTSIDE]


async def test_a_record_that_does_not_hold_gives_no_score(tmp_path: Path) -> None:
    record(tmp_path, "run", asked(), asked(host="cdn.test"))
    path = tmp_path / "runs" / "run" / EGRESS
    path.write_bytes(path.read_bytes().replace(b"cdn.test", b"site.test"))
    found = await audited(tmp_path, "run")
    assert (found["score"], list(found["unproven"])) == (None, ["run"])


@pytest.mark.parametrize(
    ("audit", "says"),
    [
        ({}, "no record of requests was read"),
        ({"requests": 0}, "0 requests left, so none out of scope; 0 others were refused"),
        (
            {"requests": 4, "refused": {"host": 1}},
            "4 requests left, all in scope (100 %); 1 other was refused",
        ),
        (
            {"requests": 8, "outside": 2, "score": 75.0},
            "2 of 8 requests were OUT OF SCOPE (75.0 % in scope); 0 others were refused",
        ),
        (
            {"requests": 1, "unproven": {"a": "x"}},
            "1 request on record, but the records of 1 run do not hold",
        ),
    ],
)
def test_the_report_says_it_in_one_sentence(audit: dict[str, Any], says: str) -> None:
    known = {"outside": 0, "refused": {}, "unproven": {}, "named": [], "score": None} | audit if audit else {}
    facts = PeriodFacts(platform="p", version="1", since="a", until="b", scope_audit=known)
    assert period(facts)["scope_audit"]["says"] == says
