"""The configuration of a running process: one holder, which everything reads when it needs to know."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from fleet.config.fleet import FleetConfig

LIVE_KEYS = ("concurrency", "trusted", "never", "budget", "hooks", "keep", "notify")
"""What takes effect at once, `never` and `budget` at the next signature of runs in flight too; the rest waits
for a restart."""


class Reloaded(NamedTuple):
    """Keys that changed: in force now, and waiting for a restart."""

    changed: tuple[str, ...]
    waiting: tuple[str, ...]


class LiveConfig:
    """`live()` is the configuration as it is now; what is kept of it past one step goes stale."""

    def __init__(self, config: FleetConfig) -> None:
        self._config = config

    def __call__(self) -> FleetConfig:
        return self._config

    def never(self) -> tuple[str, ...]:
        """The operator's selectors."""
        return self._config.never

    def hooks(self) -> Collection[str]:
        """Names of the webhooks."""
        return self._config.hooks

    def reload(self, new: FleetConfig) -> Reloaded:
        """Let what may change take effect, for every reader in one step."""
        old = self._config
        changed = [key for key in FleetConfig.model_fields if getattr(old, key) != getattr(new, key)]
        live = {key: getattr(new, key) for key in changed if key in LIVE_KEYS}
        self._config = old.model_copy(update=live)
        return Reloaded(tuple(live), tuple(key for key in changed if key not in live))
