"""Exchanges with an agent as the oracles compare them: who said what, and what came back. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from fleet.findings.sighting import template
from fleet.oracles.model import Exchange
from sandbox.agents.call_request import spoken

_CLAIMS = ("claim_from", "claim_fields", "claim_headers")
_PLAIN = re.compile(r"\s+")
REFUSED = (400, 401, 403, 407, 422)
"""Statuses by which a token that is missing or broken is refused."""
SHOWN = 3_500
"""Characters; a reply near the tool's cut cannot be compared whole."""


def agent(one: Exchange) -> str:
    """The agent that was called, in a title's words."""
    return f"{one.args.get('target', '')}{' without a token' if one.args.get('unsigned') else ''}"


def message_of(one: Exchange) -> str:
    """The message as it was sent."""
    args = one.args
    return spoken(str(args.get("message", "")), int(args.get("fill", 0)), str(args.get("unit", "")))


def reply_of(one: Exchange) -> str:
    """The reply."""
    return str(one.result.get("reply", ""))


def number(one: Exchange, field: str) -> int:
    """A field of the result, 0 when it is missing or not a number."""
    value: Any = one.result.get(field, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def served(one: Exchange) -> bool:
    """Whether an agent answered."""
    return one.tool == "qa_call" and 200 <= number(one, "status") < 300 and one.result.get("ok") is True


def honest(one: Exchange) -> bool:
    """A valid request under its sender's own good token, without a false sender."""
    args = one.args
    signed = args.get("token", "good") == "good" and not args.get("unsigned")
    return one.tool == "qa_call" and signed and not args.get("raw") and not any(map(args.get, _CLAIMS))


def answered(*seen: Exchange) -> bool:
    """Whether each was an honest call that an agent answered."""
    return all(honest(one) and served(one) for one in seen)


def caller(one: Exchange) -> str:
    """The label of the identity that signed."""
    return str(one.args.get("caller", "caller"))


def told_apart(seen: Sequence[Exchange]) -> list[int]:
    """Where a call of the last one's agent without a token is refused: only then does it know its callers."""
    return [
        at
        for at, one in enumerate(seen[:-1])
        if one.args.get("token") == "none" and number(one, "status") in REFUSED and one_agent([one, seen[-1]])
    ]


def one_agent(seen: Sequence[Exchange]) -> bool:
    """Whether all of them go to the same agent."""
    return len({one.args.get("target") for one in seen}) == 1


def same_words(*seen: Exchange) -> bool:
    """Whether all of them say the same to the same agent as the same sender."""
    return len({(one.args.get("target"), message_of(one), caller(one)) for one in seen}) == 1


def normalized(text: str) -> str:
    """A text as two healthy copies of it agree: composed, one case, single spaces."""
    return _PLAIN.sub(" ", unicodedata.normalize("NFC", text)).strip().casefold()


def without(text: str, *echoes: str) -> str:
    """A reply without what its caller said: an echo is not the agent's word."""
    text = normalized(text)
    for echo in sorted(filter(None, map(normalized, echoes)), key=len, reverse=True):
        text = text.replace(echo.rstrip("?!. "), "{echo}") if len(echo) > 2 else text
    return text


def gist(one: Exchange) -> str:
    """What a reply says beside its echo, without names and numbers: equal for two replies of one kind."""
    return template(without(reply_of(one), message_of(one)))
