"""What a person makes of a driver's claim: a probe of a persona, or nothing. Part of `fleet findings`."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

from fleet.app.persona_sets import load
from fleet.cli.console import who
from fleet.clock import SystemClock
from fleet.errors import FleetError, UsageError
from fleet.findings.files import write_atomic
from fleet.personas.frontmatter import FENCE
from fleet.personas.model import Probe
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.proof.claims import kept
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding that waits for a person, and the probe that it would be."""

    row: FindingRow
    probe: Probe


def claim_of(row: FindingRow) -> Claim:
    """UsageError for a finding that nobody has to decide about."""
    probe = kept(row)
    if probe is None or row.state != "unverified" or "claim" not in row.data:
        raise UsageError(
            f"finding {row.fingerprint} is {row.state}: it waits for nobody",
            remedy="`fleet findings list` shows what is unverified; only a driver's claim can be adopted",
        )
    return Claim(row, probe)


def adopted(claim: Claim) -> str:
    """The persona file that holds this claim's probe since it was adopted, "" when none does."""
    path = Path(str(claim.row.data.get("adopted", "")))
    with suppress(FleetError, OSError):
        if path.is_file() and any(one.id == claim.probe.id for one in load(path).persona.probe):
            return str(path)
    return ""


def block(probe: Probe) -> str:
    """The probe as TOML, as it stands in a persona file; UsageError when TOML cannot say it."""
    values = probe.model_dump(mode="json", exclude_defaults=True)
    try:
        return tomli_w.dumps({"probe": [values]})
    except TypeError:
        raise UsageError(
            "its arguments hold a null, which a persona file cannot say",
            remedy="`fleet findings show --json` has the steps: write a probe without it",
        ) from None


def adopt(claim: Claim, path: Path, state: Path, reason: str) -> None:
    """Write the probe at the end of the persona's front matter, if the file is good with it; then record it.

    The file is replaced whole or not at all. PersonaError when the persona would not be valid.
    """
    load(path)  # a file that is bad already is not made worse
    before, lines = path.stat(), path.read_bytes().decode().split("\n")
    end = next(number for number, one in enumerate(lines) if number and one.rstrip() == FENCE)
    text = "\n".join([*lines[:end], "", block(claim.probe).rstrip("\n"), *lines[end:]]).encode()
    with TemporaryDirectory() as room:
        draft = Path(room, path.name)  # a persona's name is its file's
        draft.write_bytes(text)
        load(draft)
    write_atomic(path, text)
    path.chmod(stat.S_IMODE(before.st_mode))
    if os.geteuid() == 0:  # the service's own user may be the one who reads it
        os.chown(path, before.st_uid, before.st_gid)
    how = f"as probe {claim.probe.id} of {path.name}"
    _record(state, claim, "adopted", how, reason, f"remove [[probe]] {claim.probe.id} from {path.name}")


async def dismiss(claim: Claim, journal: Journal, state: Path, reason: str) -> None:
    """Drop it: its evidence is kept no longer than its run."""
    await journal.set_finding(claim.row.run_id, claim.row.fingerprint, state="dropped")
    reversal = "write the probe into a persona file; it is in the finding's data"
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
        raise FleetError("the decision was taken, and could not be recorded", remedy=f"look at {state}")
