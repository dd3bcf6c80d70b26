"""From a file and the environment to a configuration; every error names file, key and remedy."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from fleet.config.files import config_dirs, own_config
from fleet.config.fleet import FleetConfig
from fleet.config.platform import Platform
from fleet.config.section import Section
from fleet.errors import ConfigError, UsageError
from fleet.files import UnfitFile, read_bounded

Model = TypeVar("Model", bound=Section)
ENVIRONMENT = "QA_FLEET_"
"""Prefix of the variables that override `fleet.toml`; a variable with it that names no key is an error."""


def parse(model: type[Model], text: str, *, file: str) -> Model:
    """Parse one TOML text into one model; ConfigError names file, key and valid values."""
    return _validate(model, _toml(text, file), file=file)


@lru_cache(maxsize=32)  # a page reads the same files several times; nobody changes what is returned
def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML: {error}", remedy="fix the syntax at that line") from None
    except ValueError:  # of int(), for thousands of digits
        raise ConfigError(f"{file}: a number is too long", remedy="write a shorter number") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply", remedy="flatten it") from None


def _validate(
    model: type[Model], data: dict[str, Any], *, file: str, from_environment: Mapping[str, Any] = {}
) -> Model:
    try:
        return model.model_validate(data | dict(from_environment))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        overridden = first["loc"] and str(first["loc"][0]) in from_environment
        where = f"environment: {ENVIRONMENT}{str(first['loc'][0]).upper()}" if overridden else file
        message = ": ".join(filter(None, (where, key, first["msg"])))
        if first["type"] == "extra_forbidden":
            valid = ", ".join(valid_keys(model, first["loc"]))
            message = f"{where}: {key}: unknown key; valid keys here: {valid}"
        raise ConfigError(message, remedy=f"correct it in {where}") from None


def overrides(environ: Mapping[str, str]) -> dict[str, Any]:
    """The keys of `fleet.toml` that the environment sets, unvalidated.

    A string is taken literally; every other value is written as in the file (`[…]`, `{…}`, a number).
    Raises ConfigError for an unknown variable, naming the valid ones, and for a value that is not TOML.
    """
    known = {ENVIRONMENT + key.upper(): key for key in FleetConfig.model_fields}
    found: dict[str, Any] = {}
    for name in sorted(name for name in environ if name.startswith(ENVIRONMENT)):
        if name not in known:
            raise ConfigError(
                f"environment: {name}: unknown variable; valid ones: {', '.join(sorted(known))}"
            )
        plain = FleetConfig.model_fields[known[name]].annotation is str
        data = (
            {"value": environ[name]} if plain else _toml(f"value = {environ[name]}", f"environment: {name}")
        )
        if set(data) != {"value"}:
            raise ConfigError(f"environment: {name}: more than one value")
        found[known[name]] = data["value"]
    return found


def valid_keys(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the table that `loc` points into."""
    here: type[BaseModel] = model
    for part in loc[:-1]:
        field = here.model_fields.get(str(part))
        inner = getattr(field, "annotation", None)
        below = (one for one in (inner, *get_args(inner)) if isinstance(one, type))  # or a table of tables
        here = next((one for one in below if issubclass(one, BaseModel)), here)
    return sorted(here.model_fields)


def read_text(path: Path, *, limit: int = 65_536) -> str:
    """Read one of our small text files; ConfigError when it is missing, too large or not UTF-8."""
    try:
        raw = read_bounded(path, limit, follow=True, mark="drop")
    except UnfitFile as unfit:
        remedies = {"size": "this file should be small", "mark": "save it as UTF-8"}
        remedy = remedies.get(unfit.rule, f"create or fix {path}")
        raise ConfigError(f"{path}: {unfit.strerror}", remedy=remedy) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy=f"create or fix {path}") from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8", remedy="save it as UTF-8") from None


def load_fleet(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> FleetConfig:
    """Defaults, then the fleet file, then the environment; commands apply their own flags.

    Reads the named file, else the first `fleet.toml` of `config_dirs`, else uses the defaults.
    """
    places = (path,) if path else tuple(folder / "fleet.toml" for folder in config_dirs())
    chosen = next((place for place in places if place.exists()), path)
    data = _toml(read_text(chosen), str(chosen)) if chosen else {}
    return _validate(FleetConfig, data, file=str(chosen), from_environment=overrides(environ))


def load_platform(name: str, state: Path) -> tuple[Platform, Path]:
    """A profile by name and its file; a running devnet's own profile wins over the shipped one."""
    folders = (state / "devnet", *(folder / "platforms" for folder in config_dirs()))
    for path in (folder / f"{name}.toml" for folder in folders):
        if path.is_file():
            return parse(Platform, read_text(path), file=str(path)), path
    if (state / "devnet" / "deployment.json").is_file() and name == "devnet":
        remedy = "fleet devnet up, or fleet --demo devnet up for the demo's"
        raise UsageError("the devnet is stopped; its chain is kept", remedy=remedy)
    known = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    raise UsageError(
        f"no platform named {name!r}; known: {', '.join(known) or 'none'}",
        remedy=f"start one with `fleet devnet up`, or add {own_config()}/platforms/<name>.toml",
    )


LIVE_KEYS = ("concurrency", "trusted", "never", "budget", "hooks", "sender_header", "keep", "notify")
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
