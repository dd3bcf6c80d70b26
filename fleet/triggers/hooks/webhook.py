"""Signed webhooks: pure verification of one delivery.

A delivery has three headers and a body:

    X-QA-Delivery:  an id chosen by the sender, 8 to 64 of A-Z a-z 0-9 _ -, new for each delivery
    X-QA-Timestamp: Unix seconds
    X-QA-Signature: sha256=<hex of HMAC-SHA256(secret, "<delivery>.<timestamp>.<body>")>
    the body, at most 256 KiB; its content is not interpreted

GitHub's own form is accepted beside it, without our headers:

    X-Hub-Signature-256: sha256=<hex of HMAC-SHA256(secret, "<body>")>

It signs neither an id nor a time, so the id is made from the body: the same body starts nothing again. A body
that begins like the text which our own form signs is refused there: its signature might be one of ours.

The signature covers the delivery id, because the id determines the run's key: otherwise an eavesdropper could
replay a delivery under another id. The journal accepts a key only once: a replay starts nothing, and a sender
without an answer may safely repeat a delivery. The hook's name is not signed: each hook needs its own secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from fleet.errors import Refused
from fleet.personas.model import Persona
from fleet.triggers.model import Firing, Skip, hook_key

DELIVERY, TIMESTAMP, SIGNATURE = "x-qa-delivery", "x-qa-timestamp", "x-qa-signature"
HUB = "x-hub-signature-256"
EVENT = "hook:"
WINDOW_S = 300
LARGEST = 256 * 1024

_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_SECONDS = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)
_MAC = re.compile(r"sha256=([0-9a-f]{64})")
_OURS = re.compile(rb"[A-Za-z0-9_-]{8,64}\.[1-9][0-9]{0,11}\.")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request as received: the hook's name from the path, header pairs, and the body."""

    hook: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """What the headers of a delivery claim; trusted only after the signature is verified.

    `ident` is "" in GitHub's form: the body makes it. `stamp` is then the time of arrival.
    """

    ident: str
    stamp: int
    mac: str


def sign(secret: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    """The value of the signature header."""
    text = f"{delivery}.{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret, text, hashlib.sha256).hexdigest()


def headers(secret: bytes, delivery: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a delivery."""
    mac = sign(secret, delivery, timestamp, body)
    return {DELIVERY: delivery, TIMESTAMP: str(timestamp), SIGNATURE: mac}


def head(pairs: Iterable[tuple[str, str]], now: datetime) -> Head:
    """Check the headers before reading the body; Refused when no body can make them valid."""
    given = tuple(pairs)
    names = {key.lower() for key, _ in given}
    if HUB in names and not names & {DELIVERY, TIMESTAMP, SIGNATURE}:
        return Head("", int(now.timestamp()), _header(given, HUB, _MAC)[0])
    ident = _header(given, DELIVERY, _ID)[0]
    stamp = int(_header(given, TIMESTAMP, _SECONDS)[0])
    mac = _header(given, SIGNATURE, _MAC)[0]
    if abs(now.timestamp() - stamp) > WINDOW_S:
        remedy = "check the clocks on both sides"
        raise Refused(f"the timestamp is more than {WINDOW_S} s off", rule="hook-timestamp", remedy=remedy)
    return Head(ident, stamp, mac)


def verify(
    delivery: Delivery, *, secrets: Collection[bytes], personas: Iterable[str], now: datetime
) -> list[Firing]:
    """One firing per persona; Refused for an invalid delivery: `rule` is the machine-readable reason.

    Args:
        secrets: secrets of this hook; more than one during rotation.
        personas: personas with a trigger `on = "hook:<name>"`.
    """
    said = _verified(delivery, secrets, now)
    why, due = f"webhook {delivery.hook}", datetime.fromtimestamp(said.stamp, UTC)
    return [Firing(hook_key(persona, delivery.hook, said.ident), persona, why, due) for persona in personas]


def unfired(persona: Persona, hooks: Collection[str]) -> list[Skip]:
    """Skips for a persona's triggers whose webhook is not configured."""
    events = [trigger.on for trigger in persona.triggers if (trigger.on or "").startswith(EVENT)]
    names = [str(event).removeprefix(EVENT) for event in events]
    why = "no [hooks.{}] in fleet.toml: no delivery can fire it"
    return [
        Skip(persona.name, hook_key(persona.name, name, "-"), why.format(name))
        for name in names
        if name not in hooks
    ]


def _verified(delivery: Delivery, secrets: Collection[bytes], now: datetime) -> Head:
    """The signed id and timestamp."""
    if len(delivery.body) > LARGEST:
        raise Refused(f"larger than {LARGEST} bytes", rule="hook-size")
    said = head(delivery.headers, now)
    if not said.ident:
        return _hub_verified(delivery.body, said, secrets)
    macs = [sign(secret, said.ident, said.stamp, delivery.body) for secret in secrets]
    good = [hmac.compare_digest(mac.encode(), said.mac.encode()) for mac in macs]
    if not any(good):
        raise Refused("the signature does not match", rule="hook-signature")
    return said


def _hub_verified(body: bytes, said: Head, secrets: Collection[bytes]) -> Head:
    """GitHub's form: the head with the id that the body makes."""
    macs = ["sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest() for secret in secrets]
    good = [hmac.compare_digest(mac.encode(), said.mac.encode()) for mac in macs]
    if not any(good) or _OURS.match(body):
        raise Refused("the signature does not match", rule="hook-signature")
    return replace(said, ident=f"gh-{hashlib.sha256(body).hexdigest()[:40]}")


def _header(pairs: tuple[tuple[str, str], ...], name: str, form: re.Pattern[str]) -> re.Match[str]:
    values = [value for key, value in pairs if key.lower() == name]
    match = form.fullmatch(values[0]) if len(values) == 1 else None
    if match is None:
        raise Refused(f"{name} is missing, repeated or malformed", rule="hook-header")
    return match
