"""What tells a secret from an example of one: how it is drawn, who has published it, and when it expires."""

from __future__ import annotations

import base64
import json
import re
import time
from itertools import pairwise
from pathlib import Path

PLACEHOLDER = re.compile(
    r"(?i)(?:0x)?(?:([0-9a-f])\1{63}|(?:0123456789abcdef){4}|(?:1234567890){6}1234|(?:1234567890abcdef){4}"
    r"|(?:deadbeef){8}|(?:cafebabe){8}|0{56}[0-9a-f]{8})"
)
"""Keys that stand for a key in documents and tests."""
PUBLISHED = frozenset(json.loads(Path(__file__).with_name("published_keys.json").read_text("utf-8")))
"""Keys of the development mnemonic that Hardhat, Anvil and their documents print: everybody has them."""
_EXAMPLE = re.compile(
    r"(?i)example|sample|placehold|your|x{4}|test|dummy|fake|change.?me|redacted|hidden|secret|passw|token|insert"
    r"|\.\.\.|foo|bar|mock|[<>{}$%]"
)


def looks_drawn(value: str) -> bool:
    """Whether a value seems to be drawn at random: no example, no run, no repetition."""
    kinds = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    if len(set(value)) < 10 or kinds < 2 or _EXAMPLE.search(value.partition("_live_")[2] or value):
        return False
    steps = [ord(after) - ord(before) for before, after in pairwise(value)]
    return not any(
        steps[at] in (0, 1, -1) and len(set(steps[at : at + 3])) == 1 for at in range(len(steps) - 2)
    )


LASTS_S = 400 * 86_400
"""Seconds: a token that is good for longer is made to be public."""


def current(token: str) -> bool:
    """Whether a signed token (RFC 7519) names its owner and has not expired."""
    part = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return False
    if not isinstance(claims, dict) or not claims.get("sub"):
        return False
    ends = claims.get("exp")
    return isinstance(ends, int | float) and 0 < ends - time.time() < LASTS_S
