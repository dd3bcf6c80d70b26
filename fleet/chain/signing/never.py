"""The one never-list of gate, broker and signer: what no rung permits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from fleet.chain.node.abi import FUNCTIONS
from fleet.errors import ConfigError

RELEASE = "releaseName"
"""No tool calls it; the signer signs it only to clean up a name that the run minted."""
NEVER: Mapping[str, str] = MappingProxyType(
    {
        name: f"0x{FUNCTIONS[name].selector.hex()}"
        for name in (
            "diamondCut",
            "transferOwnership",
            "adminBurnNames",
            "adminResetAll",
            "clearFeedback",
            "setRegistrationCost",
            "setMainCost",
            "withdrawTreasury",
            RELEASE,
        )
    }
)
"""Functions that are never called unattended, with their selectors (platform-facts 1.3). Operators can
add to this list, not remove from it."""


def parse_never(words: Iterable[str]) -> frozenset[bytes]:
    """Selectors of the configuration, `0x` + 8 hex digits each; ConfigError on anything else."""
    found = []
    for word in words:
        if not re.fullmatch(r"0x[0-9a-fA-F]{8}", word):
            raise ConfigError(
                f"never: {word!r} is not a selector", remedy="write 4-byte selectors such as 0xac8063ff"
            )
        found.append(bytes.fromhex(word[2:]))
    return frozenset(found)


_parsed = lru_cache(maxsize=8)(parse_never)


class NeverList:
    """The operator's current selectors, read by gate, broker and signer at each use.

    Iteration yields words (`0x` + 8 hex digits); `in` takes the 4 bytes.
    """

    def __init__(self, words: Callable[[], Iterable[str]] = tuple) -> None:
        self._words = words

    def __contains__(self, selector: object) -> bool:
        return selector in _parsed(tuple(self._words()))

    def __iter__(self) -> Iterator[str]:
        return (f"0x{selector.hex()}" for selector in _parsed(tuple(self._words())))
