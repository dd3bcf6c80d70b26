"""Fixtures that every room shares."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator

import pytest
import sniffio
from hypothesis import HealthCheck, settings

from fleet.devnet.compiler.rustlite.generate import PARSER, write

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in the background by a shell: what the tests start must still be told by Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

WHOLE = "WHOLE" in os.environ
"""Every cell of every matrix and four times the examples of a property: `make test-whole`."""

settings.register_profile(  # a busy machine is no failure; pytest-timeout still holds
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100 if WHOLE else 25
)
settings.load_profile("steady")


LONGEST = (
    "tests/soak/",
    "tests/crash/",
    "tests/fuzzing/test_fuzz_command.py",
    "tests/service/test_up.py",
    "tests/e2e/test_readme.py",
    "tests/platforms/test_arc.py",
    "tests/e2e/test_demo",
    "tests/service/test_two_daemons.py",
    "tests/e2e/test_look.py",
    "tests/platforms/test_arc_on_a_registry.py",
    "tests/jail/test_hostile_pages.py",
    "tests/e2e/test_cli.py",
    "tests/e2e/test_follow_replay.py",
    "tests/e2e/test_model_run.py",
)
"""Begun first: a file is the work of one process, and the longest would otherwise run alone at the end."""


def pytest_configure() -> None:
    """Builds the parser of the devnet's compiler where `make setup` has not."""
    if not PARSER.exists():
        write()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imports by the thousand: a third of their time would go to looks at what they made, which stays.

    A test module's own imports may raise the recursion limit (py_ecc), which the fleet never leaves raised.
    """
    gc.disable()
    limit = sys.getrecursionlimit()
    try:
        return (yield)
    finally:
        sys.setrecursionlimit(limit)
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a matrix that is marked `sampled(n)` every nth cell is tried: all hold one assertion."""
    cells = Counter[str]()
    for item in items:
        if not WHOLE and (mark := item.get_closest_marker("sampled")):
            matrix = item.nodeid.partition("[")[0]
            cells[matrix] += 1
            if (cells[matrix] - 1) % mark.args[0]:
                item.add_marker(pytest.mark.skip(reason="holds what its neighbour holds: make test-whole"))
    items.sort(
        key=lambda item: next((n for n, path in enumerate(LONGEST) if path in item.nodeid), len(LONGEST))
    )


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop flavour; session scope, so that a module may share an async fixture."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_loop_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Without a loop none is named: a session's async fixture leaves its name where sniffio looks."""
    if "anyio_backend" in request.fixturenames:
        yield
        return
    token = sniffio.current_async_library_cvar.set(None)
    yield
    sniffio.current_async_library_cvar.reset(token)
