"""What a fleet made of a platform with planted defects, judged by their effects in its records alone."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
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

ZERO = "0x" + "0" * 40
HOST = re.compile(r"^(https?://[^/]+|\{[^}]+\})")

Step = Mapping[str, Any]


def looked_up(at: Home, query: str) -> list[Any]:
    """A look into the journal that is not the journal's."""
    with closing(sqlite3.connect(f"file:{at.state}/fleet.db?mode=ro", uri=True, timeout=10)) as base:
        return base.execute(query).fetchall()


def answers(at: Home, run: str) -> list[dict[str, Any]]:
    """Every call of a run that was answered, as a step of evidence, with the probe that asked."""
    lines = (at.state / "runs" / run / "trajectory.jsonl").read_text("utf-8").splitlines()
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


def wrong(stand: Stand, at: Home, fired: Fired, planted: frozenset[str]) -> list[str]:
    """What is false of this run, and which defect it saw is in no view now."""
    defects = [one for one in DEFECTS if one.id in planted]
    rows = looked_up(at, "select run_id, fingerprint, state, probe, evidence, repro, title from findings")
    views = json.loads(run_fleet("status", "--json", env=at.environment(), timeout=60).stdout)
    listed = {one["fingerprint"] for view in ("proving", "unproven") for one in views[view]}
    held, true, complaints = set[str](), set[str](), []
    for run, fingerprint, state, probe, sha256, repro, title in rows:
        shown = {one.id for one in defects if one.shown_by(_steps_of(at, run, probe, sha256, repro))}
        shown |= planted & {probe}
        if state in FOUND and not shown:
            complaints.append(f"false: {title} ({state}, run {run})")
        if state in FOUND or fingerprint in listed:
            held |= shown
            true |= {fingerprint} if shown else set()
        if run == fired.data["run"]:
            print(f"      {state:<10} {title} | {','.join(sorted(shown)) or '-'}")
    for entry in fired.entries:
        posted = read(entry.text)
        if posted.severity != "meta" and posted.fp not in true:
            complaints.append(f"false entry: {posted.title}")
    gone = seen(defects, answers(at, fired.data["run"])) - held
    return complaints + [f"lost: {one} was seen by run {fired.data['run']}" for one in sorted(gone)]


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
