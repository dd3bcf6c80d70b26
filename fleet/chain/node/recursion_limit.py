"""Undoes what a lazily imported library changes in the process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recursion_limit_kept() -> Iterator[None]:
    """Import in this block what imports py_ecc: web3, eth_account, eth_keyfile.

    py_ecc raises Python's recursion limit to 100,000. Untrusted JSON nested that deep would then overflow the
    stack of the C parser and kill the process instead of raising RecursionError.
    """
    limit = sys.getrecursionlimit()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
