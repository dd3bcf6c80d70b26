"""What bounds a signature besides the policy: dial, never-list and stipend, and who pays for it.

The payer is named by the request, bounded by the role, and charged before signing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fleet.chain.node import abi
from fleet.chain.ports import Charge, Role, RunScope, TxRequest
from fleet.chain.signing import policy
from fleet.errors import Refused

CLEANUP_SHARE = 5
"""1 / CLEANUP_SHARE of a run's stipend is kept for clean-up."""
PAYS: Mapping[Role, frozenset[Charge]] = MappingProxyType(
    {
        Role.THROWAWAY: frozenset({"writes"}),
        Role.IDENTITY: frozenset({"reports", "closing", "none"}),
        Role.SPONSOR: frozenset({"none"}),
        Role.OPERATOR: frozenset({"none"}),
    }
)
"""Charges permitted for each role. The identity's `none`: a report that was paid before a crash, and entries
posted outside a run."""

_CLEANUP = frozenset(abi.FUNCTIONS[name].selector for name in policy.CLEANUP)


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


def check_charge(request: TxRequest) -> None:
    """Refused when the role does not permit the charge: an act of a throwaway key is never free.

    Clean-up is never charged.
    """
    gives_back = request.cleanup and (not request.data or request.data[:4] in _CLEANUP)
    permitted = frozenset({"none"}) if gives_back else PAYS[request.role]
    if request.charge not in permitted:
        words = " or ".join(sorted(permitted))
        raise Refused(
            f"a transaction of the {request.role} key is charged to {words}, not to {request.charge}",
            rule="charge",
        )


async def collect(request: TxRequest, scope: RunScope | None) -> None:
    """Charge one signature to its run; raises BudgetExceeded when the budget is spent, or Refused."""
    check_charge(request)
    if request.charge == "none":
        return
    if scope is None or scope.payer is None:
        raise Refused(f"run {request.run!r} has no budget that could pay", rule="charge")
    await scope.payer.spend(request.charge)
