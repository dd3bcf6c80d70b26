"""The explicit table of tools: adding one is one file and one line.

The trusted side reads the whole table, `TOOLS`; a jail imports only the tool it is asked for, because what
it would import for the six others is a third of its start.
"""

from __future__ import annotations

from importlib import import_module

from sandbox.spec import ToolSpec

NAMES = ("qa_create", "qa_compile", "qa_publish", "qa_call", "qa_fetch", "qa_chain", "qa_report")
"""Each is a module of this package, with its `SPEC`."""

TOOLS: dict[str, ToolSpec]
"""Every tool by its name; made when it is first asked for."""


def tool(name: object) -> ToolSpec | None:
    """The tool of this name; None when there is none."""
    if name not in NAMES:
        return None
    spec: ToolSpec = import_module(f"{__name__}.{name}").SPEC
    return spec


def __getattr__(name: str) -> object:
    if name != "TOOLS":
        raise AttributeError(name)
    found = globals()["TOOLS"] = {spec.name: spec for spec in map(tool, NAMES) if spec}
    return found
