"""Oracles of the tokens of an API's accounts: those of others, and those that are out of date. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.oracles.account_rows import ME, MINE, NO, NONE, closed, observed, oracle, played, row
from fleet.oracles.model import Exchange, Facts, Observation
from fleet.text import line
from sandbox.sessions import FORGED

LIMITED = (403, 423, 429)
_HOW = {
    "garbage": "words without a valid signature",
    "cut": "half of a token",
    "altered": "a token with another signature",
    "unsigned": "a token without its signature",
    "no-algorithm": "a token that says alg: none",
    "guessed": "a token that we signed with a secret of tutorials",
}
ATTEMPTS = 24
"""Wrong log-ins in a row: more than any stated limit that is looked at."""


_ATTEMPTS = re.compile(
    r"(?i)\b(?:at most|only|maximum of|max\.?|up to|limit(?:ed)? (?:of|to|is)|after)\s+(\d{1,3})\s+"
    r"(?:\w+\s+){0,3}(?:attempts|tries|log-?ins|sign-?ins)\b"
    r"|\b(\d{1,3})\s+(?:failed|wrong|invalid|unsuccessful)\s+(?:\w+\s+){0,2}(?:attempts|tries|passwords)\b"
)


def _forged(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """A request is served to its account, refused without a token, and served by a forged one."""
    steps = played(seen[-1])
    for step in steps:
        if step.who not in FORGED or not step.good:
            continue
        real = [one for one in steps if one.who == "one" and one.same(step) and one.good]
        if real and closed(steps, step):
            title = f"{step.method} {line(step.path, 90)} is served to {_HOW[step.who]}"
            yield observed(title, f"account-token {'guessed' if step.who == 'guessed' else 'signature'}")
            return


def _ended(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """Served, the session ended by its own request, and the same served again with its token."""
    steps = played(seen[-1])
    for at, step in enumerate(steps):
        if step.who != "one" or step.method == "GET" or not step.good or "{id}" in step.path:
            continue
        before = [one for one in steps[:at] if one.who == "one" and one.method == "GET" and one.good]
        after = [one for one in steps[at + 1 :] if one.who == "one" and one.good]
        again = any(one.same(other) and closed(steps, one) for one in before for other in after)
        if again and leaves(step.method, step.path):
            title = f"after {step.method} {line(step.path, 90)} the ended session's token is still served"
            yield observed(title, f"account-ended {step.path}")
            return


def leaves(method: str, path: str) -> bool:
    """Whether a request ends a session, by its words."""
    low = path.lower()
    words = ("logout", "log-out", "signout", "sign-out", "logoff")
    return any(word in low for word in words) or (method == "DELETE" and ("session" in low or "token" in low))


def _unlimited(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    """[a document that states how many attempts there are, a row of wrong ones, all refused in one way]."""
    wrong = [step for step in played(seen[-1]) if step.who == "wrong"]
    kinds = {step.status for step in wrong}
    for at, source in enumerate(seen[:-1]):
        most = attempts(str(source.result.get("text", ""))) if source.result.get("status") == 200 else 0
        if most and len(wrong) > most + 2 and len(kinds) == 1 and not kinds & {*LIMITED, 500, 502, 503, 504}:
            where = line(str(source.args.get("url", "")), 80)
            said = f"{len(wrong)} wrong ones in a row all answer {wrong[0].status}"
            title = f"{where} states {most} attempts to log in; {said}"
            yield observed(title, f"account-attempts {wrong[0].path}", led=(at,))
            return


def attempts(text: str) -> int:
    """How many attempts to log in a document permits; 0 where it does not say, or says more than is tried."""
    found = _ATTEMPTS.search(text)
    count = int(found[1] or found[2]) if found else 0
    return count if 0 < count <= ATTEMPTS - 4 else 0


def _shown(who: str, got: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(("one", "GET", ME, {}, MINE), ("anonymous", "GET", ME, {}, NO), (who, "GET", ME, {}, got))


def _leaving(got: dict[str, Any]) -> tuple[Exchange, ...]:
    first = ("one", "GET", ME, dict[str, Any](), MINE), ("anonymous", "GET", ME, dict[str, Any](), NO)
    return row(*first, ("one", "POST", "/api/logout", {}, NONE), ("one", "GET", ME, {}, got))


def _trying(last: int) -> tuple[Exchange, ...]:
    text = "There are at most 5 attempts in a minute."
    wrong: dict[str, Any] = {"name": "{handle}", "password": "{phrase}"}
    tries = [("wrong", "POST", "/api/sessions", wrong, NO) for _ in range(9)]
    tries.append(("wrong", "POST", "/api/sessions", wrong, NO | {"status": last}))
    return (Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": text}), *row(*tries))


ORACLES = (
    oracle(
        "account-token",
        "where a token is needed, one that the platform did not make is refused",
        "critical",
        "CWE-347",
        _forged,
        _shown("no-algorithm", MINE),
        _shown("no-algorithm", NO),
    ),
    oracle(
        "account-ended",
        "the token of a session that was ended is refused",
        "medium",
        "CWE-613",
        _ended,
        _leaving(MINE),
        _leaving(NO),
    ),
    oracle(
        "account-attempts",
        "attempts to log in are limited where a document says so",
        "medium",
        "CWE-307",
        _unlimited,
        _trying(401),
        _trying(429),
    ),
)
