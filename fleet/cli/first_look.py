"""What `fleet look` and `fleet init` share: a person's word, the questions, the file with the answers."""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from fleet.app.discovery.discover import Discovery, NamedTargets, discover
from fleet.app.discovery.profile import ProfileContext, profile_text
from fleet.app.discovery.visitor import Unanswered, is_ours
from fleet.chain.keys import create_key
from fleet.chain.node.abi_file import read_functions
from fleet.cli.console import note, run, who
from fleet.config import Platform, key_file, load_fleet, parse, read_text
from fleet.config.authorisation import AuthorisationSection
from fleet.errors import Refused, Unreachable, UsageError
from fleet.files import disk_errors, write_atomic
from fleet.text import clean

AGENT = "qa-fleet/1"
ROLES: tuple[Literal["identity", "sponsor"], ...] = ("identity", "sponsor")
Contact = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Whom the platform's people may write to; in the User-Agent of each request."
    ),
]
Abi = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The contract's ABI in JSON: its functions by name and type."),
]
_END = "# End of what was found: "
"""Before the digest of all above it: a profile that a person changed is never written again."""


async def foreign_hosts(named: NamedTargets) -> tuple[str, ...]:
    """The hosts that are neither this machine nor in a private network; a name that does not resolve is
    left out."""
    found = []
    for origin in sorted(named.origins):
        with suppress(Unanswered):
            found += [] if await is_ours(origin) else [origin.authority]
    return tuple(dict.fromkeys(found))


def authorised(
    hosts: tuple[str, ...], earlier: Platform | None, *, yes: bool, contact: str = ""
) -> AuthorisationSection:
    """A person's word that these hosts may be tested: an earlier one, `yes`, or asked once on a terminal.

    It is empty where there is no such host. `contact` stands in each request's User-Agent; for a host outside
    that is this person unless another is named. Refused without a word.
    """
    given = earlier.authorisation if earlier else AuthorisationSection()
    contact = contact or given.contact or (who() if hosts and _is_comment(who()) else "")
    if not _is_comment(contact):
        raise UsageError(
            f"--contact {contact!r} cannot stand in a User-Agent", remedy="such as qa@example.org"
        )
    given = given.model_copy(update={"contact": contact})
    if not (missing := [one for one in hosts if one not in given.hosts]):
        return given
    names = " and ".join(missing)
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Refused(
                f"{names}: outside of private networks, and no person said that it may be tested",
                rule="authorisation",
                remedy="if it is yours, or you have its owner's permission: the same with --yes-i-may",
            )
        question = (
            f"{names} is not on this machine. Is it yours, or do you have its owner's permission to test it?"
        )
        if not typer.confirm(clean(question), default=False, err=True):
            raise Refused(f"{names} may not be tested", rule="authorisation")
    return given.model_copy(update={"by": who(), "on": today(), "hosts": (*given.hosts, *missing)})


def _is_comment(text: str) -> bool:
    try:
        AuthorisationSection(contact=text)
    except ValueError:
        return False
    return True


def asked(named: NamedTargets, word: AuthorisationSection) -> Discovery:
    """What there is; Unreachable where nothing answers."""
    note(f"asking what there is at {' and '.join(ways[0] for ways in named.urls)}")
    found = run(lambda: discover(named, AGENT + word.comment, lambda text: note(f"  {text}")))
    for url, why in found.silent:
        note(f"  {url}: {why}")
    if not (found.sites or found.contract or found.node):
        raise Unreachable("; ".join(f"{url}: {why}" for url, why in found.silent) or "nothing answers")
    if named.address and found.contract is None:
        raise Unreachable(
            f"{named.address}: no contract there, or none of the URLs is a node",
            remedy=f"name the node of its chain: fleet look {named.address} https://RPC-URL",
        )
    return found


def check_abi(path: Path | None, named: NamedTargets) -> None:
    """ConfigError for a file that is no ABI, UsageError for one without a contract that was named."""
    if path:
        read_functions(path)
        if not named.address:
            raise UsageError("--abi is a contract's", remedy="name its address, and the URL of its node")


def read_profile(path: Path) -> Platform | None:
    """The profile of an earlier look; None where there is none."""
    return parse(Platform, read_text(path), file=str(path)) if path.exists() else None


def is_unchanged(path: Path) -> bool:
    """Whether a profile is as it was written, or is not there."""
    if not path.exists():
        return True
    text, mark, digest = read_text(path).rpartition(_END)
    return bool(mark) and digest.strip() == _digest(text)


def write_profile(path: Path, found: Discovery, context: ProfileContext) -> None:
    """Write what was found; a file that a person changed stays as it is."""
    text = profile_text(found, context)
    with disk_errors(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, f"{text}\n{_END}{_digest(text + chr(10))}\n".encode())


def keys(platform: Platform, folder: Path) -> list[str]:
    """The keys that a platform needs, made where they are not there: a line on each."""
    if not platform.signs:
        return ["keys     none are needed: nothing is signed without a contract"]
    lines, config = [], load_fleet()
    for role in ROLES if platform.chain.diamond else ROLES[:1]:
        path = key_file(config, role, folder)
        if path.exists():
            lines.append(f"key      {path}  is there already, and stands")
        else:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            lines.append(f"key      {path}  made: {create_key(path)} needs coins of the chain to write")
    return lines


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def today() -> str:
    return datetime.now(UTC).date().isoformat()
