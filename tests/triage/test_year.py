"""A year by simulation: the list stays true, and the log, the memory and a pass stay small.

Twenty days; `make year` simulates YEAR_DAYS=365 from another seed, YEAR_SEED, which a failure names. What is
true of an item is checked after every pass (year.py). A place that shows its defect in a share r of the looks
may be called fixed while it is broken by (1 - r)^3 of its re-runs, and comes back as a regression.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import timedelta

import pytest

from fleet.findings.reader import read
from fleet.findings.records import read_record
from fleet.triage.items.index import PER_SENDER, RECORDS
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.reports import REPORTS
from fleet.triage.run import decide
from tests.triage.triage_log import FLEET, TRUSTED
from tests.triage.year import PLACES, STEP, Year

SIMULATED = int(os.environ.get("YEAR_DAYS", "20"))
SEED = int(os.environ.get("YEAR_SEED", "12"))
MOST = 8
"""Entries of the fleet for each time that a place broke: report, resolve record, two summaries, and what
flaky places, persons and figures add."""
LONG = 365

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60 + 30 * SIMULATED)]


async def test_the_list_stays_true_and_small() -> None:
    year = Year(SEED)
    begun = time.process_time()
    try:
        for _ in range(SIMULATED * (timedelta(days=1) // STEP)):
            await year.step()
    except AssertionError as error:
        raise AssertionError(f"YEAR_SEED={SEED}: {error}") from None
    used, passed = time.process_time() - begun, _last_pass(year)
    ours = [read(one.text) for one in year.log.entries if one.sender == FLEET]
    kinds = Counter(record.kind if (record := read_record(one)) else one.severity for one in ours)
    what = f"{SIMULATED} days, seed {SEED}, {used:.0f} s: {dict(year.happened)}; our entries {dict(kinds)}"
    print(f"{what}; {len(year.decided.items)} items; the last pass {passed:.3f} s")

    assert len(ours) <= MOST * year.happened["breaks"], what
    _is_bounded(year)
    known = PassInputs(now=year.now, figures=year.figures, decisions=tuple(year.decisions))
    assert year.fold.decide(known).items == decide(year.log.entries, TRUSTED, known).items, what
    if SIMULATED >= LONG:
        assert passed < 1, what


def _last_pass(year: Year) -> float:
    """Processor seconds of one more pass, for which everything is judged again."""
    year.now += timedelta(days=1)
    year.fold.add(year.log.entries[year.fold.index.next_index :])
    known = PassInputs(now=year.now, figures=dict(year.figures), decisions=tuple(year.decisions))
    begun = time.process_time()
    year.fold.decide(known)
    return time.process_time() - begun


def _is_bounded(year: Year) -> None:
    index = year.fold.index
    ours = [item for item in index.items() if item.reports]
    assert len(ours) <= PLACES
    assert len(year.figures) <= PLACES
    assert max(len(item.reports) for item in ours) <= REPORTS
    assert max(map(len, index.records.values()), default=0) <= RECORDS
    senders = Counter(one.sender for one in year.log.entries if one.sender != FLEET)
    unread = sum(max(0, number - PER_SENDER) for number in senders.values())
    assert index.unread == unread
