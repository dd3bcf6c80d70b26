"""What is examined: generated platforms in groups of switches, the devnet, bare, and the clean twins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.findings.blueprint import Blueprint
from bench.findings.reach import reachable
from bench.findings.rules import EffectRule, Posted
from bench.findings.stand import generated
from bench.findings.switches import drawn, grouped
from fleet.devnet.defects import ALL_IDS, DEFECTS
from tests.platforms.bare import bare
from tests.platforms.full import full
from tests.platforms.stand import Stand

KINDS = ("generated", "clean", "devnet", "devnet-clean", "bare")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One defect that is there. `rule.title` is empty where titles are not judged."""

    name: str
    rule: EffectRule
    tell: str
    reachable: bool = True
    """Whether the fleet's tools can ask what shows it."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A platform to start in a folder, and the defects that it has."""

    name: str
    kind: str
    wanted: tuple[Wanted, ...]
    start: Callable[[Path], AbstractAsyncContextManager[Stand]]
    described: bool = False
    """Whether it has an OpenAPI description."""


def of_seed(seed: int, groups: int) -> Iterator[Examined]:
    """A target for each group of the seed's switches."""
    plan = Blueprint.drawn(seed)
    for number, group in enumerate(grouped(drawn(plan), groups, seed)):
        wanted = tuple(Wanted(one.klass, one.rule, one.tell, reachable(one.needs)) for one in group)
        on = frozenset(one.klass for one in group)
        yield Examined(f"seed {seed}.{number}", "generated", wanted, _seeded(seed, on), plan.openapi)


def _seeded(seed: int, on: frozenset[str]) -> Callable[[Path], AbstractAsyncContextManager[Stand]]:
    return lambda folder: generated(folder, seed, on)


def clean_of_seed(seed: int) -> Examined:
    """The twin of a seed without any switch."""
    plan = Blueprint.drawn(seed)
    return Examined(f"seed {seed} clean", "clean", (), _seeded(seed, frozenset()), plan.openapi)


def devnet(*, clean: bool = False) -> Examined:
    """The bundled platform, with all its seeded defects or none."""
    wanted = () if clean else tuple(Wanted(one.id, _seeded_rule(one.id), one.tell) for one in DEFECTS)
    defects = frozenset() if clean else ALL_IDS

    @asynccontextmanager
    async def start(folder: Path) -> AsyncIterator[Stand]:
        async with full(folder, defects=defects) as stand:
            yield stand

    return Examined(
        "devnet clean" if clean else "devnet", "devnet-clean" if clean else "devnet", wanted, start
    )


def _seeded_rule(ident: str) -> EffectRule:
    """The effect of a seeded defect, as its file states it."""
    defect = next(one for one in DEFECTS if one.id == ident)

    def shows(item: Posted) -> bool:
        return defect.shown_by([asdict(one) for one in item.calls])

    return EffectRule(shows, "")


def bare_platform() -> Examined:
    """A registry, a log and three pages, without any defect."""
    return Examined("bare", "bare", (), bare)


def chosen(kinds: list[str], seeds: list[int], groups: int) -> list[Examined]:
    """The targets of these kinds, in a fixed order."""
    found: list[Examined] = []
    for seed in seeds if "generated" in kinds else ():
        found += of_seed(seed, groups)
    found += [clean_of_seed(seed) for seed in seeds] if "clean" in kinds else []
    found += [devnet()] if "devnet" in kinds else []
    found += [devnet(clean=True)] if "devnet-clean" in kinds else []
    found += [bare_platform()] if "bare" in kinds else []
    return found
