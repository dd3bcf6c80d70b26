"""The configuration from its files, at the start and on SIGHUP."""

from __future__ import annotations

from pathlib import Path

from fleet.chain.node.rpc import Rpc
from fleet.config import FleetConfig, Platform, load_fleet, load_platform
from fleet.runs.signed_scope import require_signed
from fleet.triggers.hooks.secret import hook_secrets


async def load_config(platform: str | None, state: Path, known: Platform) -> tuple[FleetConfig, Platform]:
    """The configuration and the profile as they are on disk.

    ConfigError also for an unreadable profile or secret; Unreachable and WrongTarget for a profile that
    differs from the `known` one and whose chain does not answer or is another.
    """
    config = load_fleet()
    profile, path = load_platform(platform or config.platform, state)
    require_signed(config, profile, path, state=state)
    check_secrets(config, state)
    if profile != known:
        async with Rpc(profile.chain.rpc) as rpc:
            await rpc.check_target(profile)
    return config, profile


def check_secrets(config: FleetConfig, state: Path) -> None:
    """Check the secrets of all webhooks; ConfigError for an unusable one."""
    for name in config.hooks:
        hook_secrets(config, name, state)
