"""Credentials and data of people that runs found, each sealed at once for who holds the key of `[keep]
sealed_for`, and with `second_for` for two together: one inside the other, so that neither opens it alone.

The fleet can write them and not read them: one file of `vault/` is a line of JSON (when, where, what it looks
like, never the value) and, behind it, the value as age writes it. A value at one place is kept once.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from pyrage import RecipientError, encrypt, x25519

from fleet.clock import Clock, iso
from fleet.files import write_atomic, write_new
from fleet.findings.personal import HELD, KINDS
from fleet.text import line

VAULT, SUFFIX = "vault", ".sealed"
CERTIFICATE = "destroyed-"
"""Begins the name of a record of what was destroyed."""
CIPHER = "age: X25519, ChaCha20-Poly1305 (256 bits)"
_WHY = {
    **dict.fromkeys(KINDS, "a text that says it is confidential"),
    **dict.fromkeys(HELD, "data of people"),
    "file": "a file that is not for visitors",
}
RESTRICTED = "restricted"
"""The level of all that is here (docs/data.md): regulated, or a key to something."""
_LOG = logging.getLogger("fleet.runs")


@dataclass(frozen=True, slots=True)
class SealedCredential:
    """What is known of one without its key."""

    name: str
    at: str
    platform: str
    run: str
    kind: str
    place: str
    cipher: str = CIPHER
    level: str = RESTRICTED
    why: str = ""
    persons: int = 1


class Vault:
    """The one of a state directory; `key` is a public key of age, "" for none: then nothing is kept. `second`
    is that of another person, and `escrow` opens what either does."""

    def __init__(self, state: Path, key: str, clock: Clock, *, second: str = "", escrow: str = "") -> None:
        self.folder, self._key, self._clock = state / VAULT, key, clock
        self._second, self._escrow = second, escrow

    def _seal(self, value: bytes) -> bytes:
        for key in filter(None, (self._key, self._second)):
            value = encrypt(value, [x25519.Recipient.from_str(one) for one in (key, self._escrow) if one])
        return value

    def keep(self, platform: str, run: str, place: str, kind: str, value: str) -> str:
        """Seal one value; its name, "" where none is kept. What hinders it is logged: the value is masked
        wherever else it was, and lost then."""
        if not self._key:
            return ""
        salt = f"{platform}\n{place}\n{kind}".encode()
        # slow by purpose: the name of a short password must not give it away
        name = hashlib.scrypt(value.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1, dklen=10).hex()
        known = SealedCredential(
            name,
            iso(self._clock.now()),
            platform,
            run,
            kind,
            line(place, 200),
            why=_WHY.get(kind, "a credential"),
            persons=2 if self._second else 1,
        )
        try:
            sealed = self._seal(value.encode("utf-8", "replace"))
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_new(self.folder / f"{name}{SUFFIX}", json.dumps(asdict(known)).encode() + b"\n" + sealed)
        except FileExistsError:
            return name
        except (OSError, RecipientError) as error:
            _LOG.error("a credential at %s is not kept: %s", place, error)
            return ""
        return name

    def known(self) -> list[SealedCredential]:
        """All that are kept, the oldest first."""
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with path.open("rb") as file:
                found.append(SealedCredential(**json.loads(file.readline(10_000))))
        return sorted(found, key=lambda one: (one.at, one.name))

    def sealed(self, name: str) -> bytes | None:
        """The sealed value of one; None for a name that is not known."""
        if name not in {one.name for one in self.known()}:
            return None
        return (self.folder / f"{name}{SUFFIX}").read_bytes().partition(b"\n")[2]

    def destroy(self, names: Collection[str], who: str, why: str) -> Path | None:
        """Remove these for good, and leave a record of it; None where there were none."""
        gone = [one for one in self.known() if one.name in names]
        for one in gone:
            (self.folder / f"{one.name}{SUFFIX}").unlink(missing_ok=True)
        if not gone:
            return None
        at = iso(self._clock.now())
        platforms = sorted({one.platform for one in gone})
        record = {"engagement": platforms, "credentials": len(gone), "at": at, "by": who, "why": why}
        path = self.folder / f"{CERTIFICATE}{at.replace(':', '')}-{gone[0].name[:6]}.json"
        write_atomic(path, json.dumps(record | {"destroyed": [asdict(one) for one in gone]}).encode() + b"\n")
        return path

    def prune(self, days: int, people_days: int, now: datetime) -> Path | None:
        """Destroy credentials that are older than so many days, and data of people likewise."""
        oldest = {True: iso(now - timedelta(days=people_days)), False: iso(now - timedelta(days=days))}
        old = [one.name for one in self.known() if one.at < oldest[one.kind in _WHY]]
        why = f"keep.vault_days = {days}, keep.people_days = {people_days}"
        return self.destroy(old, "fleet.toml", why) if old else None

    def reseal(self, name: str, value: bytes) -> None:
        """Seal one anew for the present keys, under its name."""
        [known] = [one for one in self.known() if one.name == name]
        known = replace(known, persons=2 if self._second else 1)
        sealed = self._seal(value)
        write_atomic(self.folder / f"{name}{SUFFIX}", json.dumps(asdict(known)).encode() + b"\n" + sealed)
