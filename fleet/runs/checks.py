"""A run's checks of its environment, never cached: target, node, the diamond's functions, programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

from fleet.chain.node.facets import offered
from fleet.chain.node.rpc import Rpc
from fleet.config import Platform
from fleet.errors import RpcError, Unreachable
from fleet.jail.model import Image, Jail, Tier
from fleet.jail.selfcheck import require
from fleet.jail.toolcheck import try_programs
from sandbox.programs.program import Program


async def unchecked() -> None:
    """Nothing to check."""


async def answers(_deadline_s: float) -> str:
    """For a node that always answers."""
    return ""


async def unlisted() -> frozenset[str] | None:
    """For a diamond without a loupe, whose functions are unknown."""
    return None


async def untried() -> str:
    """For programs that can all be started."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The defaults suit an environment without faults."""

    health: Callable[[], Awaitable[None]] = unchecked
    """Before work: FleetError when the platform or the jail has changed."""
    node: Callable[[float], Awaitable[str]] = answers
    """Send the chain's node one request with a deadline; how it failed to answer (unanswered.py), or ""."""
    offered: Callable[[], Awaitable[frozenset[str] | None]] = unlisted
    """Asks the diamond for its selectors; None when unknown. Unreachable passes through."""
    cannot_start: Callable[[], Awaitable[str]] = untried
    """Tries the platform's compiler and loader: why this machine cannot start them, or ""."""


def checks_of(
    rpc: Rpc,
    profile: Platform,
    tier: Tier,
    cannot_start: Callable[[], Awaitable[str]],
    named: Collection[str] = (),
) -> Checks:
    """The checks of a real platform and of the tier that the jail has proven; `named` are the selectors of
    the profile's ABI."""

    async def health() -> None:
        await rpc.check_target(profile)
        require(tier)

    return Checks(
        health=health,
        node=partial(ask_node, profile.chain.rpc),
        offered=partial(offered, rpc, profile.chain.diamond, named) if profile.chain.diamond else unlisted,
        cannot_start=cannot_start,
    )


async def ask_node(url: str, deadline_s: float) -> str:
    """Send the node one request on a new connection; how it failed to answer, or ""."""
    async with Rpc(url, timeout_s=deadline_s, retries={}) as rpc:
        try:
            await rpc.call("eth_chainId")
        except Unreachable as error:
            return error.how
        except RpcError:
            pass  # an answer
        return ""


async def why_not_started(shown: Image, program: Program, open_jail: Callable[[Image], Jail]) -> str:
    """Why the platform's compiler or loader cannot be started here; "" when they can, or there are none."""
    tried = await try_programs(shown, program, open_jail)
    return "; ".join(f"{one.name}: {one.seen}" for one in tried if one.ours)
