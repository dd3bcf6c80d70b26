"""The explicit table of explorers: adding one is one file and one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from fleet.drivers.explore.port import MakeExplorer

MODULES: Mapping[str, str] = {
    "web": "web.explorer",
    "agent": "agent.explorer",
    "mcp": "agent.mcp",
    "payments": "agent.payments",
    "registry": "agent.registry",
    "chain": "chain.explorer",
    "pages": "web.browser",
    "timing": "timing",
    "programs": "program.explorer",
    "api": "documents.api",
    "sessions": "account.sessions",
}

"""By the name that a persona uses: a module of this package, with its `make` and the `TOOLS` it needs."""
NAMES = tuple(MODULES)


def chosen(names: Iterable[str], granted: frozenset[str]) -> Mapping[str, MakeExplorer]:
    """The explorers of these names whose tools are all granted."""
    wanted = set(names)
    modules = {
        name: import_module(f"fleet.drivers.explore.{MODULES[name]}") for name in NAMES if name in wanted
    }
    return {name: one.make for name, one in modules.items() if set(one.TOOLS) <= granted}
