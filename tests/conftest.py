"""Fixtures that every room shares."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in the background by a shell: what the tests start must still be told by Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("steady", deadline=None)  # a busy machine is no failure; pytest-timeout still holds
settings.load_profile("steady")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop flavour; session scope, so that a module may share an async fixture."""
    return "asyncio"
