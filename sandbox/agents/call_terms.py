"""What an answer says of limits and costs: in its headers, and in its document."""

from __future__ import annotations

import re

from sandbox.http import HttpReply
from sandbox.text import clean, mask

MAX_TERMS = 12
MAX_WEI_DIGITS = 19
"""A price with this number of digits is left out: an expectation cannot count it."""

_TERM = re.compile(r"limit|quota|retry-after|price|cost|credit|charge")
_PRICES = frozenset(
    f"{word}{unit}"
    for word in ("price", "callprice", "cost", "callcost", "charge", "charged", "fee", "debited")
    for unit in ("wei", "inwei")
)
"""Keys, in lower case without `_` and `-`, under which an answer says in wei what its call costs."""


def advertised(document: object) -> int | None:
    """What an answer says that its call costs, in wei; None where it does not say so."""
    inner = list(document.values()) if isinstance(document, dict) else []
    for table in (document, *inner[:32]):
        for key, value in list(table.items())[:32] if isinstance(table, dict) else ():
            if key.lower().replace("_", "").replace("-", "") in _PRICES and str(value).isdecimal():
                return int(str(value)) if len(str(value)) < MAX_WEI_DIGITS else None
    return None


def of(reply: HttpReply) -> tuple[str, ...]:
    """The headers of an answer about limits and costs, cleaned and bounded."""
    told = (f"{name}: {value}" for name, value in sorted(reply.headers.items()) if _TERM.search(name))
    return tuple(clean(mask(term)[0], 120) for term, _ in zip(told, range(MAX_TERMS), strict=False))
