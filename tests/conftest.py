"""Fixtures that every room shares."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("steady", deadline=None)  # a busy machine is no failure; pytest-timeout still holds
settings.load_profile("steady")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop flavour; session scope, so that a module may share an async fixture."""
    return "asyncio"
