"""Adopt a driver's claim as a probe of a persona, or dismiss it. Part of `fleet items`."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

from fleet.app.decided import Subject
from fleet.app.journal import open_journal
from fleet.app.persona_sets import load
from fleet.cli.console import note, put, run, state, who
from fleet.clock import SystemClock
from fleet.errors import FleetError, UsageError
from fleet.files import disk_errors, write_atomic
from fleet.personas.frontmatter import FENCE
from fleet.personas.model import Probe
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.proof.claims import kept
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding that awaits a person's decision, and the probe it would become."""

    row: FindingRow
    probe: Probe


def claim_of(row: FindingRow) -> Claim:
    """UsageError for a finding that needs no decision."""
    probe = kept(row)
    if probe is None or row.state != "unverified" or "claim" not in row.data:
        raise UsageError(
            f"finding {row.fingerprint} is {row.state}: it needs no decision",
            remedy="`fleet items findings` shows what is unverified; only a driver's claim can be adopted",
        )
    return Claim(row, probe)


def adopted(claim: Claim) -> str:
    """The persona file that holds this claim's probe since its adoption, "" if none does."""
    path = Path(str(claim.row.data.get("adopted", "")))
    with suppress(FleetError, OSError):
        if path.is_file() and any(one.id == claim.probe.id for one in load(path).persona.probe):
            return str(path)
    return ""


def block(probe: Probe) -> str:
    """The probe as TOML for a persona file; UsageError when TOML cannot express it."""
    values = probe.model_dump(mode="json", exclude_defaults=True)
    try:
        return tomli_w.dumps({"probe": [values]})
    except TypeError:
        raise UsageError(
            "its arguments contain a null, which a persona file cannot express",
            remedy="`fleet items show --json` prints the steps: write a probe without the null",
        ) from None


def adopt(claim: Claim, path: Path, state: Path, reason: str) -> None:
    """Append the probe to the persona's front matter if the file stays valid; then record the decision.

    The file is replaced atomically. PersonaError when the persona would not be valid.
    """
    load(path)  # an invalid file is left alone
    before, lines = path.stat(), path.read_bytes().decode().split("\n")
    end = next(number for number, one in enumerate(lines) if number and one.rstrip() == FENCE)
    text = "\n".join([*lines[:end], "", block(claim.probe).rstrip("\n"), *lines[end:]]).encode()
    with TemporaryDirectory() as room:
        draft = Path(room, path.name)  # a persona is named after its file
        draft.write_bytes(text)
        load(draft)
    with disk_errors(path):
        write_atomic(path, text, mode=stat.S_IMODE(before.st_mode))
    if os.geteuid() == 0:  # the service's own user may have to read it
        os.chown(path, before.st_uid, before.st_gid)
    how = f"as probe {claim.probe.id} of {path.name}"
    _record(state, claim, "adopted", how, reason, f"remove [[probe]] {claim.probe.id} from {path.name}")


async def dismiss(claim: Claim, journal: Journal, state: Path, reason: str) -> None:
    """Drop the claim: its evidence is kept no longer than its run."""
    await journal.set_finding(claim.row.run_id, claim.row.fingerprint, state="dropped")
    reversal = "write the probe into a persona file; the finding's data contains it"
    _record(state, claim, "dismissed", "", reason, reversal)


def _record(state: Path, claim: Claim, verb: str, how: str, reason: str, reversal: str) -> None:
    row = claim.row
    one = Decision(
        title=f"claim {row.fingerprint} {verb}",
        fork=f"{row.title} ({row.severity}, shown {row.confirmed} of {row.tries} times, by {row.persona})",
        decision=f"{verb} by {who()} {how}".rstrip(),
        why=reason or "no reason given",
        reversal=reversal,
        charter="a person's word",
    )
    if not DecisionFile(state, SystemClock()).record(one, run=row.run_id, turn=0):
        raise FleetError("the decision took effect but could not be recorded", remedy=f"look at {state}")


def waiting_claim(subject: Subject) -> Claim | None:
    """The driver's claim that waits for a decision, if the subject is one and not on the worklist."""
    row: FindingRow | None = subject.finding
    if row is None or row.state != "unverified" or "claim" not in row.data:
        return None
    return claim_of(row)


def dismiss_claim(claim: Claim, reason: str, *, dry_run: bool, as_json: bool) -> None:

    async def drop() -> None:
        async with await open_journal(state()) as journal:
            await dismiss(claim, journal, state(), reason)

    if not dry_run:
        run(drop)
    left = adopted(claim)
    if left:
        note(f"its probe {claim.probe.id} is still in {left}: remove it, or the next run asks it again")
    words = "would be dismissed" if dry_run else "is dismissed"
    data = {"fingerprint": claim.row.fingerprint, "run": claim.row.run_id, "dismissed": not dry_run}
    put(
        data | {"probe_in": left},
        as_json=as_json,
        text=lambda: print(f"claim {claim.row.fingerprint} {words}"),
    )
