"""Reports, records and decisions for the tests of an item's life; minutes count from 2026-11-23 07:00."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fleet.clock import iso
from fleet.findings.records import ItemRecord
from fleet.store.rows import DecisionRow
from fleet.triage.items.cluster import ReadReport
from fleet.triage.items.decisions import named
from fleet.triage.items.worklist import ProofState
from tests.triage.triage_log import FLEET, HUMAN, finding

FP = "0123456789ab"
BEGIN = datetime(2026, 11, 23, 7, tzinfo=UTC)


def moment(minute: float) -> datetime:
    return BEGIN + timedelta(minutes=minute)


def at(minute: float) -> str:
    return iso(moment(minute))


def report(index: int, *, minute: float, run: str = "r1", trusted: bool = True, epoch: int = 0) -> ReadReport:
    text = finding(run=run, seen=FP)
    proof: ProofState = "confirmed" if trusted else "untrusted"
    sender, when = FLEET if trusted else HUMAN, int(moment(minute).timestamp())
    return ReadReport(epoch, index, when, sender, trusted, run, proof, "high", text, "qa-fuzz")


def record(kind: Any, index: int, *, minute: float, epoch: int = 0, **more: Any) -> ItemRecord:
    if kind == "verified-fixed":
        more = {"who": "r9", "runs": 3} | more
    else:
        more = {"who": "alice", "reason": "why"} | more
    return ItemRecord(kind=kind, item=FP, at=at(minute), **more).placed(epoch, index)


def decided(kind: Any, minute: float, **more: Any) -> DecisionRow:
    row = DecisionRow(item=FP, kind=kind, reason=f"why {kind}", who="alice", at=at(minute), **more)
    return named(row)
