"""A platform's targets by origin, and the target of each tool call. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fleet.config import Platform
from fleet.findings.repro import ReproCall
from fleet.gate.scope import Origin, origin_of
from sandbox.errors import GATEWAY
from sandbox.spec import Points
from sandbox.tools import TOOLS

NODE = "node"
PATHS = ("/", "/llms.txt", "/skill.md")
"""Paths to request in turn: one failing path does not mean that the site is down."""
_FAILED = frozenset({"unreachable", "timeout"})


class Reach(IntEnum):
    """The distance to a host; a control proves the network only up to its own distance."""

    LOOPBACK = 0
    PRIVATE = 1
    PUBLIC = 2


def reach_of(host: str) -> Reach:
    """Distance judged from the host's spelling; a name may be anywhere."""
    if host == "localhost" or host.endswith(".localhost"):
        return Reach.LOOPBACK
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return Reach.PUBLIC
    if address.is_loopback:
        return Reach.LOOPBACK
    return Reach.PRIVATE if address.is_private else Reach.PUBLIC


def has_name(host: str) -> bool:
    """Whether this host needs name resolution."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return reach_of(host) is not Reach.LOOPBACK
    return False


@dataclass(frozen=True, slots=True)
class Target:
    """One origin of the platform. `names` are the parts it serves; `bases` its URLs as repros spell them."""

    names: tuple[str, ...]
    host: str
    origin: Origin | None = None
    bases: tuple[tuple[str, str], ...] = ()
    """(with its placeholder, resolved); empty for the node."""

    @property
    def name(self) -> str:
        """`site, proxy and faces`."""
        return words(self.names)

    def repro(self) -> tuple[ReproCall, ...]:
        """A harmless call that shows whether it answers."""
        if not self.bases:
            return (ReproCall("qa_chain", {"function": "feedbackCount"}),)
        return tuple(ReproCall("qa_fetch", {"url": template}) for template, _ in self.bases)

    def url(self, turn: int) -> str:
        """The URL to request in this turn."""
        base = self.bases[turn % len(self.bases)][1]
        return base.rstrip("/") + PATHS[(turn // len(self.bases)) % len(PATHS)]


def words(names: tuple[str, ...]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def spoken(targets: Iterable[str]) -> str:
    """Several targets' names as one phrase."""
    return words(tuple(name for target in targets for name in target.replace(" and ", ", ").split(", ")))


def targets_of(platform: Platform) -> tuple[Target, ...]:
    """Every origin of the profile, the node last. Parts missing from the profile are omitted."""
    web = platform.web
    name = platform.call_targets[0] if platform.call_targets else "qa"
    bases = (
        ("site", "{site}/", web.site and f"{web.site.rstrip('/')}/"),
        ("proxy", "{proxy}/", web.proxy and f"{web.proxy.rstrip('/')}/"),
        ("faces", f"{{face:{name}}}", web.face.replace("{name}", name)),
    )
    found: dict[Origin, Target] = {}
    for word, template, url in bases:
        origin = origin_of(url)
        if origin is not None:
            known = found.get(origin, Target((), origin[1], origin))
            found[origin] = Target((*known.names, word), known.host, origin, (*known.bases, (template, url)))
    rpc = urlsplit(platform.chain.rpc)
    return (*found.values(), Target((NODE,), rpc.hostname or ""))


@dataclass(slots=True)
class Contacts:
    """The targets that a run's calls could not reach, and those known to be down."""

    targets: tuple[Target, ...]
    failed: Counter[str] = field(default_factory=Counter)
    down: dict[str, str] = field(default_factory=dict)
    """The outage's title by target name."""
    locked_out: str = ""
    """How the platform locked this run out, if it did: its silence to us is not an outage."""

    def of(self, tool: str, args: Mapping[str, Any]) -> str:
        """The name of a call's target, "" if none."""
        if (spec := TOOLS.get(tool)) is None:
            return ""
        if page := spec.argument(Points.PAGE):
            if (origin := origin_of(args.get(page))) is None:
                return ""
            exact = next((one for one in self.targets if one.origin == origin), None)
            return exact.name if exact else self._face(origin)
        return next((one.name for one in self.targets if spec.reaches in one.names), "")

    def _face(self, origin: Origin) -> str:
        """Another name's face: same scheme, port and host except for the first label."""
        for one in self.targets:
            if "faces" not in one.names or one.origin is None:
                continue
            like = (one.origin[0], one.host.partition(".")[2], one.origin[2])
            if like == (origin[0], origin[1].partition(".")[2], origin[2]) and like[1]:
                return one.name
        return ""

    def count(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Record the end of a call if it says something about its target."""
        if result.get("locked_out"):
            self.locked_out = str(result.get("error", ""))
        lost = result.get("error_class") in _FAILED or result.get("status") in GATEWAY
        if lost and (target := self.of(tool, args)):
            self.failed[target] += 1

    def why_not(self, tool: str, args: Mapping[str, Any]) -> str:
        """The outage that affects a call, "" if none."""
        return self.down.get(self.of(tool, args), "") if self.down else ""
