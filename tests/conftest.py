"""Fixtures that every room shares."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop flavour; session scope, so that a module may share an async fixture."""
    return "asyncio"
