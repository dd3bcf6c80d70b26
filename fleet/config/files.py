"""The paths of configuration, state and keys, and what decides them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from fleet.config.fleet import FleetConfig, ModelSection
from fleet.config.notify import SECRETS

ROOT = Path(__file__).resolve().parent.parent.parent
"""The checkout: `sandbox/`, `personas/` and `config/` sit beside `fleet/`."""


def state_dir() -> Path:
    """`$STATE_DIRECTORY` under systemd, else `./.qa-fleet`; not created here."""
    return Path(os.environ.get("STATE_DIRECTORY") or ".qa-fleet").absolute()


def demo_dir(state: Path) -> Path:
    """The state directory of the demo that was run in this one."""
    return state / "demo"


def config_dirs() -> tuple[Path, ...]:
    """Folders searched for `fleet.toml` and `platforms/`: `$CONFIGURATION_DIRECTORY`, then the checkout's."""
    own = os.environ.get("CONFIGURATION_DIRECTORY")
    return (*((Path(own).absolute(),) if own else ()), ROOT / "config")


def key_file(config: FleetConfig, role: Literal["identity", "sponsor"], state: Path) -> Path:
    """The file of a standing key: as configured, or systemd's credential while that is the default."""
    chosen = getattr(config, role)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder and chosen == FleetConfig.model_fields[role].default:
        credential = Path(folder).absolute() / role
        if credential.exists():
            return credential
    return state / str(chosen)


def model_key_file(config: FleetConfig, state: Path) -> Path | None:
    """The file of the model's key: as configured, or systemd's credential; None when it needs none."""
    if config.model is None:
        return None
    chosen, default = config.model.key_file, str(ModelSection.model_fields["key_file"].default)
    credential = Path(os.environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")).absolute() / "model"
    if chosen == default and credential.exists():
        return credential
    if chosen == default and config.model.base_url and not os.path.lexists(state / chosen):
        return None
    return state / chosen


def hook_files(config: FleetConfig, name: str, state: Path) -> tuple[Path, ...]:
    """The secret files of a webhook, the newest first; KeyError for one that is not configured."""
    hook = config.hooks[name]
    newest = _secret_file(hook.secret_file, f"hook.{name}", state)
    return (newest, *((state / hook.old_secret_file,) if hook.old_secret_file else ()))


def sink_file(config: FleetConfig, name: str, state: Path) -> Path:
    """The secret file of a sink; KeyError for one that is not configured."""
    return _secret_file(config.sinks[name].secret_file, f"sink.{name}", state)


def github_file(config: FleetConfig, name: str, state: Path) -> Path | None:
    """The file of a repository's token of GitHub; None for one that is not on GitHub, KeyError for none."""
    github = config.repositories[name].github
    return None if github is None else _secret_file(github.token_file, f"github.{name}", state)


def notify_files(config: FleetConfig, state: Path) -> dict[str, Path]:
    """The secret files of notifications, by the key of `[notify]` that names each; none need exist."""
    return {key: _secret_file(getattr(config.notify, key), word, state) for key, word in SECRETS.items()}


def _secret_file(configured: str, word: str, state: Path) -> Path:
    credential = Path(os.environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")).absolute() / word
    if not configured and credential.exists():
        return credential
    return state / (configured or f"keys/{word}")
