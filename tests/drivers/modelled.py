"""Runs of the model driver with a scripted model, over real HTTP, at a desk in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from fleet.config import FleetConfig, ModelSection, parse
from fleet.drivers.desk import ProviderFailed
from fleet.drivers.model.driver import ModelDriver
from fleet.drivers.session import RunOver
from tests.doubles.drivers import MemoryDesk
from tests.doubles.model import Say, Script, ScriptedCall, ScriptedModel, serve_model

KEY = "sk-not-a-real-key-0123456789"
CALL = ScriptedCall("qa_fetch", {"url": "http://site/x"})
DONE = Say(text="done", calls=[ScriptedCall("finish", {"detail": "done"})])


def section(url: str, *, kind: str = "openai", **more: Any) -> ModelSection:
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in more.items() if key != "prices")
    prices = 'prices = { input = "3.00", output = "15.00", cached = "0.30" }' if "prices" in more else ""
    config = parse(
        FleetConfig, f'[model]\nname = "{kind}:scripted"\nbase_url = "{url}"\n{text}\n{prices}', file="f"
    )
    assert config.model is not None
    return config.model


@asynccontextmanager
async def _driven(
    script: Script, kind: str = "openai", **more: Any
) -> AsyncIterator[tuple[ModelDriver, ScriptedModel]]:
    async with serve_model(script) as model:
        yield ModelDriver(section(model.url_of(kind), kind=kind, **more), KEY), model


def driven(script: Script, **more: Any) -> AbstractAsyncContextManager[tuple[ModelDriver, ScriptedModel]]:
    return _driven(script, **more)


async def run(
    script: Script, desk: MemoryDesk | None = None, **more: Any
) -> tuple[MemoryDesk, ScriptedModel]:
    desk = desk or MemoryDesk()
    async with driven(script, **more) as (driver, model):
        with anyio.fail_after(30):
            await driver(desk)
    return desk, model


async def outcome(script: Script, desk: MemoryDesk, **more: Any) -> str:
    try:
        async with driven(script, **more) as (driver, _):
            with anyio.fail_after(30):
                return "done: " + await driver(desk)
    except RunOver as over:
        return over.outcome
    except ProviderFailed as failed:
        return f"provider: {failed}"


def good_end() -> list[Say]:
    probes = [ScriptedCall("run_probe", {"probe": probe}) for probe in ("first", "second")]
    return [Say(calls=probes), DONE]
