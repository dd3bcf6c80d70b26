"""The tools on offer to a driver: granted tools and the desk's own, with their argument schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.desk import FINISH, REPORT_FINDING, RUN_PROBE, Offer
from fleet.runs.call.guest_protocol import schema
from fleet.runs.call.tool_groups import CORE, CircuitBreaker, group_of
from fleet.runs.proof.claims import ReportFinding
from sandbox.tools import TOOLS


class _Args(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunProbe(_Args):
    """Look at one probe of the plan: its steps run in fresh jails and are judged."""

    probe: Annotated[str, Field(max_length=64, description="id of an open probe of the plan")]


class Finish(_Args):
    """Declare the work finished; refused while probes of the plan are open."""

    detail: Annotated[str, Field(max_length=1_000)] = ""


OWN: Mapping[str, type[RunProbe | ReportFinding | Finish]] = {
    RUN_PROBE: RunProbe,
    REPORT_FINDING: ReportFinding,
    FINISH: Finish,
}


def offers(grant: Collection[str], breaker: CircuitBreaker) -> tuple[Offer, ...]:
    """All tools on offer now, without those of withdrawn groups."""
    tools = [tool for tool in TOOLS if tool in grant and breaker.offers(tool)]
    return tuple(_offer(name) for name in (*tools, *OWN))


def parsed(name: str, args: Mapping[str, Any]) -> RunProbe | ReportFinding | Finish | str:
    """Arguments of one of the desk's own tools, or why they are invalid: `/pointer: message`."""
    try:
        return OWN[name].model_validate(dict(args))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return "/" + "/".join(str(part) for part in first["loc"]) + f": {first['msg']}"


@lru_cache(maxsize=64)
def _offer(name: str) -> Offer:
    if name in OWN:
        model = OWN[name]
        return Offer(name, (model.__doc__ or "").strip(), model.model_json_schema(), CORE)
    spec = TOOLS[name]
    return Offer(name, spec.summary, schema(spec), group_of(name))
