"""Signed webhooks: pure verification of one delivery.

A sender sends four things; the first three are headers:

    X-QA-Delivery:  an id of its own choice, 8 to 64 of A-Z a-z 0-9 _ -, new for each delivery
    X-QA-Timestamp: Unix seconds
    X-QA-Signature: sha256=<hex of HMAC-SHA256(secret, "<delivery>.<timestamp>.<body>")>
    the body, at most 256 KiB; nothing in it is read

The delivery id is signed too: were it not, whoever sees a delivery could replay it under another id, and the
id is what makes the key of the run. A key is taken once, for ever, by the journal; `Replays` only lets the
answer say so while the timestamp would still pass.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.errors import ConfigError, Refused
from fleet.triggers.model import Firing, hook_key

DELIVERY, TIMESTAMP, SIGNATURE = "x-qa-delivery", "x-qa-timestamp", "x-qa-signature"
WINDOW_S = 300
LARGEST = 256 * 1024
SHORTEST_SECRET = 16
CROWD = 10_000
"""Deliveries remembered at a time; more within the window are refused, not forgotten."""

_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_SECONDS = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)
_MAC = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request as it came: the hook's name from the path, header pairs, and the body."""

    hook: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Replays:
    """The ids that were taken within the window. Lost with the process; the journal's keys are not."""

    def __init__(self) -> None:
        self._taken: dict[str, float] = {}

    def check(self, delivery: str, now: float) -> None:
        """Refused when this id was taken, or when too many were."""
        self._taken = {key: until for key, until in self._taken.items() if until >= now}
        if delivery in self._taken:
            raise Refused("this delivery was taken before", rule="hook-replay")
        if len(self._taken) >= CROWD:
            raise Refused("too many deliveries", rule="hook-rate", remedy="wait a few minutes")

    def take(self, delivery: str, now: float) -> None:
        """Remember an id as long as any timestamp signed with it could pass."""
        self._taken[delivery] = now + 2 * WINDOW_S


def sign(secret: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    """The value of the signature header."""
    text = f"{delivery}.{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret, text, hashlib.sha256).hexdigest()


def verify(
    delivery: Delivery,
    *,
    secrets: Collection[bytes],
    personas: Iterable[str],
    now: datetime,
    replays: Replays,
) -> list[Firing] | Refused:
    """One firing for each persona, or why there is none: `rule` is the machine's word for it.

    Args:
        secrets: of this hook; more than one while they are being changed. ConfigError for a short one.
        personas: those whose trigger is `on = "hook:<name>"`.
        replays: remembers the delivery when it is good, and only then.
    """
    if any(len(secret) < SHORTEST_SECRET for secret in secrets):
        remedy = f"use at least {SHORTEST_SECRET} random bytes"
        raise ConfigError(f"the secret of hook {delivery.hook!r} is too short", remedy=remedy)
    try:
        ident, stamp = _verified(delivery, secrets, now)
        replays.check(ident, now.timestamp())
    except Refused as refusal:
        return refusal
    replays.take(ident, now.timestamp())
    why, due = f"webhook {delivery.hook}", datetime.fromtimestamp(stamp, UTC)
    return [Firing(hook_key(persona, ident), persona, why, due) for persona in personas]


def _verified(delivery: Delivery, secrets: Collection[bytes], now: datetime) -> tuple[str, int]:
    """The id and timestamp that were signed. The signature comes first: before it, nothing is true."""
    if len(delivery.body) > LARGEST:
        raise Refused(f"larger than {LARGEST} bytes", rule="hook-size")
    ident = _header(delivery, DELIVERY, _ID)[0]
    stamp = int(_header(delivery, TIMESTAMP, _SECONDS)[0])
    given = _header(delivery, SIGNATURE, _MAC)[0].encode()
    good = [
        hmac.compare_digest(sign(secret, ident, stamp, delivery.body).encode(), given) for secret in secrets
    ]
    if not any(good):
        raise Refused("the signature does not match", rule="hook-signature")
    if abs(now.timestamp() - stamp) > WINDOW_S:
        remedy = "check the clocks on both sides"
        raise Refused(f"the timestamp is more than {WINDOW_S} s off", rule="hook-timestamp", remedy=remedy)
    return ident, stamp


def _header(delivery: Delivery, name: str, form: re.Pattern[str]) -> re.Match[str]:
    values = [value for key, value in delivery.headers if key.lower() == name]
    match = form.fullmatch(values[0]) if len(values) == 1 else None
    if match is None:
        raise Refused(f"{name} is missing, repeated or malformed", rule="hook-header")
    return match
