"""The test with a real model builds an inference engine, minutes of work: it runs only when asked for."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "model" in str(config.option.markexpr):
        return
    for item in items:
        if item.get_closest_marker("model"):
            item.add_marker(pytest.mark.skip(reason="asks a real model, takes minutes: make model"))
