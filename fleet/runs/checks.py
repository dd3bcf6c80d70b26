"""What a run asks about its surroundings, each time anew: target, node, the diamond's surface, programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fleet.chain.facets import offered
from fleet.chain.rpc import Rpc
from fleet.config import Platform
from fleet.errors import RpcError, Unreachable
from fleet.jail.model import Image, Tier
from fleet.jail.selfcheck import require
from fleet.jail.toolcheck import Programs, try_programs


async def unchecked() -> None:
    """All is as it was."""


async def answers(deadline_s: float) -> str:
    """A node that always answers."""
    return ""


async def unlisted() -> frozenset[str] | None:
    """What a diamond without a loupe offers: it cannot say."""
    return None


async def untried() -> str:
    """No program that cannot be started."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The defaults are those of surroundings in which all is well."""

    health: Callable[[], Awaitable[None]] = unchecked
    """Before work: FleetError when this is not the platform, or the jail, that it was."""
    node: Callable[[float], Awaitable[str]] = answers
    """Ask the chain's node one thing within so many seconds; how it did not answer (unanswered.py), or ""."""
    offered: Callable[[], Awaitable[frozenset[str] | None]] = unlisted
    """Asks the diamond for its selectors; None when it cannot say. Unreachable passes on."""
    cannot_start: Callable[[], Awaitable[str]] = untried
    """Tries the platform's compiler and loader: why they cannot be started here, our trouble, or ""."""


def checks_of(rpc: Rpc, profile: Platform, tier: Tier, cannot_start: Callable[[], Awaitable[str]]) -> Checks:
    """The checks of a real platform, on the jail as it has proven itself."""

    async def health() -> None:
        await rpc.check_target(profile)
        require(tier)

    return Checks(
        health=health,
        node=partial(ask_node, profile.chain.rpc),
        offered=partial(offered, rpc, profile.chain.diamond),
        cannot_start=cannot_start,
    )


async def ask_node(url: str, deadline_s: float) -> str:
    """Ask the node one thing on a connection of its own; how it did not answer, or ""."""
    async with Rpc(url, timeout_s=deadline_s) as rpc:
        try:
            await rpc.call("eth_chainId")
        except Unreachable as error:
            return error.how
        except RpcError:
            pass  # an answer
        return ""


async def why_not_started(shown: Image, programs: Programs, spool: Path) -> str:
    """Why the platform's compiler or loader cannot be tried here; "" when they can, and without any."""
    tried = await try_programs(shown, programs, spool=spool)
    return "; ".join(f"{one.name}: {one.seen}" for one in tried if one.ours)
