"""Reloads the configuration from its files, on SIGHUP."""

from __future__ import annotations

from pathlib import Path

from fleet.config import FleetConfig, load_fleet, load_platform
from fleet.triggers.webhook_secret import hook_secrets


def reread(platform: str | None, state: Path) -> FleetConfig:
    """Reload the configuration; ConfigError also for an unreadable profile or secret."""
    config = load_fleet()
    load_platform(platform or config.platform, state)
    open_secrets(config, state)
    return config


def open_secrets(config: FleetConfig, state: Path) -> None:
    """Check the secrets of all webhooks; ConfigError for an unusable one."""
    for name in config.hooks:
        hook_secrets(config, name, state)
