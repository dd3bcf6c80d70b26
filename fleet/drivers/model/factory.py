"""Makes the model driver from the configuration, without importing an SDK before it is used."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread

from fleet.chain.keys import read_private
from fleet.config import FleetConfig, ModelSection, model_key_file
from fleet.drivers.desk import Desk, Driver
from fleet.errors import ConfigError

EXTRA = "qa-fleet[model]"


def model_key(config: FleetConfig, state: Path) -> str:
    """The endpoint's key, "" if it needs none; ConfigError for a missing, open or invalid file."""
    path = model_key_file(config, state)
    return "" if path is None else read_key(path)


def read_key(path: Path) -> str:
    """A key of an endpoint; ConfigError for a missing, open or invalid file."""
    key = read_private(path).strip()
    if not 8 <= len(key) <= 4_096 or not key.isascii() or not key.decode().isprintable():
        raise ConfigError(f"{path}: not a key", remedy="one line of printable characters, at least 8")
    return key.decode()


def model_driver(config: FleetConfig, state: Path) -> Callable[[], Driver] | None:
    """A factory of drivers, one per run; None when no model is configured.

    Raises ConfigError early for what would fail later: no key, no extra `model` installed.
    """
    if config.model is None:
        return None
    key, section = model_key(config, state), config.model
    if importlib.util.find_spec("pydantic_ai") is None:
        raise ConfigError("[model] needs packages that are not installed", remedy=f"pip install '{EXTRA}'")
    return lambda: _LazyDriver(section, key)


class _LazyDriver:
    """Imports the SDKs (seconds of work) when a run first needs them, off the event loop."""

    def __init__(self, section: ModelSection, key: str) -> None:
        self._section, self._key = section, key

    async def __call__(self, desk: Desk) -> str:
        load, kind = importlib.import_module, self._section.name.partition(":")[0]
        module = await anyio.to_thread.run_sync(load, "fleet.drivers.model.driver")
        endpoint = await anyio.to_thread.run_sync(load, "fleet.drivers.model.endpoint")
        await anyio.to_thread.run_sync(load, endpoint.SDKS[kind])
        drive: Driver = module.ModelDriver(self._section, self._key)
        return await drive(desk)
