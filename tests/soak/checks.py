"""The invariants, looked at from outside: the files, the chain and /proc, not the daemon's own word.

What must never be false is `broken`; what may need a while after a fault is `unfinished`.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fleet.app.persona_sets import load
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.names import Names
from fleet.chain.node import abi
from fleet.chain.node.codec import Entry
from fleet.chain.signing.tx import parse
from fleet.devnet.defects import DEFECTS
from fleet.errors import FleetError, UsageError
from fleet.findings import evidence
from fleet.findings.envelope import read
from fleet.store.rows import CLOSING, MirroredEntry
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.run import decide
from tests.soak.cast import SEEDED
from tests.soak.gauges import Gauges
from tests.soak.stand import Stand

GIVES_BACK = frozenset({"submitFeedback", "releaseName", "clearMain", ""})
"""What is signed at observe: reports, and clean-up with the transfers that pay for it."""


def rows(stand: Stand, query: str, *values: Any) -> list[Any]:
    """A look into the journal that is not the journal's."""
    with closing(sqlite3.connect(f"file:{stand.state}/fleet.db?mode=ro", uri=True, timeout=60)) as base:
        return base.execute(query, values).fetchall()


async def broken(stand: Stand) -> list[str]:
    """What must hold at every moment."""
    entries = await log(stand)
    return [
        *above_the_dial(stand),
        *twice(stand, entries),
        *over_budget(stand),
        *damaged(stand),
    ]


async def unfinished(stand: Stand, gauges: Gauges, since: int) -> list[str]:
    """What the daemon has still to do; runs with a row number above `since` began after the fault."""
    problems = [*runs_left(stand, since), *keys_left(stand), *jails_left(stand, gauges)]
    if await stand.ready() is None:
        problems.append("I7: /readyz does not say yes")
    if not problems:
        problems += [*await names_left(stand), *stale_worklist(stand, await log(stand))]
    return problems


def above_the_dial(stand: Stand) -> Iterator[str]:
    """I1: by effect numbers, so that no clock is believed."""
    for kind, first, last in stand.windows:
        query = "select effect_id, data from effects where kind = 'tx' and effect_id > ? and effect_id <= ?"
        for effect, data in rows(stand, query, first, last):
            unsigned, _ = parse(bytes.fromhex(json.loads(data)["raw"]))
            function = abi.BY_SELECTOR.get(unsigned.data[:4])
            name = function.name if function else "" if not unsigned.data else unsigned.data[:4].hex()
            if kind == "stop" or name not in GIVES_BACK:
                yield f"I1: effect {effect} signed {name or 'a transfer'} at {kind}"


async def log(stand: Stand) -> list[Entry]:
    """The log, whole, past the spoilt line."""
    reader = FeedbackLog(stand.rpc, stand.platform.chain.diamond, stand.platform.gas)
    return await reader.range(0, 1_000_000)


def twice(stand: Stand, entries: list[Entry]) -> Iterator[str]:
    """I2: on the log as it stands; a log that was cleared forgets."""
    own = [read(entry.text) for entry in entries if entry.sender == stand.address("identity")]
    counts = Counter(entry.fp for entry in own if entry.fp and entry.severity != "meta")
    for fp, count in counts.items():
        if count > 1:
            yield f"I2: {fp} stands on the log {count} times"


def _shows_a_defect(stand: Stand, run: str, sha256: str) -> bool:
    """Whether the evidence of a finding shows the effect of a defect, whichever probe found it."""
    try:
        steps = evidence.load(stand.state / "runs" / run / "evidence", sha256)["steps"] if sha256 else ()
    except UsageError:
        return False
    return any(one.shown_by(steps) for one in DEFECTS)  # all of them are switched on


async def untrue(stand: Stand) -> list[str]:
    """Faults of node, disk or clock that were taken for findings about the platform: in the journal's word
    of what was posted, and on the log, whatever the journal says of it."""
    query = "select run_id, probe, title, fingerprint, state, evidence from findings"
    known = [row[:5] for row in rows(stand, query) if not _shows_a_defect(stand, row[0], row[5])]
    seen = {row[3] for row in rows(stand, query) if _shows_a_defect(stand, row[0], row[5])}
    found = [
        f"{probe} of run {run}: {title}"
        for run, probe, title, _, state in known
        if state == "posted" and probe not in (*SEEDED, CLOSING)
    ]
    true = seen | {fp for _, probe, _, fp, _ in known if probe in (*SEEDED, CLOSING)}
    try:
        entries = await log(stand)
    except FleetError as error:  # after a complaint the devnet may be gone
        return [*found, f"the log cannot be read: {error}"]
    own = [read(entry.text) for entry in entries if entry.sender == stand.address("identity")]
    return found + [
        f"on the log: {entry.title}" for entry in own if entry.severity != "meta" and entry.fp not in true
    ]


def over_budget(stand: Stand) -> Iterator[str]:
    """I3: what was counted, and what the calls of each trajectory come to."""
    limits = {run: json.loads(budget) for run, budget in rows(stand, "select run_id, budget from runs")}
    for run, unit, spent in rows(stand, "select run_id, unit, spent from budget"):
        if spent > limits[run].get(unit, 0):
            yield f"I3: run {run} spent {spent} {unit} of {limits[run].get(unit, 0)}"
    for run, limit in limits.items():
        with suppress(FileNotFoundError):
            text = (stand.state / "runs" / run / "trajectory.jsonl").read_text("utf-8", "replace")
            if (calls := text.count('"type":"tool.requested"')) > limit.get("calls", 0):
                yield f"I3: run {run} made {calls} calls of {limit.get('calls', 0)}"


def damaged(stand: Stand) -> Iterator[str]:
    """I6, the files: the database, and each trajectory one header first and one footer last."""
    said = rows(stand, "pragma integrity_check")
    if said != [("ok",)]:
        yield f"I6: integrity_check: {said}"
    for (run,) in rows(stand, "select run_id from runs where state = 'ended' and started != ''"):
        path = stand.state / "runs" / run / "trajectory.jsonl"
        kinds = [kind_of(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        marks = [kind for kind in kinds if kind in ("header", "footer")]
        whole = not kinds or (kinds[0], kinds[-1], marks) == ("header", "footer", ["header", "footer"])
        if not whole or "torn" in kinds:
            yield f"I6: trajectory of run {run}: {Counter(kinds)}"


def kind_of(line: bytes) -> str:
    try:
        return str(json.loads(line)["type"])
    except (ValueError, KeyError, TypeError):
        return "torn"


def runs_left(stand: Stand, since: int) -> Iterator[str]:
    """I7: what was under way is settled, and something new went well."""
    query = "select run_id, persona, state from runs where rowid <= ? and state in ('running', 'settling')"
    for run, persona, state in rows(stand, query, since):
        yield f"I7: run {run} of {persona} is still {state}"
    if not rows(stand, "select 1 from runs where rowid > ? and outcome = 'done' limit 1", since):
        yield "I7: no run that began after the fault is done"
    query = "select run_id, fingerprint from findings join runs using (run_id)"
    query += " where findings.state = 'posting' and runs.state = 'ended'"
    for run, fp in rows(stand, query):
        yield f"I7: {fp} of run {run} is lost in the outbox"


def keys_left(stand: Stand) -> Iterator[str]:
    """I4: keys of runs that have ended, but for those that still hold a name."""
    ended = {run for (run,) in rows(stand, "select run_id from runs where state = 'ended'")}
    for folder in stand.state.glob("runs/*/keys"):
        if folder.parent.name in ended and folder.is_dir():
            yield f"I4: keys of run {folder.parent.name}, which has ended"


def jails_left(stand: Stand, gauges: Gauges) -> Iterator[str]:
    """I4: processes whose daemon is gone, and records of jails that are not its."""
    for pid in gauges.orphans():
        yield f"I4: process {pid} outlived its daemon"
    for path in (stand.state / "jails").glob("*.jail"):
        with suppress(OSError, ValueError):
            if stand.process and json.loads(path.read_text())["owner"] != stand.pid:
                yield f"I4: {path.name} is of a daemon that is gone"


async def names_left(stand: Stand) -> list[str]:
    """I4: names of runs that have ended."""
    query = "select effects.ref from effects join runs using (run_id)"
    query += " where effects.kind = 'name' and runs.state = 'ended'"
    names = Names(stand.rpc, stand.platform.chain.diamond)
    return [f"I4: {name} is still owned" for (name,) in rows(stand, query) if await names.owner_of_name(name)]


def stale_worklist(stand: Stand, entries: list[Entry]) -> list[str]:
    """I6: the worklist is what the log on chain comes to, folded anew; counts are the journal's as well."""
    try:
        listed = json.loads((stand.state / "worklist.json").read_text("utf-8"))["items"]
    except FileNotFoundError:
        return ["I6: there is no worklist"]
    mirrored = [
        MirroredEntry(epoch=0, index=index, sender=entry.sender, timestamp=entry.timestamp, text=entry.text)
        for index, entry in enumerate(entries)
    ]
    weights = load(stand.personas / "qa-triage.md").persona.weights
    known = PassInputs(now=datetime.now(UTC), weights=weights)
    decided = decide(mirrored, frozenset({stand.address("identity")}), known)
    items = [item for item in decided.items if item.rank]
    names = ("fingerprint", "severity", "surface", "title", "repro", "state", "regression", "first_seen")
    found = sorted([one[name] for name in names] for one in listed)
    folded = sorted([getattr(one, name) for name in names] for one in items)
    return [] if folded == found else ["I6: the worklist is not what the log comes to"]


def leaks(stand: Stand, gauges: Gauges) -> Iterator[str]:
    """I5: no key in any file but its own, nor on any command line."""
    standing = [(stand.state / "keys" / role).read_text() for role in ("identity", "sponsor")]
    needles = [needle for text in standing for needle in variants(bytes.fromhex(text.strip()))]
    needles += [key.hex().encode() for key in gauges.secrets]  # as their files have them: there are hundreds
    for path in [stand.log, *stand.state.rglob("*")]:
        if path.is_file() and path.parent.name != "keys":
            with suppress(FileNotFoundError):
                data = path.read_bytes()
                if any(needle in data for needle in needles):
                    yield f"I5: a key in {path}"
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            data = line.read_bytes()
            if any(needle in data for needle in needles):
                yield f"I5: a key in {line}"


def variants(key: bytes) -> list[bytes]:
    """How one might stand somewhere."""
    return [
        key,
        key.hex().encode(),
        key.hex().upper().encode(),
        base64.b64encode(key).rstrip(b"="),
        base64.urlsafe_b64encode(key).rstrip(b"="),
        repr(key)[2:-1].encode(),
        str(int.from_bytes(key, "big")).encode(),
    ]
