"""Calls that change something are made once: a repeat gets the first answer, a third ends the run."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from fleet.drivers.session import RunOver
from sandbox.spec import Effect
from sandbox.tools import TOOLS

WINDOW = 12
"""Number of recent acts that are remembered."""
MOST = 3
"""Requests for the same act within the window that end the run."""


class RepeatGuard:
    """What one run's driver has done, by tool and resolved arguments."""

    def __init__(self) -> None:
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._recent: deque[str] = deque(maxlen=WINDOW)

    def before(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The first answer to an act made before, else None; RunOver when the driver insists."""
        if not _is_act(tool):
            return None
        key = _key(tool, args)
        if key not in self._answers:
            return None
        self._recent.append(key)
        if self._recent.count(key) >= MOST:
            raise RunOver("agent_stuck", f"repeated_call: {tool} with the same arguments {MOST} times")
        return self._answers[key]

    def after(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Remember the answer of an act."""
        if _is_act(tool):
            key = _key(tool, args)
            self._recent.append(key)
            self._answers[key] = result


def _is_act(tool: str) -> bool:
    spec = TOOLS.get(tool)
    return spec is not None and spec.effect in (Effect.ACT, Effect.REPORT)


def _key(tool: str, args: Mapping[str, Any]) -> str:
    return f"{tool} {json.dumps(dict(args), sort_keys=True, default=str)}"
