"""The explicit table of explorers: adding one is one file and one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from fleet.drivers.explore.port import MakeExplorer

NAMES: tuple[str, ...] = ("web", "agent", "chain", "pages", "timing", "programs", "api", "sessions")
"""Modules of this package, each with its `make` and the `TOOLS` that it needs."""


def chosen(names: Iterable[str], granted: frozenset[str]) -> Mapping[str, MakeExplorer]:
    """The explorers of these names whose tools are all granted."""
    wanted = set(names)
    modules = {name: import_module(f"fleet.drivers.explore.{name}") for name in NAMES if name in wanted}
    return {name: one.make for name, one in modules.items() if set(one.TOOLS) <= granted}
