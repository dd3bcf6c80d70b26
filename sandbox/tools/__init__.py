"""The explicit table of tools: adding one is one file and one line.

A jail and a command import only the tools that they ask for: the imports of the others would take a third of
their start-up time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from sandbox.spec import ToolSpec

NAMES = (
    "qa_create",
    "qa_compile",
    "qa_fuzz",
    "qa_publish",
    "qa_call",
    "qa_mcp",
    "qa_pay",
    "qa_fetch",
    "qa_account",
    "qa_browse",
    "qa_chain",
    "qa_registry",
    "qa_report",
)
"""Modules of this package, each with a `SPEC`."""


class ToolTable(Mapping[str, ToolSpec]):
    """Every tool by name; the module of one is imported when it is first asked for."""

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}

    def __getitem__(self, name: str) -> ToolSpec:
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._specs:
            self._specs[name] = import_module(f"{__name__}.{name}").SPEC
        return self._specs[name]

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


TOOLS = ToolTable()
