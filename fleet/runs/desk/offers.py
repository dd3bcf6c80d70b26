"""The tools on offer to a driver: granted tools and the desk's own; and how a call of one is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.desk import FINISH, REPORT_FINDING, RUN_PROBE, Offer
from fleet.runs.call.guest_protocol import bad_args, schema
from fleet.runs.call.replies import arguments, pointed
from fleet.runs.call.targets import CORE, CircuitBreaker, group_of
from fleet.runs.proof.claims import ReportFinding
from sandbox.tools import TOOLS


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a call is invalid, and where in its arguments; `shown` is the part of them to record."""

    error: str
    pointer: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateCall:
    """A call of a `qa_*` tool, with arguments as the driver wrote them."""

    args: dict[str, Any]


class _Args(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunProbe(_Args):
    """Look at one probe of the plan: its steps run in fresh jails and are judged."""

    probe: Annotated[str, Field(max_length=64, description="id of an open probe of the plan")]


class Finish(_Args):
    """Declare the work finished; refused while probes of the plan are open."""

    detail: Annotated[str, Field(max_length=1_000)] = ""


CheckedCall = GateCall | RunProbe | ReportFinding | Finish
OWN: Mapping[str, type[RunProbe | ReportFinding | Finish]] = {
    RUN_PROBE: RunProbe,
    REPORT_FINDING: ReportFinding,
    FINISH: Finish,
}


def offers(grant: Collection[str], breaker: CircuitBreaker) -> tuple[Offer, ...]:
    """All tools on offer now, without those of withdrawn groups."""
    tools = [tool for tool in TOOLS if tool in grant and breaker.offers(tool)]
    return tuple(_offer(name) for name in (*tools, *OWN))


@lru_cache(maxsize=64)
def _offer(name: str) -> Offer:
    if name in OWN:
        model = OWN[name]
        return Offer(name, (model.__doc__ or "").strip(), model.model_json_schema(), CORE)
    spec = TOOLS[name]
    return Offer(name, spec.summary, schema(spec), group_of(name))


def check(tool: str, args: Mapping[str, Any] | str) -> CheckedCall | Rejection:
    """A call of a tool on offer, read into the arguments of its tool."""
    plain = arguments(args)
    if isinstance(plain, str):
        return Rejection(plain)
    if tool not in OWN:
        bad = bad_args(TOOLS[tool], plain)
        return Rejection(*pointed(bad), plain) if bad else GateCall(plain)
    try:
        return OWN[tool].model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return Rejection(first["msg"], "/" + "/".join(str(part) for part in first["loc"]), plain)
