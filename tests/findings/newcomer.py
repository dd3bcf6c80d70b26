"""What a house with one more severity makes of it: prints JSON.

python -m tests.findings.newcomer SEVERITY
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

from fleet.config import parse
from fleet.findings.envelope import Envelope, read, write
from fleet.findings.reader import skim
from fleet.findings.records import ItemRecord, read_record, write_record
from fleet.findings.severity import SEVERITIES
from fleet.personas.model import Probe
from fleet.runs.proof.verify import Proof, gravest_first
from fleet.store.rows import FindingRow
from fleet.triage.items.unproven import unproven
from fleet.triage.outputs.sarif import to_sarif
from fleet.triage.outputs.selection import Selection
from tests.triage.outputs.test_formats import HEADER, OWN, item

FP, AT = "0123456789ab", "2026-11-21T10:00:00Z"
PROBE = 'id = "p"\nseverity = "{}"\nsteps = [{{ tool = "qa_fetch" }}]\nexpect = "true"\nfinding = "is wrong"'


def main(word: str) -> dict[str, object]:
    new = next(one for one in SEVERITIES if one == word)
    text = write(Envelope(source="qa-x", sev=new, surface="ux", fp=FP, title="a title"))
    record = ItemRecord(kind="severity", item=FP, at=AT, who="ann", reason="why", severity=new)
    back = read_record(read(write_record(record, surface="ux", title="t")))
    rows = [
        FindingRow(run_id="r", fingerprint=f"{at:012x}", severity=one, state="unverified", at=AT)
        for at, one in enumerate(("low", word, "critical"))
    ]
    probe = parse(Probe, PROBE.format(word), file="a.toml")
    proofs = [Proof(row, probe) for row in rows]
    shown = item(1, "x", **OWN | {"severity": word})
    return {
        "probe": probe.severity,
        "entry": read(text).severity,
        "skimmed": (skim(text) or "??")[1],
        "record": back.severity if back else "",
        "proven in this order": [one.row.severity for one in gravest_first(proofs)],
        "unproven": [one.severity for one in unproven(rows, (), datetime.now(UTC))],
        "level": json.loads(to_sarif([shown], HEADER))["runs"][0]["results"][0]["level"],
        "selected": [one.rank for one in Selection(severities=(word,)).of([shown])],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
