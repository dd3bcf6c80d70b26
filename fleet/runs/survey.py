"""Surveys what a platform offers, and which parts of the fleet can run against it.

Read-only: no key, no transaction, no paid call. Of a page only the response head is read; every look has its
own deadline, and untrusted text is cleaned before it is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import anyio

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.facets import offered
from fleet.chain.node.rpc import Rpc
from fleet.chain.signing.sponsor import in_force
from fleet.config import Platform
from fleet.config.parts import not_configured
from fleet.drivers.explore.table import chosen
from fleet.errors import FleetError, RpcError, WrongTarget
from fleet.http_client import HttpFailure, look, open_client
from fleet.personas.load import LoadedPersona
from fleet.personas.model import Persona
from fleet.personas.needs import needs_of
from fleet.runs.call.targets import Capabilities
from fleet.runs.driver_choice import FIX, RETEST, TRIAGE
from fleet.text import line
from fleet.unanswered import TIMED_OUT, unanswered
from sandbox.chain.contract import VIEWS, WRITES
from sandbox.spec import Effect
from sandbox.tools import TOOLS

LOOK_S = 10.0
"""Maximum seconds per look."""
COSTS = ("registrationCost", "mainCost")
KNOWN: Mapping[str, str] = {
    "submitFeedback": "0x" + FUNCTIONS["submitFeedback"].selector.hex(),
    **{name: one.selector for table in (VIEWS, WRITES) for name, one in table.items()},
}
"""Functions that the fleet may call, with their selectors."""

PartState = Literal["found", "absent", "unreachable", "differs"]
"""`absent`: not in the profile, or not in the diamond; `differs`: not what the profile says."""


@dataclass(frozen=True, slots=True)
class SurveyedPart:
    """One part of a platform, and its observed state."""

    part: str
    state: PartState
    seen: str

    @property
    def is_bad(self) -> bool:
        """Whether the part does not match the profile that names it."""
        return self.state in ("unreachable", "differs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """`selectors` are those that the diamond offers; None when unknown or not reached."""

    parts: tuple[SurveyedPart, ...]
    selectors: frozenset[str] | None
    costs: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether every part that the profile names was reached and matches it."""
        return not any(part.is_bad for part in self.parts)

    def functions(self) -> tuple[list[str], list[str]] | None:
        """Known functions that the diamond offers, and those that it lacks."""
        if self.selectors is None:
            return None
        there = [name for name, selector in KNOWN.items() if selector in self.selectors]
        return there, [name for name in KNOWN if name not in there]


async def survey(
    platform: Platform,
    programs: Callable[[], Awaitable[Iterable[SurveyedPart]]],
    report: Callable[[SurveyedPart], None] = lambda _: None,
) -> Survey:
    """Look at all parts concurrently; `report` is called with each, `programs` looks at the compiler.

    A part that the profile does not name is not looked at, and costs nothing but what it would have brought.
    """
    found: dict[str, tuple[SurveyedPart, ...]] = {
        "node": (),
        **dict.fromkeys(page_urls(platform), ()),
        "programs": (),
    }
    chain: list[tuple[frozenset[str] | None, dict[str, int]]] = []

    async def put(name: str, parts: Iterable[SurveyedPart]) -> None:
        found[name] = tuple(parts)
        for part in found[name]:
            report(part)

    async def node() -> None:
        parts, selectors, costs = await _node(platform)
        chain.append((selectors, costs))
        await put("node", parts)

    async def page(name: str, url: str) -> None:
        await put(name, [await look_at(name, url, platform.authorisation.comment)])

    async def compiler() -> None:
        await put("programs", await programs())

    async with anyio.create_task_group() as tasks:
        if platform.chain.rpc:
            tasks.start_soon(node)
        if platform.compiler.program.command or platform.compiler.loader:
            tasks.start_soon(compiler)
        for name, url in page_urls(platform).items():
            if url:
                tasks.start_soon(page, name, url)
    looked = tuple(part for row in found.values() for part in row)
    rest = tuple(SurveyedPart(name, "absent", why) for name, why in not_configured(platform).items())
    for part in rest:
        report(part)
    selectors, costs = chain[0] if chain else (None, {})
    return Survey(parts=(*looked, *rest), selectors=selectors, costs=costs)


def page_urls(platform: Platform) -> dict[str, str]:
    """URL to request for each part of the web; "" for a part that the profile does not name or never asks."""
    name = platform.call_targets[0] if platform.call_targets else "qa"
    web = platform.web
    urls = {"site": web.site, "faces": web.face.replace("{name}", name), "proxy": web.proxy}
    return {part: "" if web.never_places.match(url) else url for part, url in urls.items()}


async def look_at(part: str, url: str, comment: str = "") -> SurveyedPart:
    """One look at a part of the web."""
    try:
        with anyio.fail_after(LOOK_S):
            async with open_client(url, comment=comment) as client:
                status = await look(client, url)
    except TimeoutError:
        return SurveyedPart(part, "unreachable", f"{url}: {TIMED_OUT}")
    except HttpFailure as failure:
        why = unanswered(failure.__cause__ or failure) or str(failure)
        return SurveyedPart(part, "unreachable", line(f"{url}: {why}", 300))
    return SurveyedPart(part, "unreachable" if status >= 500 else "found", f"{url}: HTTP {status}")


async def _node(
    platform: Platform,
) -> tuple[list[SurveyedPart], frozenset[str] | None, dict[str, int]]:
    chain = platform.chain
    async with Rpc(chain.rpc, timeout_s=LOOK_S) as rpc:
        try:
            await rpc.check_target(platform)
            if not chain.diamond:
                await rpc.head()
                return [SurveyedPart("chain", "found", f"chain {chain.id} at {chain.rpc}")], None, {}
            selectors = await offered(rpc, chain.diamond)
            costs = await _costs(rpc, platform, selectors)
            paid = await _keys(rpc, platform)
        except WrongTarget as error:
            return [SurveyedPart("chain", "differs", line(str(error), 300))], None, {}
        except (FleetError, ValueError) as error:
            remedy = f"; {error.remedy}" if isinstance(error, FleetError) and error.remedy else ""
            return [SurveyedPart("chain", "unreachable", line(f"{error}{remedy}", 300))], None, {}
    parts = [SurveyedPart("chain", "found", f"chain {chain.id} at {chain.rpc}, diamond {chain.diamond}")]
    if selectors is None:
        parts.append(SurveyedPart("functions", "absent", "no readable loupe: only a call can show them"))
    else:
        offers = sum(selector in selectors for selector in KNOWN.values())
        parts.append(SurveyedPart("functions", "found", f"{offers} of the {len(KNOWN)} that the fleet knows"))
    unit = "wei of the profile's token" if chain.token else "wei of a token that the profile does not name"
    for name, wei in costs.items():
        parts.append(SurveyedPart(name, "found", f"{wei} {unit}" if wei else "free"))
    return [*parts, paid], selectors, costs


async def _keys(rpc: Rpc, platform: Platform) -> SurveyedPart:
    """How throwaway keys are paid on this chain; a node that cannot estimate is no fault of the profile."""
    try:
        return SurveyedPart("throwaway keys", "found", await in_force(rpc, platform.sponsor.mode))
    except RpcError as error:
        return SurveyedPart("throwaway keys", "absent", line(f"cannot say how they are paid: {error}", 300))


async def _costs(rpc: Rpc, platform: Platform, selectors: frozenset[str] | None) -> dict[str, int]:
    """Prices of a name and of a MAIN identity; unknown prices are left out."""
    found = {}
    for name in COSTS:
        if selectors is None or KNOWN[name] in selectors:
            try:
                found[name] = int(await rpc.view(platform.chain.diamond, name))
            except RpcError:
                continue
    return found


def applicable_tools(capabilities: Capabilities) -> dict[str, str]:
    """Every tool, and why it cannot be used on this platform, or ""."""
    return {name: capabilities.unusable(spec) for name, spec in TOOLS.items()}


def why_idle(persona: Persona, capabilities: Capabilities) -> str:
    """Why a run of this persona would look at nothing here; "" when it would look at something."""
    if persona.driver in (TRIAGE, FIX):
        return ""
    specs = [spec for tool in persona.tools if (spec := TOOLS.get(tool)) and spec.effect is not Effect.REPORT]
    lacks = [capabilities.unusable(spec) for spec in specs]
    usable = frozenset(one.name for one, why in zip(specs, lacks, strict=True) if not why)
    looks = chosen(persona.explore, usable) or persona.outages or persona.driver == RETEST.name
    if lacks and (all(lacks) or (persona.explore and not persona.probe and not looks)):
        parts = dict.fromkeys(part for why in lacks for part in why.split("; ") if part)
        return f"none of its {'explorers' if usable else 'tools'} can be used here: {'; '.join(parts)}"
    if persona.probe and not looks and all(capabilities.missing(needs_of(one)) for one in persona.probe):
        return "none of its probes is applicable here: fleet check platform says why"
    return ""


def applicable_probes(
    personas: Mapping[str, LoadedPersona], capabilities: Capabilities
) -> list[dict[str, Any]]:
    """For every persona: how many of its probes apply, and why the others do not."""
    rows = []
    for name, persona in sorted(personas.items()):
        missing = {probe.id: capabilities.missing(needs_of(probe)) for probe in persona.persona.probe}
        without = [{"probe": probe, "reason": why} for probe, why in missing.items() if why]
        rows.append(
            {
                "persona": name,
                "probes": len(missing),
                "applicable": len(missing) - len(without),
                "not_applicable": without,
                "idle": why_idle(persona.persona, capabilities),
            }
        )
    return rows


def as_data(found: Survey, platform: Platform, personas: Mapping[str, LoadedPersona]) -> dict[str, Any]:
    """The whole survey as JSON."""
    capabilities = Capabilities(platform, found.selectors)
    functions = found.functions()
    return {
        "platform": platform.name,
        "ok": found.is_good,
        "parts": [asdict(part) for part in found.parts],
        "functions": {"offered": functions[0], "missing": functions[1]} if functions else None,
        "costs_wei": {name: str(wei) for name, wei in found.costs.items()},
        "tools": [
            {"tool": tool, "applicable": not why, "reason": why}
            for tool, why in applicable_tools(capabilities).items()
        ],
        "personas": applicable_probes(personas, capabilities),
    }
