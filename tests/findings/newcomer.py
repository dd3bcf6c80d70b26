"""What a house makes of one more severity, or of another number of proofs: prints JSON.

python -m tests.findings.newcomer severity WORD
python -m tests.findings.newcomer proof FOLDER
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio

from fleet.config import parse
from fleet.findings.envelope import Envelope, read, write
from fleet.findings.reader import skim
from fleet.findings.records import ItemRecord, read_record, write_record
from fleet.fuzzing.suspects import Suspect
from fleet.personas.model import Probe
from fleet.runs.outage.decide import Patience
from fleet.runs.proof.grades import graded
from fleet.runs.proof.verify import Proof, gravest_first
from fleet.severity import GRAVE, SEVERITIES
from fleet.store.rows import FindingRow
from fleet.triage.items.cluster import proof_of
from fleet.triage.items.unproven import unproven
from fleet.triage.outputs.sarif import to_sarif
from fleet.triage.outputs.selection import Selection
from tests.runs.table import look, persona, seated
from tests.runs.test_desk import ANY
from tests.runs.test_proofs import proven, saying
from tests.triage.outputs.test_formats import HEADER, OWN, item

FP, AT = "0123456789ab", "2026-11-21T10:00:00Z"
PROBE = 'id = "p"\nseverity = "{}"\nsteps = [{{ tool = "qa_fetch" }}]\nexpect = "true"\nfinding = "is wrong"'


def severity(word: str) -> dict[str, object]:
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
        "at once": [row.severity for row in rows if row.severity in GRAVE],
        "level": json.loads(to_sarif([shown], HEADER))["runs"][0]["results"][0]["level"],
        "selected": [one.rank for one in Selection(severities=(word,)).of([shown])],
    }


async def proof(folder: Path) -> dict[str, object]:
    def said(page: str, count: int) -> dict[str, object]:
        return {"status": 404 if page == "always" or count % 2 else 403}

    probes = [look(one, "result.status == 200") for one in ("always", "half")]
    async with seated(folder, persona(*probes), hand=ANY, answer=saying(said)) as table:
        rows = await proven(table, "always", "half")
    entries = {row.probe: read(row.envelope) for row in rows if row.envelope}
    suspect = Suspect(part="source", signature="s", kind="crash", said="", source="x")
    looks = 0
    while suspect.waits:
        looks, suspect.looks = looks + 1, suspect.looks + 1
    return {
        "rows": [[row.probe, row.state, f"{row.confirmed}/{row.tries}", graded(row).why] for row in rows],
        "triage": [proof_of(True, one.repro_state, True, one.rate, one.ev) for one in entries.values()],
        "looks at a suspect": looks,
        "looks at a silent target": len(Patience().deadlines) - 1,
        "seconds": round(sum(Patience().pauses), 3),
    }


if __name__ == "__main__":
    if sys.argv[1] == "severity":
        print(json.dumps(severity(sys.argv[2])))
    else:
        print(json.dumps(anyio.run(proof, Path(sys.argv[2]))))
