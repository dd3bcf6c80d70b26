"""Groups of tools and their targets: a target that fails repeatedly is withdrawn for a while."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fleet.backoff import Backoff
from fleet.clock import Clock
from fleet.drivers.session import cause_of
from fleet.runs.context import PATIENCE_S
from sandbox.spec import Points
from sandbox.tools import TOOLS

CORE = "core"
"""Never withdrawn: the report, and the desk's own tools, which are not in the table."""
STRIKES = 3
RETRY_S = 5.0
"""Delay before another call to a withdrawn target, doubled each time."""
AGAIN = Backoff(RETRY_S, RETRY_S * 1_024)
FAILURES = frozenset({"internal", "unreachable", "timeout", "disk_full", "cannot_start"})
"""error_class values of a broken tool or target. A refusal, a bad argument, an error of the platform and an
empty answer count as answers."""


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
    if spec and (page := spec.argument(Points.PAGE)):
        return f"{group} {urlsplit(str(args.get(page, ''))).netloc}"
    mode = spec.mode(args) if spec else None
    return f"{group} {mode.label}" if mode else group


def path_of(tool: str, args: Mapping[str, Any]) -> str:
    """The path of a call to a page, as a target of its own; "" for any other call."""
    spec = TOOLS.get(tool)
    page = spec.argument(Points.PAGE) if spec else ""
    return f"{target_of(tool, args)}{urlsplit(str(args.get(page, ''))).path or '/'}" if page else ""


def first_page(tool: str, args: Mapping[str, Any]) -> str:
    """URL of the first page of the host that a call to a page asks; "" for any other call."""
    spec = TOOLS.get(tool)
    page = spec.argument(Points.PAGE) if spec else ""
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
    page, fails as well. A withdrawn target gets another call every RETRY_S, so a target that recovers is used
    again. Proofs bypass the count, so a candidate need not wait for another target.
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
        return self._clock.monotonic() - last >= AGAIN.pause(failures - STRIKES)

    def waits(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether it is too early to withdraw this call's target, so that one more call is permitted."""
        target, now = self._closed(tool, args) or target_of(tool, args), self._clock.monotonic()
        first = min((row.first for row in self._rows.get(target, {}).values()), default=now)
        if now - first < self._patience_s:
            self._trials.add(target)
            return True
        return False

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
