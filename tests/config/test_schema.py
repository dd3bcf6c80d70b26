"""The JSON Schema for editors: every key with its text, and nothing else allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from fleet.cli.check.check import app
from fleet.config import FleetConfig, Platform, Section
from fleet.config.json_schema import schema

MODELS: dict[str, type[Section]] = {"fleet": FleetConfig, "platform": Platform}


def tables(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document
    yield from (one for one in document.get("$defs", {}).values() if "enum" not in one)  # a word, not a table


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_key_is_described_and_no_other_is_allowed(model: type[Section]) -> None:
    document = schema(model)
    assert set(document["properties"]) == set(model.model_fields)
    for table in tables(document):
        assert table["additionalProperties"] is False
        silent = [key for key, value in table["properties"].items() if not value.get("description")]
        assert silent == [], table["title"]


@pytest.mark.parametrize(("words", "model"), [([], FleetConfig), (["--platform"], Platform)])
def test_the_command_prints_it(words: list[str], model: type[Section]) -> None:
    said = CliRunner().invoke(app, ["schema", *words])
    assert said.exit_code == 0
    assert json.loads(said.stdout) == schema(model)
