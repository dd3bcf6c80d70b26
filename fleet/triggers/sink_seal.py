"""Signs posts to a sink with that sink's secret, as the sender of a webhook does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from fleet.clock import Clock
from fleet.config import FleetConfig
from fleet.triggers.webhook import headers
from fleet.triggers.webhook_secret import sink_secret


class SinkSeal:
    """Signs a body for one of the sinks; the constructor raises ConfigError for an invalid secret."""

    def __init__(self, config: FleetConfig, sinks: Iterable[str], state: Path, clock: Clock) -> None:
        self._config, self._state, self._clock = config, state, clock
        for name in sinks:
            sink_secret(config, name, state)

    def __call__(self, name: str, body: bytes) -> dict[str, str]:
        """The headers of one delivery."""
        now = int(self._clock.now().timestamp())
        return headers(sink_secret(self._config, name, self._state), token_hex(16), now, body)
