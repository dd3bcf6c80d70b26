"""Whether the fleet's tools can ask what a switch needs: by the names of their arguments.

A tool that learns to send a header or to call any selector makes switches reachable without a line here, as
long as its argument is named after what it does.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from sandbox.tools import TOOLS

HEADER, TOKEN, SELECTOR = "header", "token", "selector"
NAMED = {
    HEADER: re.compile(r"header"),
    TOKEN: re.compile(r"token|forge|stale|signed_as|sign_as|auth"),
    SELECTOR: re.compile(r"selector|calldata|signature|simulate|abi|sender|as_|from_"),
}
GROUPS = {HEADER: ("agent", "web"), TOKEN: ("agent", "web"), SELECTOR: ("chain",)}


def arguments() -> dict[str, set[str]]:
    """Names of the arguments of every tool of a group; `claim_from` is a field of a body."""
    found: dict[str, set[str]] = {}
    for spec in TOOLS.values():
        args: Any = spec.args
        found.setdefault(spec.group, set()).update(one.name for one in fields(args))
    return {group: names - {"claim_from"} for group, names in found.items()}


def reachable(needs: str) -> bool:
    """Whether some tool has an argument for this; what needs nothing special is always reachable."""
    if not needs:
        return True
    names = {name for group in GROUPS[needs] for name in arguments().get(group, ())}
    return any(NAMED[needs].search(name) for name in names)
