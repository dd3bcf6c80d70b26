"""Whether an expectation can be decided, and a file of those that can. The first check loads the grammar."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from fleet.drivers.expect_shapes import variables
from fleet.personas.check import Fault, Wants

LARGEST = 1 << 20
"""Largest size of a file of compiled expectations; a larger one is started anew."""


def check(text: str, tools: Sequence[str], wants: Wants) -> Sequence[Fault]:
    """Why this cannot be decided on the results of steps that call `tools`; see expect_types.py."""
    from fleet.drivers.expect_types import faults  # loads the grammar

    return faults(text, tools, wants)


class ExpectationCache:
    """`check` with a file of what was sound before, so that a restarted daemon need not load the grammar.

    Keyed by digest of the text, its variables' types and the library's version. A wrong line there permits
    nothing: what cannot be decided is not a finding. An unusable file only costs time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, text: str, tools: Sequence[str], wants: Wants) -> Sequence[Fault]:
        """Why this cannot be decided; nothing for a sound expectation."""
        asked = (_version(), wants, repr(sorted(variables(tools).items())), text)
        digest = sha256("\0".join(asked).encode()).hexdigest()
        with suppress(OSError):
            if digest in self._path.read_text("ascii", "replace").splitlines():
                return ()
        if not (found := check(text, tools, wants)):
            self._keep(f"{digest}\n".encode())
        return found

    def _keep(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with suppress(OSError), open(os.open(self._path, flags, 0o600), "ab", 0) as file:
            if file.tell() > LARGEST:
                file.truncate(0)
            file.write(line)


@cache
def _version() -> str:
    return version("cel-python")
