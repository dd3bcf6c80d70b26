"""Preconditions of a probe: those that its steps imply, and its own `needs`.

    site  faces  proxy  listener  diamond  compiler  compiler.loader     parts of the profile
    browser                                           a browser on this machine
    mcp                                               an endpoint of an MCP server
    payments                                          something that is paid for
    registry                                          an agent in an ERC-8004 registry
    calls                                             what a call token and a call's path are made of
    language:NAME                                     what the compiler compiles
    metadata:ROLE                                     the profile names this metadata key
    code:NAME                                         the profile states this code of the compiler
    target:ROLE                                       the profile names a target for this role
    fact:NAME                                         the profile promises this
    view:NAME  call:NAME                              the diamond offers this function

An unmet need makes a probe *not applicable*: no call, no finding, no retry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleet.personas.model import Probe
from fleet.personas.placeholders import TARGET
from sandbox.chain.contract import VIEWS, WRITES
from sandbox.spec import Points
from sandbox.tools import TOOLS

PARTS = (
    "site",
    "faces",
    "proxy",
    "listener",
    "diamond",
    "browser",
    "calls",
    "mcp",
    "payments",
    "registry",
    "compiler",
    "compiler.loader",
)
KINDS = ("language", "metadata", "code", "target", "fact", "view", "call")
CODES = ("no_entry", "too_large")
FORM = f"{', '.join(PARTS)}, {', '.join(f'{kind}:NAME' for kind in KINDS)}"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,47}")
_FACT = re.compile(r"\bfacts\.([a-z][a-z0-9_]{0,47})")


def bad_need(need: str) -> str:
    """Why this is not a valid need, or ""."""
    kind, colon, name = need.partition(":")
    if not colon:
        return "" if need in PARTS else f"{need!r} is not a need"
    if kind not in KINDS or not _NAME.fullmatch(name):
        return f"{need!r} is not a need"
    if kind == "code" and name not in CODES:
        return f"{need!r}: the words are {', '.join(CODES)}"
    if (kind == "view" and name not in VIEWS) or (kind == "call" and name not in WRITES):
        return f"{need!r}: the table of the contract has no such {kind}"
    return ""


def needs_of(probe: Probe) -> tuple[str, ...]:
    """All needs of a probe without duplicates: those of its steps, then its own."""
    found = [need for step in probe.steps for need in step_needs(step.tool, step.args)]
    said = (probe.expect, probe.control, *probe.note.values())
    found += [f"fact:{name}" for text in said for name in _FACT.findall(text)]
    return tuple(dict.fromkeys([*found, *probe.needs]))


def step_needs(tool: str, args: Mapping[str, Any]) -> Iterator[str]:
    """Needs of one call, from its tool and the placeholders in its arguments."""
    for text in strings(args):
        yield from (part for part in ("site", "proxy", "listener") if "{" + part + "}" in text)
        if "{face:" in text:
            yield "faces"
        yield from (f"target:{role}" for role in TARGET.findall(text))
    if (spec := TOOLS.get(tool)) is None:
        return
    view = args.get(spec.argument(Points.VIEW_OR_NONE))
    if isinstance(view, str) and view in VIEWS:
        yield f"view:{view}"
        values = args.get("args", ())
        for kind, value in zip(
            VIEWS[view].takes, values if isinstance(values, list | tuple) else (), strict=False
        ):
            if kind == "bytes32" and isinstance(value, str) and not value.startswith("0x"):
                yield f"metadata:{value}"  # named, not spelled out
    if "{name}" in str(args.get(spec.argument(Points.AGENT))):
        yield "proxy"  # a name of the run is called there alone
    if mode := spec.mode(args):
        yield from mode.needs
    yield from spec.needs


def strings(value: object) -> Iterator[str]:
    """Every string in a structure, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
