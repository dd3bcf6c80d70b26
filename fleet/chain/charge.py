"""Who pays for a signature: said by who asks, bounded by the role; the run's budget is charged first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fleet.chain import abi, policy
from fleet.chain.ports import Charge, Role, RunScope, TxRequest
from fleet.errors import Refused

PAYS: Mapping[Role, frozenset[Charge]] = MappingProxyType(
    {
        Role.THROWAWAY: frozenset({"writes"}),
        Role.IDENTITY: frozenset({"reports", "closing", "none"}),
        Role.SPONSOR: frozenset({"none"}),
        Role.OPERATOR: frozenset({"none"}),
    }
)
"""What a role's signatures may be charged to. The identity's `none`: a report that was paid before a crash,
and what the fleet says outside of runs."""

_CLEANUP = frozenset(abi.FUNCTIONS[name].selector for name in policy.CLEANUP)


def check_charge(request: TxRequest) -> None:
    """Refused when a request names a payer that it may not have: an act of a throwaway key is never free.

    What gives something back is never charged.
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
    """Charge one signature to the run that asks for it; BudgetExceeded when that is spent, or Refused."""
    check_charge(request)
    if request.charge == "none":
        return
    if scope is None or scope.payer is None:
        raise Refused(f"run {request.run!r} has no budget that could pay", rule="charge")
    await scope.payer.spend(request.charge)
