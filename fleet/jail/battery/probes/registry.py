"""The list of escape probes: each returns what it saw when the fence held and raises `Escaped` otherwise."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

Facts = dict[str, Any]
Probe = Callable[[Facts], str]

PROBES: dict[str, Probe] = {}
DESTRUCTIVE: set[str] = set()


class Escaped(Exception):
    """The fence did not hold."""


def probe(name: str, *, destructive: bool = False) -> Callable[[Probe], Probe]:
    """Register a probe; a destructive one refuses to run anywhere but in a jail."""

    def register(function: Probe) -> Probe:
        assert name not in PROBES
        PROBES[name] = function
        if destructive:
            DESTRUCTIVE.add(name)
        return function

    return register


def refused(names: str, attempt: Callable[..., object], *arguments: object) -> str:
    """Return the error's name when it is one of `names`; anything else, success included, is an escape."""
    try:
        value = attempt(*arguments)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        if name not in names.split():
            raise Escaped(f"{name}, expected {names}") from error
        return name
    raise Escaped(f"succeeded: {value!r:.80}")


def require(holds: bool, seen: object) -> str:
    if not holds:
        raise Escaped(str(seen)[:300])
    return str(seen)[:300]


def run(name: str, facts: Facts) -> tuple[bool, str]:
    """Run one probe: (held, what was seen)."""
    if name in DESTRUCTIVE and socket.gethostname() != "jail":
        return False, "not run: no jail here"
    try:
        return True, PROBES[name](facts)
    except Escaped as escape:
        return False, str(escape)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"
