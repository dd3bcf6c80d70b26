"""What SIGHUP asks for: the configuration as the files say it now."""

from __future__ import annotations

from pathlib import Path

from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.triggers.hook_secret import hook_secrets


def reread(platform: str | None, state: Path) -> FleetConfig:
    """Read anew; ConfigError also for a profile or a secret that cannot be read."""
    config = load_fleet()
    load_platform(platform or config.platform, state)
    open_secrets(config, state)
    return config


def open_secrets(config: FleetConfig, state: Path) -> None:
    """ConfigError for a webhook that could never answer."""
    for name in config.hooks:
        hook_secrets(config, name, state)
