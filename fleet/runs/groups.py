"""Groups of tools: what fails again and again is withdrawn for the rest of the run, and the run goes on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from fleet.drivers.desk import FINISH, REPORT_FINDING, RUN_PROBE

CORE = "core"
"""Never withdrawn: the report, and the desk's own tools."""
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "qa_compile": "compiler",
        "qa_create": "chain",
        "qa_publish": "chain",
        "qa_chain": "chain",
        "qa_fetch": "web",
        "qa_call": "agent",
        "qa_report": CORE,
        RUN_PROBE: CORE,
        REPORT_FINDING: CORE,
        FINISH: CORE,
    }
)
STRIKES = 3
FAILURES = frozenset({"internal", "unreachable", "disk_full"})
"""error_class words of a tool that is broken itself. A refusal, a mistake in the arguments, an error of the
platform and an empty answer are answers."""


def granted(tools: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The groups of a grant, for a header."""
    found: dict[str, list[str]] = {}
    for tool in sorted(set(tools) & GROUPS.keys()):
        found.setdefault(GROUPS[tool], []).append(tool)
    return {group: tuple(names) for group, names in sorted(found.items())}


class Strikes:
    """Counts the failures in a row of each group of one run."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}
        self._withdrawn: set[str] = set()

    @property
    def withdrawn(self) -> tuple[str, ...]:
        return tuple(sorted(self._withdrawn))

    def withdraw(self, groups: Collection[str]) -> None:
        """Groups that the run had withdrawn before it was interrupted."""
        self._withdrawn |= set(groups)

    def offers(self, tool: str) -> bool:
        """Whether a tool may still be asked for."""
        return GROUPS.get(tool, CORE) not in self._withdrawn

    def count(self, tool: str, result: Mapping[str, Any]) -> str:
        """One answer; the name of the group that this answer withdraws, once, else ""."""
        group = GROUPS.get(tool, CORE)
        failed = result.get("error_class", "") in FAILURES
        self._failed[group] = self._failed.get(group, 0) + 1 if failed else 0
        if group == CORE or self._failed[group] < STRIKES or group in self._withdrawn:
            return ""
        self._withdrawn.add(group)
        return group
