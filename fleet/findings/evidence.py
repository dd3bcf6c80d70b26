"""Evidence bundles: calls and answers as canonical JSON (RFC 8785) under its SHA-256.

The envelope on the log carries the hash; the bundle stays here, content-addressed, so that anyone who
receives the file can check that it is the one on the log. Masking happens before hashing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rfc8785

from fleet.errors import FleetError, UsageError
from fleet.files import disk_errors, read_bounded, write_atomic
from fleet.findings.levels import EVIDENCE
from fleet.findings.redact import Redactor, chain_words
from fleet.findings.repro import ReproCall, ReproError, parse_repro, write_repro

SCHEMA = 1
MAX_BYTES = 16 * 1024 * 1024
EXACT = 2**53 - 1
"""Largest integer that JSON readers agree on; larger ones are written as decimal strings."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceStep:
    """One executed call: `args` with placeholders resolved, `result` as the validated record of the tool."""

    tool: str
    args: Mapping[str, Any]
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Everything a reader needs to judge and reproduce a finding."""

    fingerprint: str
    run: str
    persona: str
    persona_sha256: str
    probe: str
    expectation: str
    surface: str
    severity: str
    title: str
    repro: str
    steps: tuple[EvidenceStep, ...]
    confirmed: int
    tries: int
    platform: str
    chain_id: int
    tools: Mapping[str, str] = field(default_factory=dict)
    """Relevant versions: the fleet, the jail backend, the compiler."""
    seen_at: str = ""
    load: str = ""
    """How busy this machine was when the proof ended."""
    record: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """By record of the run (trajectory, egress): its lines so far and the hash of their chain."""
    level: str = EVIDENCE.level
    level_why: str = EVIDENCE.why


@dataclass(frozen=True, slots=True)
class SealedEvidence:
    """Canonical bytes and their SHA-256 in hex."""

    data: bytes
    sha256: str


def seal(bundle: Bundle, redactor: Redactor) -> SealedEvidence:
    """Masks, canonicalises and hashes; the same bundle gives the same bytes on any machine."""
    redactor = redactor.showing(chain_words((step.tool, step.result) for step in bundle.steps))
    record = {name: getattr(bundle, name) for name in Bundle.__dataclass_fields__ if name != "steps"}
    masked = redactor.value(_plain(record))
    masked["repro"] = _masked(bundle.repro, redactor)
    masked["schema"] = SCHEMA
    masked["persona_sha256"] = bundle.persona_sha256
    masked["steps"] = [
        {
            "tool": redactor.text(step.tool),
            "args": redactor.fields(_plain(step.args)),
            "result": redactor.fields(_plain(step.result)),
        }
        for step in bundle.steps
    ]
    data = rfc8785.dumps(masked)
    if len(data) > MAX_BYTES:
        raise FleetError(f"an evidence bundle of {len(data)} bytes is larger than {MAX_BYTES}")
    return SealedEvidence(data, hashlib.sha256(data).hexdigest())


def _masked(repro: str, redactor: Redactor) -> str:
    """A repro masked as calls: as text, a repetition could split what is to be masked."""
    try:
        calls = parse_repro(repro)
        return write_repro(ReproCall(call.tool, redactor.value(dict(call.args))) for call in calls)
    except ReproError:  # not one of ours
        return redactor.text(repro)


def _plain(value: Any) -> Any:  # noqa: ANN401  any JSON
    """The value in types of RFC 8785; the redactor masks anything else."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -EXACT <= value <= EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def path_of(folder: Path, sha256: str) -> Path:
    """Path of a bundle; raises UsageError for anything but 64 lower-case hex digits."""
    if not _SHA256.fullmatch(sha256):
        raise UsageError("not a SHA-256 in hex", remedy="copy the 64 digits after `ev=sha256:`")
    return folder / f"{sha256}.json"


def save(folder: Path, sealed: SealedEvidence) -> Path:
    """Stores the bundle under its hash (0600, flushed to disk); storing it again changes nothing."""
    path = path_of(folder, sealed.sha256)
    try:
        if read_bounded(path, MAX_BYTES) == sealed.data:
            return path
    except OSError:
        pass  # missing or damaged: write it
    with disk_errors(path):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(path, sealed.data)
    return path


def load(folder: Path, sha256: str) -> dict[str, Any]:
    """The bundle of that hash; UsageError when it is missing, FleetError when it does not match its hash."""
    path = path_of(folder, sha256)
    try:
        data = read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise UsageError(
            f"no evidence {sha256[:12]} here", remedy="it is on the machine that made the run"
        ) from None
    except OSError as error:
        raise FleetError(f"{path}: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise FleetError(
            f"{path}: changed since it was hashed", remedy="restore it from a backup; trust neither"
        )
    record: dict[str, Any] = json.loads(data)
    return record
