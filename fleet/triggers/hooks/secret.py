"""Secrets of webhooks and sinks: private files under the rules of key files, read for each delivery.

So writing the file changes the secret, and a file that others may read is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex

from fleet.chain.keys import read_private
from fleet.clock import Clock
from fleet.config import FleetConfig, hook_files, sink_file
from fleet.errors import ConfigError
from fleet.triggers.hooks.webhook import headers

SHORTEST = 16
"""Minimum bytes of a secret; its hex form has 32 characters."""


def hook_secrets(config: FleetConfig, name: str, state: Path) -> tuple[bytes, ...]:
    """The valid secrets of a webhook, newest first; ConfigError names what to fix."""
    return tuple(private_secret(path) for path in hook_files(config, name, state))


def sink_secret(config: FleetConfig, name: str, state: Path) -> bytes:
    """The secret that signs posts to a sink; ConfigError names key, file and what to do."""
    path = sink_file(config, name, state)
    try:
        return private_secret(path)
    except ConfigError as error:
        remedy = error.remedy if path.exists() else f"fleet service hook new {name} --sink"
        raise ConfigError(f"sinks.{name}.secret_file: {error}", remedy=remedy) from None


def private_secret(path: Path) -> bytes:
    """The secret in a private file; ConfigError names file and what to do."""
    secret = read_private(path).strip(b"\r\n")
    if len(secret) < SHORTEST:
        remedy = f"openssl rand -hex 32 > {path}"
        raise ConfigError(
            f"{path}: a secret of a webhook or sink has at least {SHORTEST} bytes", remedy=remedy
        )
    return secret


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
