"""What the authority signed: a profile and the operator's own personas, by EIP-191 signatures beside it.

With `[authority] signers` in `fleet.toml` nothing runs unless each of them signed exactly what is there, and
it says all that rules of engagement must say. What a platform answers reaches none of these files.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, ValidationError

from fleet import __version__
from fleet.broker.egress_policy import EgressPolicy
from fleet.chain.keys import Secret, address_of, personal_sign, personal_signer
from fleet.clock import SystemClock, iso
from fleet.config import FleetConfig, Platform, read_text
from fleet.config.authorisation import BOUNDARIES
from fleet.config.escalation import NEVER_BY_LEVEL
from fleet.config.section import Address, Section, is_loopback
from fleet.config.third_parties import third_party
from fleet.errors import ConfigError, FleetError, PersonaError
from fleet.files import SHIPPED, login, write_atomic
from fleet.personas.load import LoadedPersona
from fleet.runs.call.decision_file import Decision, DecisionFile
from fleet.runs.providers import unready, unvetted
from fleet.text import line

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
LONGEST = 200
LEVEL_DAYS = 366
"""Days for which an authorisation of the level of autonomy counts."""


class ScopeSignature(Section):
    """One signature: who by name, with which key, when (ISO, UTC)."""

    by: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]
    signer: Address
    at: Annotated[str, StringConstraints(max_length=40)]
    signature: Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{130}$")]


class SignedScope(Section):
    """The file beside a profile."""

    program: str = ""
    """The version of the program that it was signed for."""
    profile: Sha256
    personas: dict[str, Sha256] = {}
    """The operator's own, by name; those of the wheel are vouched for by its sums."""
    signatures: tuple[ScopeSignature, ...] = ()


def signature_file(profile: Path) -> Path:
    """Where the signatures of a profile stand."""
    return profile.with_suffix(".sig")


def missing(platform: Platform) -> list[str]:
    """What rules of engagement must say and this profile does not, each as a key with what it is for."""
    said = platform.authorisation
    needed = {
        "authorisation.by": (said.by, "who permitted the tests"),
        "authorisation.reference": (said.reference, "what permits them: a ticket, a contract"),
        "authorisation.contact": (said.contact, "whom to ask and to tell"),
        "authorisation.level": (said.level, "who authorised this level of autonomy, after what"),
        "schedule.not_before": (platform.schedule.begin, "when they begin"),
        "schedule.not_after": (platform.schedule.end, "when they end"),
        "schedule.engagement": (platform.schedule.engagement, "how they go on"),
        "web.never": (platform.web.never, "hosts and paths that nothing asks"),
        "escalation.impact": (
            platform.escalation.impact != NEVER_BY_LEVEL,
            "from which impact on a person is asked before an act",
        ),
        "escalation.pauses": (
            "scope" in platform.escalation.pauses,
            "that a run waits for a person after it asked out of scope, with what else it waits for",
        ),
        "escalation.stops": (
            {"sensitive-data", "break-in"} <= {*platform.escalation.stops},
            "that sensitive-data (what authorisation.data does not permit) and break-in set STOP",
        ),
    }
    needed |= {
        f"authorisation.why.{one}": (one in said.why, f"why it is drawn where it is: {keys}")
        for one, keys in BOUNDARIES.items()
    }
    lacking = [f"{key}: {why}" for key, (there, why) in needed.items() if not there]
    policy = EgressPolicy.of(platform)
    faces = (origin for origin, _ in policy.faces)
    for origin in sorted({*policy.hosts, *faces}):
        known = platform.care.listed.match(f"{origin.scheme}://{origin.authority}/")
        if not known and not is_loopback(origin.host):
            lacking.append(f'hosts."{origin.host}": its criticality')
        whose = third_party(origin.host)
        if whose and not platform.care.at(f"{origin.scheme}://{origin.authority}/").third_party:
            lacking.append(f'hosts."{origin.host}".third_party: who permitted it, since it is {whose}')
    return list(dict.fromkeys(lacking))


def current(path: Path, personas: Mapping[str, LoadedPersona]) -> SignedScope:
    """What is on disk now, without a signature. ConfigError."""
    own = {name: one.sha256 for name, one in sorted(personas.items()) if not _is_shipped(one.path)}
    return SignedScope(
        program=__version__, profile=hashlib.sha256(read_text(path).encode()).hexdigest(), personas=own
    )


def statement(name: str, scope: SignedScope, by: str, at: str) -> str:
    """The text that is signed; any wallet can sign it (personal_sign)."""
    lines = [f"qa-fleet scope of {name}", f"program {scope.program}", f"profile {scope.profile}"]
    lines += [f"persona {persona} {digest}" for persona, digest in sorted(scope.personas.items())]
    return "\n".join([*lines, f"signed by {by} at {at}"])


def sign(platform: Platform, path: Path, scope: SignedScope, key: Secret, by: str, at: str) -> SignedScope:
    """Add a signature to those of the same scope, and write them beside the profile. ConfigError where the
    profile lacks what rules of engagement must say."""
    if lacking := missing(platform):
        raise ConfigError(f"{path}: not signed, it lacks {'; '.join(lacking)}", remedy="state it, then sign")
    by = line(by, LONGEST)
    text = personal_sign(key, statement(platform.name, scope, by, at))
    made = ScopeSignature(by=by, signer=address_of(key), at=at, signature=text)
    known = read_signatures(path)
    same = known is not None and known.model_copy(update={"signatures": ()}) == scope
    before = known.signatures if known and same else ()
    kept = tuple(one for one in before if one.signer != made.signer)
    signed = scope.model_copy(update={"signatures": (*kept, made)})
    write_atomic(signature_file(path), signed.model_dump_json(indent=1).encode() + b"\n")
    return signed


def read_signatures(path: Path) -> SignedScope | None:
    """The signatures beside a profile; None without a file. ConfigError for one that cannot be read."""
    file = signature_file(path)
    if not file.exists():
        return None
    try:
        return SignedScope.model_validate_json(read_text(file))
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise ConfigError(f"{file}: {why}", remedy="fleet check scope --sign KEYFILE --by NAME") from None


def require_signed(
    config: FleetConfig,
    platform: Platform,
    path: Path,
    personas: Mapping[str, LoadedPersona] | None = None,
    state: Path | None = None,
) -> None:
    """ConfigError unless each signer of `[authority]` signed this profile, and these personas where they are
    given, the profile says all that it must, and whoever is sent something by what this `state` and the
    configuration say was vetted. Without signers nothing is required."""
    if not config.authority.signers:
        return
    now = SystemClock().now()
    faults = list(_faults(config, platform, path, personas, now))
    if state is not None:
        faults += unvetted(config, platform, state, now.date())
        faults += unready(config, state)
    if faults:
        remedy = "fleet check scope shows it; fleet check scope --sign KEYFILE --by NAME signs it"
        raise ConfigError(f"{path}: the scope is not as it was signed: {'; '.join(faults)}", remedy=remedy)


def note_refused(state: Path, what: str, error: FleetError) -> None:
    """Keep in DECISIONS.md that a scope was refused, of whom and why."""
    one = Decision(
        f"the scope {what} is refused, of {login(os.getuid())}@{socket.gethostname()}",
        "run with it, or refuse it",
        "it is refused: nothing runs",
        str(error),
        error.remedy or "correct it",
        charter="the operator's",
    )
    DecisionFile(state, SystemClock()).record(one, run="none", turn=0)


def require_persona(config: FleetConfig, platform: Platform, path: Path, one: LoadedPersona) -> LoadedPersona:
    """The persona; PersonaError for one of the operator's own that was not signed as it is."""
    try:
        require_signed(config, platform, path, {one.persona.name: one})
    except FleetError as error:
        raise PersonaError(str(error), file=str(one.path), remedy=error.remedy) from None
    return one


def _faults(
    config: FleetConfig,
    platform: Platform,
    path: Path,
    personas: Mapping[str, LoadedPersona] | None,
    at: datetime,
) -> Iterator[str]:
    found = read_signatures(path)
    if found is None:
        yield f"there is no {signature_file(path).name}"
        return
    now = current(path, personas or {})
    if now.program != found.program:
        was = found.program or "another version"
        yield f"it was signed for {was}, and this is {now.program}: CHANGELOG.md says what differs"
    if now.profile != found.profile:
        yield "the profile was changed"
    for name, digest in now.personas.items():
        if found.personas.get(name) != digest:
            yield f"persona {name} was {'changed' if name in found.personas else 'added'}"
    oldest = iso(at - timedelta(days=platform.schedule.renewed_days))
    good = {
        one.signer.lower(): one.at
        for one in found.signatures
        if personal_signer(statement(platform.name, found, one.by, one.at), one.signature)
        == one.signer.lower()
    }
    for signer in config.authority.signers:
        if signer.lower() not in good:
            yield f"no valid signature by {signer}"
        elif not oldest <= good[signer.lower()] <= iso(at):
            days = f"{platform.schedule.renewed_days} days (schedule.renewed_days)"
            yield f"the signature by {signer} is of {good[signer.lower()]}, not of the last {days}"
    named = config.model.name if config.model else ""
    if named and named != platform.authorisation.model:
        yield f"the model {named} is not authorisation.model: nobody signed that a model may drive"
    level = platform.authorisation.level
    if level and not at.date() - timedelta(days=LEVEL_DAYS) <= level.on <= at.date():
        yield f"authorisation.level is of {level.on}, not of the last year: review it and decide anew"
    yield from missing(platform)


def _is_shipped(path: Path) -> bool:
    return path.resolve().is_relative_to((SHIPPED / "personas").resolve())
