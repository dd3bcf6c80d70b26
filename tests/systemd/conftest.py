"""The tests that boot a real systemd take minutes: they run only when they are asked for."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "systemd" in str(config.option.markexpr):
        return
    for item in items:
        if item.get_closest_marker("systemd"):
            item.add_marker(pytest.mark.skip(reason="boots a real systemd, takes minutes: make systemd"))
