"""What a fleet made of a platform with planted defects, judged by their effects in its records alone."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fleet.devnet.defects import DEFECTS, Defect
from fleet.errors import UsageError
from fleet.findings import evidence
from fleet.findings.reader import read
from fleet.findings.repro import ReproError, parse_repro
from fleet.runs.desk.exit_codes import FOUND
from tests.cli_process import run_fleet
from tests.platforms.firing import Fired, Home
from tests.platforms.stand import Stand

FINDINGS = "select run_id, fingerprint, state, probe, evidence, repro, title from findings"
RUNS = "select run_id from runs"
ZERO = "0x" + "0" * 40
HOST = re.compile(r"^(https?://[^/]+|\{[^}]+\})")

Step = Mapping[str, Any]


def looked_up(at: Home, query: str) -> list[Any]:
    """A look into the journal that is not the journal's."""
    with closing(sqlite3.connect(f"file:{at.state}/fleet.db?mode=ro", uri=True, timeout=60)) as base:
        return base.execute(query).fetchall()


def answers(at: Home, run: str) -> list[dict[str, Any]]:
    """Every call of a run that was answered, as a step of evidence, with the probe that asked."""
    lines = (at.state / "runs" / run / "trajectory.jsonl").read_bytes().splitlines()  # a text has more ends
    events = [json.loads(line) for line in lines]
    asked = {one["call"]: one for one in events if one["type"] == "tool.requested"}
    return [
        {key: asked[one["call"]][key] for key in ("tool", "args", "probe")} | {"result": one["result"]}
        for one in events
        if one["type"] == "tool.responded"
    ]


def seen(planted: Iterable[Defect], steps: Sequence[Step]) -> set[str]:
    """Defects whose effect the answers show: any one answer, or several to one probe."""
    probes = {step["probe"] for step in steps if step["probe"] != "explore"}
    groups = [[step] for step in steps]
    groups += [[step for step in steps if step["probe"] == probe] for probe in probes]
    return {one.id for one in planted if any(one.shown_by(group) for group in groups)}


def _steps_of(at: Home, run: str, probe: str, sha256: str, repro: str) -> Sequence[Step]:
    """The answers behind a finding: its evidence, those to its proof, or those to the calls that it names."""
    try:
        if sha256:
            return list(evidence.load(at.state / "runs" / run / "evidence", sha256)["steps"])
        steps = answers(at, run)
        if proof := [step for step in steps if step["probe"] == probe]:
            return proof
        named = [_hostless(call.tool, call.args) for call in parse_repro(repro)]
        return [step for step in steps if _hostless(step["tool"], step["args"]) in named]
    except (UsageError, ReproError, OSError):
        return []


def _hostless(tool: str, args: Mapping[str, Any]) -> tuple[str, str]:
    plain = {key: HOST.sub("", one) if isinstance(one, str) else one for key, one in args.items()}
    return tool, json.dumps(plain, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A finding of the fleet, with the planted defects that the answers behind it show."""

    fingerprint: str
    state: str
    title: str
    shown: frozenset[str]


def judged(rows: Iterable[Row], listed: frozenset[str], met: set[str]) -> list[str]:
    """False findings, and defects of `met` that no finding on the log or in a view shows. Pure."""
    told = [row for row in rows if row.state in FOUND]
    held = {one for row in rows if row.state in FOUND or row.fingerprint in listed for one in row.shown}
    return [
        *(f"false: {row.title} ({row.state})" for row in told if not row.shown),
        *(f"lost: {one} was seen" for one in sorted(met - held)),
    ]


def wrong(at: Home, fired: Fired, planted: frozenset[str], *, last: bool) -> list[str]:
    """What is false on the log and in the journal now, and which defect that this run raised is in no view.

    Not every persona judges every answer: after the `last` run no answer of any run may have been in vain.
    """
    defects = [one for one in DEFECTS if one.id in planted]
    rows, met = [], set[str]()
    for run, fingerprint, state, probe, sha256, repro, title in looked_up(at, FINDINGS):
        steps = _steps_of(at, run, probe, sha256, repro)
        shown = {one.id for one in defects if one.shown_by(steps)} | (planted & {probe})
        rows.append(Row(fingerprint, state, title, frozenset(shown)))
        if run == fired.data["run"]:
            met |= shown
            print(f"      {state:<10} {title} | {','.join(sorted(shown)) or '-'}")
    if last:
        met = met.union(*(seen(defects, answers(at, run)) for (run,) in looked_up(at, RUNS)))
    views = json.loads(run_fleet("status", "--json", env=at.environment(), timeout=300).stdout)
    listed = frozenset(one["fingerprint"] for view in ("proving", "unproven") for one in views[view])
    posted = [read(entry.text) for entry in fired.entries]
    known = {row.fingerprint for row in rows if row.state in FOUND}
    unknown = [one for one in posted if one.severity != "meta" and one.fp not in known]
    return [*judged(rows, listed, met), *(f"false entry: {one.title}" for one in unknown)]


async def unsettled(stand: Stand, at: Home) -> list[str]:
    """What ended runs left behind: themselves, effects, keys, names."""
    left = [
        f"run {run} is {state}"
        for run, state in looked_up(at, "select run_id, state from runs")
        if state != "ended"
    ]
    left += [f"effect {one}" for one in looked_up(at, "select kind, ref from effects where state = 'open'")]
    left += [f"keys in {path}" for path in (at.state / "runs").glob("*/keys") if path.is_dir()]
    for (name,) in looked_up(at, "select ref from effects where kind = 'name'"):
        if await stand.rpc.view(stand.diamond, "ownerOfName", name) != ZERO:
            left.append(f"name {name} is still owned")
    return [f"unsettled: {one}" for one in left]
