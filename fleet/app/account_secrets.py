"""The secrets of the accounts that a profile names, from the environment or private files."""

from __future__ import annotations

import os
from pathlib import Path

from fleet.config import Platform
from fleet.drivers.model.factory import read_key
from fleet.errors import ConfigError

LEAST = 8
"""Characters of a secret: a shorter one cannot be masked in records."""


def account_secrets(profile: Platform, state: Path) -> dict[str, dict[str, str]]:
    """User and secret by label, {} where the profile names no accounts; ConfigError names the key."""
    found: dict[str, dict[str, str]] = {}
    for label, one in (profile.accounts.keys if profile.accounts else {}).items():
        if one.secret_file:
            secret = read_key(state / one.secret_file)
        else:
            secret = os.environ.get(one.secret_env, "")
            if len(secret) < LEAST or not secret.isascii() or not secret.isprintable():
                raise ConfigError(
                    f"platform {profile.name}: accounts.{label}.secret_env: {one.secret_env} is not set to at"
                    f" least {LEAST} printable characters",
                    remedy=f"set {one.secret_env} in the fleet's environment, or name a file in secret_file",
                )
        found[label] = {"user": one.user, "secret": secret}
    return found
