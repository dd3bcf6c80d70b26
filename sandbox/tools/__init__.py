"""The explicit table of tools: adding one is one file and one line.

The trusted side reads the whole table, `TOOLS`; a jail imports only the requested tool, because the imports
of the others would take a third of its start-up time.
"""

from __future__ import annotations

from importlib import import_module

from sandbox.spec import ToolSpec

NAMES = (
    "qa_create",
    "qa_compile",
    "qa_fuzz",
    "qa_publish",
    "qa_call",
    "qa_mcp",
    "qa_fetch",
    "qa_account",
    "qa_browse",
    "qa_chain",
    "qa_report",
)
"""Modules of this package, each with a `SPEC`."""

TOOLS: dict[str, ToolSpec]
"""Every tool by name; built on first access."""


def tool(name: object) -> ToolSpec | None:
    """The tool of this name, or None."""
    if name not in NAMES:
        return None
    spec: ToolSpec = import_module(f"{__name__}.{name}").SPEC
    return spec


def __getattr__(name: str) -> object:
    if name != "TOOLS":
        raise AttributeError(name)
    found = globals()["TOOLS"] = {spec.name: spec for spec in map(tool, NAMES) if spec}
    return found
