"""External limits of the signer: the dial, the never-list and the stipend."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from fleet.chain.ports import RunScope

CLEANUP_SHARE = 5
"""1 / CLEANUP_SHARE of a run's stipend is kept for clean-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningLimits:
    """Read at every signature. `rung` is the dial's word, or `stop` while STOP is set.

    `stipend_wei` is the most that the sponsor pays in one run; `token` the ERC-20 of the registration cost.
    """

    rung: Callable[[], str]
    never: Container[bytes] = frozenset()
    stipend_wei: int = 10**18
    token: str = ""


def stipend_left(limits: SigningLimits, scope: RunScope, cleanup: bool) -> int:
    """Wei that the sponsor may still pay for this run; the last part only for clean-up."""
    most = limits.stipend_wei
    return (most if cleanup else most - most // CLEANUP_SHARE) - scope.stipend_wei
