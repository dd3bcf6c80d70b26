"""What one agent call sends: its words, its false sender, and a token that is valid or broken in one way."""

from __future__ import annotations

import re

from sandbox.chain import rpc
from sandbox.errors import Deadline
from sandbox.http import HttpReply
from sandbox.spec import Context, Mistake
from sandbox.text import clean, mask

CALLERS = ("caller", "other")
"""Labels of a run's two throwaway identities."""
TOKENS = ("good", "none", "stale", "future", "foreign", "truncated", "garbage", "zero", "wrong-route")
"""`stale` and `future` are off by `OFF_S`, `foreign` has the other identity's signature, `zero` one of
zeros, `wrong-route` one for another route; the others are what they say."""
OFF_S = 30 * 86_400
MAX_FILL = 600_000
MAX_CLAIMS = 16

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}", re.ASCII)
_HEADER = re.compile(r"[a-z][a-z0-9-]{0,40}", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_OURS = frozenset({"host", "content-length", "content-type", "connection", "transfer-encoding", "upgrade"})


def spoken(message: str, fill: int = 0, unit: str = "") -> str:
    """The message and `fill` characters of the repeated unit: a long text that is short to write."""
    return message + (unit * -(-fill // len(unit)))[:fill] if fill and unit else message


def checked(caller: str, token: str, fill: int, fields: tuple[str, ...], headers: tuple[str, ...]) -> None:
    """Mistake for an argument that is not one of ours."""
    if caller not in CALLERS:
        raise Mistake(f"/args/caller: expected one of {', '.join(CALLERS)}")
    if token not in TOKENS:
        raise Mistake(f"/args/token: expected one of {', '.join(TOKENS)}")
    if not 0 <= fill <= MAX_FILL:
        raise Mistake(f"/args/fill: expected 0 to {MAX_FILL}")
    if len(fields) + len(headers) > MAX_CLAIMS:
        raise Mistake(f"/args/claim_fields: at most {MAX_CLAIMS} places for a false sender")
    for name in fields:
        if not _FIELD.fullmatch(name) or name in ("agent", "contents"):
            raise Mistake("/args/claim_fields: not a field for a false sender")
    for name in headers:
        if not _HEADER.fullmatch(name) or name in _OURS:
            raise Mistake("/args/claim_headers: not a header for a false sender")


def is_address(text: str) -> bool:
    """Whether a sender can be compared with another one."""
    return _ADDRESS.fullmatch(text) is not None


def token(variant: str, caller: str, ctx: Context, deadline: Deadline) -> str:
    """A token of this caller, fresh; or one that differs from it in exactly one way."""
    if variant == "none":
        return ""
    if variant == "garbage":
        return "not-a-token"
    if variant == "wrong-route":
        return rpc.token(caller, f"{ctx.route[:24]}-other".lstrip("-"), deadline)
    age = {"stale": OFF_S, "future": -OFF_S}.get(variant, 0)
    good = rpc.token(caller, ctx.route, deadline, age)
    head, colon, _ = good.rpartition(":")
    if variant == "truncated":
        return good[:-20]
    if variant == "zero":
        return f"{head}{colon}0x" + "00" * 65
    if variant == "foreign":
        signer = CALLERS[1 - CALLERS.index(caller)]
        return f"{head}{colon}{rpc.token(signer, ctx.route, deadline).rpartition(':')[2]}"
    return good


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


def terms(reply: HttpReply) -> tuple[str, ...]:
    """The headers of an answer about limits and costs, cleaned and bounded."""
    found = (f"{name}: {value}" for name, value in sorted(reply.headers.items()) if _TERM.search(name))
    return tuple(clean(mask(term)[0], 120) for term, _ in zip(found, range(MAX_TERMS), strict=False))
