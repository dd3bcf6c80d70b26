"""Whether the hosts of a signed scope are those of who signed it: a file there names a signer.

`/.well-known/qa-fleet.txt` of each host has the address of one of `[authority] signers`. A host that does not
answer counts for a week after it last showed its file: an outage must not end the tests that report it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio

from fleet.broker.egress_policy import EgressPolicy, Origin
from fleet.broker.rpc_policy import Denied
from fleet.clock import Clock, iso
from fleet.config import FleetConfig, Platform
from fleet.config.section import is_loopback
from fleet.errors import ConfigError
from fleet.http_client import HttpFailure, get, open_client
from fleet.store.journal import Journal

PROOF = "/.well-known/qa-fleet.txt"
OWNED = "owned:"
"""Prefix of the facts when a host last showed its proof."""
LASTS = timedelta(days=7)
ASK_S, LONGEST = 10.0, 4096
Read = Callable[[str], Awaitable[str | None]]
"""Asks for a URL: its text, "" for an answer that is none, None without an answer."""


async def read_proof(url: str) -> str | None:
    """One request; no redirect is followed."""
    try:
        with anyio.fail_after(ASK_S):
            async with open_client(url) as client:
                status, _, body = await get(client, url, limit=LONGEST)
    except (HttpFailure, TimeoutError):
        return None
    return body.decode("utf-8", "replace") if status == 200 else ""


async def unowned(
    config: FleetConfig,
    platform: Platform,
    policy: EgressPolicy,
    journal: Journal,
    clock: Clock,
    read: Read = read_proof,
) -> list[str]:
    """The hosts that nobody has shown to own; none without signers, and never one of this machine."""
    signers = {one.lower() for one in config.authority.signers}
    hosts = [one for one in sorted({*policy.hosts, *(face for face, _ in policy.faces)}) if signers]
    found = list[str]()

    async def look(origin: Origin) -> None:
        url = f"{origin.scheme}://{origin.authority}"
        if is_loopback(origin.host) or platform.care.at(url).third_party:
            return
        try:
            await policy.addresses(origin)
            text = await read(url + PROOF)
        except Denied:
            text = None
        key, now = f"{OWNED}{platform.name}:{origin.authority}", clock.now()
        if text is not None and any(word.lower() in signers for word in text.split()):
            await journal.put(key, iso(now))
        elif text is not None or (await journal.get(key) or "") < iso(now - LASTS):
            found.append(origin.host)

    async with anyio.create_task_group() as group:
        for origin in hosts:
            group.start_soon(look, origin)
    return sorted(found)


async def require_owned(
    config: FleetConfig, platform: Platform, policy: EgressPolicy, journal: Journal, clock: Clock
) -> None:
    """ConfigError unless each host of a signed scope has shown that a signer owns it."""
    if hosts := await unowned(config, platform, policy, journal, clock):
        remedy = (
            f"put the address of a signer into {PROOF} there, or say in [hosts] third_party who permitted it"
        )
        raise ConfigError(f"{platform.name}: nobody has shown to own {', '.join(hosts)}", remedy=remedy)
