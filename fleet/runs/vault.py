"""Credentials that runs found, each sealed at once for whoever holds the key of `[keep] sealed_for`.

The fleet can write them and not read them: one file of `vault/` is a line of JSON (when, where, what it looks
like, never the value) and, behind it, the value as age writes it. A value at one place is kept once.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyrage import RecipientError, encrypt, x25519

from fleet.clock import Clock, iso
from fleet.files import write_atomic, write_new
from fleet.text import line

VAULT, SUFFIX = "vault", ".sealed"
CERTIFICATE = "destroyed-"
"""Begins the name of a record of what was destroyed."""
CIPHER = "age: X25519, ChaCha20-Poly1305 (256 bits)"
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


class Vault:
    """The one of a state directory; `key` is a public key of age, "" for none: then nothing is kept."""

    def __init__(self, state: Path, key: str, clock: Clock) -> None:
        self.folder, self._key, self._clock = state / VAULT, key, clock

    def keep(self, platform: str, run: str, place: str, kind: str, value: str) -> str:
        """Seal one value; its name, "" where none is kept. What hinders it is logged: the value is masked
        wherever else it was, and lost then."""
        if not self._key:
            return ""
        salt = f"{platform}\n{place}\n{kind}".encode()
        # slow by purpose: the name of a short password must not give it away
        name = hashlib.scrypt(value.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1, dklen=10).hex()
        known = SealedCredential(name, iso(self._clock.now()), platform, run, kind, line(place, 200))
        try:
            sealed = encrypt(value.encode("utf-8", "replace"), [x25519.Recipient.from_str(self._key)])
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

    def prune(self, days: int, now: datetime) -> Path | None:
        """Destroy what is older than so many days."""
        oldest = iso(now - timedelta(days=days))
        old = [one.name for one in self.known() if one.at < oldest]
        return self.destroy(old, "fleet.toml", f"keep.vault_days = {days}") if old else None
