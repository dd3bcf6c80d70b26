"""What bounds the signer from outside: the dial, the never-list and the stipend."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from fleet.chain.ports import RunScope

CLEANUP_SHARE = 5
"""One part in this many of a run's stipend is kept for clean-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningLimits:
    """What the signer asks at every signature. `rung` is the dial's word, or `stop` while STOP is set.

    `never` is asked anew each time. `stipend_wei` is the most that the sponsor pays in one run; `token` the
    ERC-20 of the registration cost.
    """

    rung: Callable[[], str]
    never: Container[bytes] = frozenset()
    stipend_wei: int = 10**18
    token: str = ""


def stipend_left(limits: SigningLimits, scope: RunScope, cleanup: bool) -> int:
    """Wei that the sponsor may still pay for this run; the last part of it for clean-up only."""
    most = limits.stipend_wei
    return (most if cleanup else most - most // CLEANUP_SHARE) - scope.stipend_wei
