"""The configured fixer, made early enough that what is missing is said before a run begins."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from fleet.config import FleetConfig
from fleet.drivers.model.factory import EXTRA, model_key, read_key
from fleet.errors import ConfigError
from fleet.fix.fixers.command import CommandFixer
from fleet.fix.model import FixAttempt, FixTask, StepResult
from fleet.fix.ports import FixBudget, Fixer, TreeJailPort, TreePort


class NoFixer:
    """Implements `Fixer`."""

    name = "none"

    async def fix(
        self,
        task: FixTask,  # noqa: ARG002  the port has it
        tree: TreePort,  # noqa: ARG002  the port has it
        jails: TreeJailPort,  # noqa: ARG002  the port has it
        failed: Sequence[StepResult],  # noqa: ARG002  the port has it
    ) -> FixAttempt:
        """Leave the tree as it is."""
        return FixAttempt("no fixer is configured: the proposal is the failing test")


def open_fixer(
    config: FleetConfig, state: Path, budget: FixBudget, *, rung: Callable[[], str] | None = None
) -> Fixer:
    """The fixer of `[propose]`; ConfigError for what is missing: a key, a program, the extra `model`.

    For `model`, the SDKs are imported here: seconds of work, to be done in a thread.
    """
    section = config.propose
    if section.fixer == "none":
        return NoFixer()
    if section.fixer == "command":
        key = read_key(state / section.endpoint_key_file) if section.endpoint_key_file else ""
        return CommandFixer(section, budget, key=key, rung=rung)
    if config.model is None:
        raise ConfigError("propose.fixer is `model`, and there is no [model]", remedy="configure [model]")
    key = model_key(config, state)
    if importlib.util.find_spec("pydantic_ai") is None:
        raise ConfigError("[model] needs packages that are not installed", remedy=f"pip install '{EXTRA}'")
    endpoint = importlib.import_module("fleet.drivers.model.endpoint")
    importlib.import_module(endpoint.SDKS[config.model.name.partition(":")[0]])
    made: Fixer = importlib.import_module("fleet.fix.fixers.model").ModelFixer(config.model, key, budget)
    return made
