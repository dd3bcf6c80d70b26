"""For libraries that are imported when they are first needed: what they change of the process is put back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Import inside it what brings py_ecc: web3, eth_account, eth_keyfile.

    It raises Python's recursion limit to 100,000. A stranger's JSON that nests as deep would then overflow
    the stack of the C parser and end the process, where it must be a RecursionError.
    """
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
