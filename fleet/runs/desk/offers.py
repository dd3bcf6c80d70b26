"""The tools on offer to a driver: the granted tools with their argument schemas, and the desk's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.drivers.desk import FINISH, REPORT_FINDING, RUN_PROBE, Offer
from fleet.personas.model import Severity, Step, Surface
from fleet.runs.call.guest_protocol import schema
from fleet.runs.call.tool_groups import CORE, CircuitBreaker, group_of
from sandbox.tools import TOOLS


class _Args(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunProbe(_Args):
    """Look at one probe of the plan: its steps run in fresh jails and are judged."""

    probe: Annotated[str, Field(max_length=64, description="id of an open probe of the plan")]


class ReportFinding(_Args):
    """Claim a defect beyond the plan, with the calls that show it. It is reproduced before it counts."""

    title: Annotated[str, Field(min_length=8, max_length=300, description="what is wrong, what was expected")]
    severity: Severity
    surface: Surface | None = None
    steps: Annotated[
        tuple[Step, ...],
        Field(
            max_length=16, description="calls that show it, {tool, args}; {site} {proxy} {name} {face:NAME}"
        ),
    ] = ()
    expect: Annotated[
        str,
        Field(
            max_length=300, description="CEL over result and results: true on a healthy platform, false now"
        ),
    ] = ""


class Finish(_Args):
    """Declare the work finished; refused while probes of the plan are open."""

    detail: Annotated[str, Field(max_length=1_000)] = ""


OWN: Mapping[str, type[_Args]] = {RUN_PROBE: RunProbe, REPORT_FINDING: ReportFinding, FINISH: Finish}


def offers(grant: Collection[str], strikes: CircuitBreaker) -> tuple[Offer, ...]:
    """All tools on offer now; those of withdrawn groups are missing."""
    tools = [tool for tool in TOOLS if tool in grant and strikes.offers(tool)]
    return (*(_tool(tool) for tool in tools), *(_own(name) for name in OWN))


def parsed(name: str, args: Mapping[str, Any]) -> _Args | str:
    """Arguments of one of the desk's own tools, or why they are invalid: `/pointer: message`."""
    try:
        return OWN[name].model_validate(dict(args))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return "/" + "/".join(str(part) for part in first["loc"]) + f": {first['msg']}"


@lru_cache(maxsize=32)
def _tool(name: str) -> Offer:
    spec = TOOLS[name]
    return Offer(name, spec.summary, schema(spec), group_of(name))


@lru_cache(maxsize=8)
def _own(name: str) -> Offer:
    model = OWN[name]
    return Offer(name, (model.__doc__ or "").strip(), model.model_json_schema(), CORE)
