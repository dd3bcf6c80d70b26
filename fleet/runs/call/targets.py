"""The targets of a platform: its origins, what each tool call asks, which are withdrawn for a while, and what
the platform offers at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fleet.clock import Clock
from fleet.config import Platform, WebSection
from fleet.drivers.session import cause_of
from fleet.findings.repro import ReproCall
from fleet.gate.scope import Origin, origin_of
from fleet.jail.locate import BROWSER
from fleet.retry import WITHDRAWN_TARGET
from fleet.runs.context import PATIENCE_S
from sandbox.browser.devtools import installed
from sandbox.chain.contract import VIEWS, WRITES
from sandbox.errors import GATEWAY
from sandbox.spec import Points, ToolSpec
from sandbox.tools import TOOLS

NODE = "node"
PATHS = ("/", "/llms.txt", "/skill.md")
"""Paths to request in turn: one failing path does not mean that the site is down."""
_FAILED = frozenset({"unreachable", "timeout"})
CORE = "core"
"""Never withdrawn: the report, and the desk's own tools, which are not in the table."""
STRIKES = 3
FAILURES = frozenset({"internal", "unreachable", "timeout", "disk_full", "cannot_start"})
"""error_class values of a broken tool or target. A refusal, a bad argument, an error of the platform and an
empty answer count as answers."""
_SELECTORS = {name: one.selector for table in (VIEWS, WRITES) for name, one in table.items()}


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
    """Every origin of the profile, then the node. Parts missing from the profile are omitted."""
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
    node = (Target((NODE,), urlsplit(platform.chain.rpc).hostname or ""),) if platform.chain.rpc else ()
    return (*found.values(), *node)


@dataclass(slots=True)
class Contacts:
    """The targets that a run's calls could not reach, and those known to be down."""

    targets: tuple[Target, ...]
    agents: Mapping[str, str] = field(default_factory=dict)
    """Where agents are called that are not called through the proxy, by name."""
    failed: Counter[str] = field(default_factory=Counter)
    down: dict[str, str] = field(default_factory=dict)
    """The outage's title by target name."""
    locked_out: str = ""
    """How the platform locked this run out, if it did: its silence to us is not an outage."""

    def of(self, tool: str, args: Mapping[str, Any]) -> str:
        """The name of a call's target, "" if none."""
        if (spec := TOOLS.get(tool)) is None:
            return ""
        elsewhere = self.agents.get(str(args.get(spec.argument(Points.AGENT))), "")
        if not (page := spec.page) and not elsewhere:
            return next((one.name for one in self.targets if spec.reaches in one.names), "")
        if (origin := origin_of(elsewhere or args.get(page))) is None:
            return ""
        if exact := next((one for one in self.targets if one.origin == origin), None):
            return exact.name
        for one in self.targets:  # another name's face: the same but for the first label of its host
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


def granted(tools: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The groups of a grant, for a header."""
    found: dict[str, list[str]] = {}
    for tool in sorted(set(tools) & TOOLS.keys()):
        found.setdefault(group_of(tool), []).append(tool)
    return {group: tuple(names) for group, names in sorted(found.items())}


def group_of(tool: str) -> str:
    """The group of a tool, or its name if it has no group; core for a tool that is not in the table."""
    spec = TOOLS.get(tool)
    return (spec.group or tool) if spec else CORE


def target_of(tool: str, args: Mapping[str, Any]) -> str:
    """The target of a call: a page's host, a program, else the subject of its group."""
    group, spec = group_of(tool), TOOLS.get(tool)
    if spec and (page := spec.page):
        return f"{group} {urlsplit(str(args.get(page, ''))).netloc}"
    mode = spec.mode(args) if spec else None
    return f"{group} {mode.label}" if mode else group


def path_of(tool: str, args: Mapping[str, Any]) -> str:
    """The path of a call to a page, as a target of its own; "" for any other call."""
    spec = TOOLS.get(tool)
    page = spec.page if spec else ""
    return f"{target_of(tool, args)}{urlsplit(str(args.get(page, ''))).path or '/'}" if page else ""


def first_page(tool: str, args: Mapping[str, Any]) -> str:
    """URL of the first page of the host that a call to a page asks; "" for any other call."""
    spec = TOOLS.get(tool)
    page = spec.page if spec else ""
    parts = urlsplit(str(args.get(page, ""))) if page else None
    return f"{parts.scheme}://{parts.netloc}/" if parts and parts.scheme and parts.netloc else ""


@dataclass(slots=True)
class _Row:
    """Consecutive failures of one cause at one target: number, first and last time."""

    count: int
    first: float
    last: float


class CircuitBreaker:
    """Counts consecutive failures per target and cause in one run; an answer resets its target.

    A path of a host is a target of its own: one that fails repeatedly is withdrawn, and the host stays. After
    as many failures of a host in a row it is suspected, and withdrawn only when its control, the host's first
    page, fails as well. A withdrawn target gets another call at times (WITHDRAWN_TARGET), so a target that
    recovers is used again. Proofs bypass the count, so a candidate need not wait for another target.
    """

    def __init__(self, clock: Clock, patience_s: float = PATIENCE_S) -> None:
        self._clock, self._patience_s = clock, patience_s
        self._rows: dict[str, dict[str, _Row]] = {}
        self._withdrawn: set[str] = set()
        self._suspects: set[str] = set()
        self._trials: set[str] = set()

    @property
    def withdrawn(self) -> tuple[str, ...]:
        return tuple(sorted(self._withdrawn))

    def has_withdrawn(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether the target of this call is withdrawn."""
        return self._closed(tool, args) != ""

    def withdraw(self, targets: Collection[str]) -> None:
        """Withdraw again the targets that the run had withdrawn before its interruption."""
        self._withdrawn |= set(targets)

    def offers(self, tool: str) -> bool:
        """Whether a tool is on offer: false while all its targets are withdrawn."""
        spec = TOOLS.get(tool)
        labels = [f"{group_of(tool)} {mode.label}" for mode in spec.modes] if spec else []
        return not set(labels or [target_of(tool, {})]) <= self._withdrawn

    def permits(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether this call may be made now."""
        target = self._closed(tool, args)
        if not target or target in self._trials:
            self._trials.discard(target)
            return True
        rows = self._rows.get(target, {}).values()
        last = max((row.last for row in rows), default=0.0)
        failures = max((row.count for row in rows), default=STRIKES)
        return self._clock.monotonic() - last >= WITHDRAWN_TARGET.pause(failures - STRIKES)

    def waits(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether it is too early to withdraw this call's target, so that one more call is permitted."""
        target, now = self._closed(tool, args) or target_of(tool, args), self._clock.monotonic()
        first = min((row.first for row in self._rows.get(target, {}).values()), default=now)
        if now - first < self._patience_s:
            self._trials.add(target)
            return True
        return False

    def gave_up(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether the host of this call is withdrawn, and has failed for longer than one is patient."""
        target, now = target_of(tool, args), self._clock.monotonic()
        first = min((row.first for row in self._rows.get(target, {}).values()), default=now)
        return target in self._withdrawn and now - first >= self._patience_s

    def count(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        """Count one answer; return the target that this withdraws, else ""."""
        target, path, cause = target_of(tool, args), path_of(tool, args), cause_of(result)
        if cause not in FAILURES:
            for one in filter(None, (target, path)):
                self._forget(one)
            return ""
        failures = self._failed(target, cause)
        if not path:
            return self._withdraw(target) if target != CORE and failures >= STRIKES else ""
        if failures >= STRIKES and target not in self._withdrawn:
            self._suspects.add(target)
        if self._failed(path, cause) < STRIKES or target in self._suspects | self._withdrawn:
            return ""
        return self._withdraw(path)

    def is_suspect(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether the control of this call's host is to be asked: see `control`."""
        return target_of(tool, args) in self._suspects

    def control(self, tool: str, args: Mapping[str, Any], *, answers: bool) -> str:
        """What the control of a suspected host says; return the target that this withdraws, else ""."""
        target, path = target_of(tool, args), path_of(tool, args)
        self._suspects.discard(target)
        if not answers:
            return self._withdraw(target)
        self._forget(target)
        failures = max((row.count for row in self._rows.get(path, {}).values()), default=0)
        return self._withdraw(path) if failures >= STRIKES else ""

    def _closed(self, tool: str, args: Mapping[str, Any]) -> str:
        """The withdrawn target that this call asks, "" when none is."""
        either = (target_of(tool, args), path_of(tool, args))
        return next((one for one in either if one and one in self._withdrawn), "")

    def _failed(self, target: str, cause: str) -> int:
        now = self._clock.monotonic()
        row = self._rows.setdefault(target, {}).setdefault(cause, _Row(0, now, now))
        row.count, row.last = row.count + 1, now
        return row.count

    def _forget(self, target: str) -> None:
        self._rows.pop(target, None)
        self._withdrawn.discard(target)
        self._suspects.discard(target)

    def _withdraw(self, target: str) -> str:
        if target in self._withdrawn:
            return ""
        self._withdrawn.add(target)
        return target


def _uncalled(web: WebSection) -> str:
    """Why no agent can be called here."""
    unstated = web.unstated if web.proxy else ("web.proxy", *web.unstated)
    return f"the profile states neither [agents] nor {', '.join(unstated)}"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`selectors` (`0x` and 8 digits) are what the diamond offers; None when it cannot say: then each call
    is tried."""

    platform: Platform
    selectors: frozenset[str] | None = None
    browser: str = field(default_factory=installed)
    """The browser of this machine, "" for none."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """Functions of the table that the diamond is known not to offer."""
        return tuple(name for name in _SELECTORS if not self.offers(name))

    def offers(self, name: str) -> bool:
        """Whether a function of the table may be called."""
        if not self.platform.chain.diamond:
            return False
        return self.selectors is None or _SELECTORS.get(name, "") in self.selectors

    def unusable(self, spec: ToolSpec) -> str:
        """Why no call of this tool can be made here; "" when one can."""
        web = self.platform.web
        if spec.page and not (web.site or web.face or web.proxy or web.hosts):
            return "the profile names no site, no faces and no proxy"
        ways = [self.missing((*spec.needs, *mode.needs)) for mode in spec.modes]
        return "; ".join(dict.fromkeys(ways)) if all(ways) and ways else self.missing(spec.needs)

    def missing(self, needs: Iterable[str]) -> str:
        """Why a probe with these needs is not applicable here; "" when all are met."""
        chain = self.platform.chain
        no_diamond = "the profile names no diamond" if chain.rpc else "the profile names no chain"
        without = "" if chain.diamond else no_diamond
        lacking = []
        for need in needs:
            kind, _, name = need.partition(":")
            profile, compiler, web = self.platform, self.platform.compiler, self.platform.web
            parts = {
                "site": (web.site, "the profile names no site"),
                "faces": (web.face, "the profile names no faces"),
                "proxy": (web.proxy, "the profile names no proxy"),
                "calls": (profile.calls_agents, _uncalled(web)),
                "listener": (web.listens, "this platform reaches no listener of the fleet: web.listener"),
                "metadata": (name in profile.metadata.names, f"the profile names no metadata key {name!r}"),
                "browser": (self.browser, f"no browser is installed here: {BROWSER}"),
                "code": (getattr(compiler, f"{name}_code", ""), f"the profile states no {name}_code"),
                "compiler": (compiler.command, "the profile names no compiler"),
                "compiler.loader": (compiler.loader, "the profile names no loader"),
                "target": (name in profile.targets, f"the profile has no target for {name!r}"),
                "fact": (profile.facts.get(name, False) is not False, f"the profile does not state {name!r}"),
                "language": (
                    name == compiler.language,
                    f"the compiler's language is not stated to be {name!r}",
                ),
                "mcp": (profile.mcp.endpoints, "the profile names no MCP endpoint"),
                "payments": (profile.payments.resources, "the profile names nothing that is paid for"),
                "registry": (profile.erc8004, "the profile names no agent in an ERC-8004 registry"),
                "node": (chain.rpc, "the profile names no chain"),
                "diamond": (chain.diamond, without),
                "view": (self.offers(name), without or f"the diamond does not offer {name}"),
                "call": (self.offers(name), without or f"the diamond does not offer {name}"),
            }
            met, why = parts[kind]
            lacking += [] if met else [why]
        return "; ".join(dict.fromkeys(lacking))
