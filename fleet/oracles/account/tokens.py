"""Oracles of the tokens of an API's accounts: those of others, and those that are out of date. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.oracles.account.rows import (
    ME,
    MINE,
    NO,
    NONE,
    closed,
    described,
    on,
    oracle,
    played,
    row,
)
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line
from sandbox.sites.sessions import FORGED
from sandbox.spec import SAFE

_WRONG = (400, 401, 404, 422)
"""How a wrong log-in is refused; any other refusal may be that of a limit."""
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


_ENTERING = re.compile(
    r"(?i)\blog-?\s?[io]n|\bsign-?\s?in|passwords?\b|passphrase|credential|authenticat|\bhandle|\buser-?name|\bsessions?\b"
)
_ELSEWHERE = re.compile(
    r"(?i)\bretr(?:y|ies|ied)\b|webhook|deliver|upload|download|\breset|\bcodes?\b|captcha|two-factor|\b2fa\b"
    r"|\bpins?\b|payment|\bquiz|\bat once\b|same time|simultan|concurrent|parallel|\bdevices?\b"
    r"|(?:\bper |\ba |\beach |\bevery |/ ?)(?:\d+ )?s(?:ec(?:ond)?s?)?\b"
)
"""Of attempts at something else, or in less time than they take here."""
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = rf"(\d{{1,3}}|{'|'.join(_WORDS)})"
_ATTEMPTS = re.compile(
    rf"(?i)\b(?:at most|only|maximum of|max\.?|up to|limit(?:ed)? (?:of|to|is)|after)\s+{_COUNT}\s+"
    r"(?:\w+\s+){0,3}(?:attempts|tries|log-?ins|sign-?ins)\b"
    rf"|\b{_COUNT}\s+(?:failed|wrong|invalid|unsuccessful)\s+(?:\w+\s+){{0,2}}(?:attempts|tries|passwords)\b"
)


def _shown(who: str, got: dict[str, Any]) -> tuple[Exchange, ...]:
    return row(("one", "GET", ME, {}, MINE), ("anonymous", "GET", ME, {}, NO), (who, "GET", ME, {}, got))


def _leaving(got: dict[str, Any]) -> tuple[Exchange, ...]:
    first = ("one", "GET", ME, dict[str, Any](), MINE), ("anonymous", "GET", ME, dict[str, Any](), NO)
    return row(*first, ("one", "POST", "/api/logout", {}, NONE), ("one", "GET", ME, {}, got))


def _trying(last: int) -> tuple[Exchange, ...]:
    text = "There are at most 5 attempts to log in in a minute."
    keys: dict[str, Any] = {"name": "{handle}", "password": "{phrase}"}
    tries = [("wrong", "POST", "/api/sessions", keys, NO) for _ in range(11)]
    tries.append(("one", "POST", "/api/sessions", keys, NO | {"status": last}))
    return (Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": 200, "text": text}), *row(*tries))


@oracle(
    id="account-token",
    says="where a token is needed, one that the platform did not make is refused",
    severity=Severity.CRITICAL,
    example=_shown("no-algorithm", MINE),
    control=_shown("no-algorithm", NO),
)
def account_token(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A request is served to its account, refused without a token, and a forged one gets the same record."""
    yield from _forged(seen, "token signature", [one for one in FORGED if one != "guessed"])


@oracle(
    id="account-guessed",
    says="tokens are not signed with a secret that everybody knows",
    severity=Severity.CRITICAL,
    example=_shown("guessed", MINE),
    control=_shown("guessed", NO),
)
def account_guessed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The same with a token that we signed."""
    yield from _forged(seen, "token guessed", ["guessed"])


def _forged(seen: Sequence[Exchange], kind: str, whose: Sequence[str]) -> Iterator[Observation]:
    steps = played(seen[-1])
    for step in steps:
        if step.who not in whose or not step.good:
            continue
        real = [one for one in steps if one.who == "one" and one.same(step) and one.good]
        # both name the account; else both have the same fields: a 200 may hold a refusal
        same = any(
            step.got.get("named")
            if one.got.get("named")
            else one.facts and one.facts.keys() == step.facts.keys()
            for one in real
        )
        if same and closed(steps, step):
            title = f"{step.called} serves {_HOW[step.who]}"
            yield observed(title, f"account-{kind}", "answers")
            return


@oracle(
    id="account-ended",
    says="the token of a session that was ended is refused",
    severity=Severity.MEDIUM,
    example=_leaving(MINE),
    control=_leaving(NO),
)
def account_ended(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[the description, a row]: served, the session ended by its own request, served again with its token.

    A token that states its own end soon may last until then, unless the description says otherwise.
    """
    steps, login = played(seen[-1]), str(seen[-1].args.get("login", ""))
    for at, step in enumerate(steps):
        if step.who != "one" or not step.good or not leaves(step.method, step.path, login):
            continue
        before = [one for one in steps[:at] if one.who == "one" and one.method == "GET" and one.good]
        after = [one for one in steps[at + 1 :] if one.who == "one" and one.good]
        again = any(one.same(other) and closed(steps, one) for one in before for other in after)
        brief = bool(seen[-1].result.get("brief"))
        operations = described(seen, step.path, step.method) if brief else ()
        dead = [at for at, one in operations if _DEAD.search(one.text) and "refresh" not in one.text.lower()]
        if again and (dead or not brief):
            title = f"the token still works after {step.called}"
            yield observed(title, f"account-ended {step.path}", "answers", led=tuple(dead[:1]))
            return


_DEAD = re.compile(
    r"(?i)\btokens?\b[^.]{0,60}\b(?:refused|invalid(?:ated)?|no longer|revoked|stops?|not accepted|dead)\b"
    r"|\b(?:revokes?|invalidates?|blocks?|expires?)\b[^.]{0,40}\btokens?\b"
    r"|\b(?:the|its|your|this) token ends\b(?! (?:in|after|with|at)\b)|\bends? (?:the|its|your|this) token\b"
)
"""Words of a log-out by which its token is no longer good."""
_LEAVES = re.compile(r"(?i)[/#](?:log[-_]?(?:out|off)|sign[-_]?(?:out|off))/?$")
_CURRENT = re.compile(r"(?i)(?:/(?:current|me|self|this|mine))?/?$")


def leaves(method: str, path: str, login: str) -> bool:
    """Whether a request ends a session, by its words, or as it takes back the log-in at `login`."""
    rest = path.removeprefix(login) if login and path.startswith(login) else "?"
    took = bool(_CURRENT.fullmatch(rest)) or path.lower().endswith("/session")
    acts = method not in SAFE and "{id}" not in path
    return acts and (bool(_LEAVES.search(path)) or (method == "DELETE" and took))


@oracle(
    id="account-attempts",
    says="attempts to log in are limited where a document says so",
    severity=Severity.MEDIUM,
    example=_trying(201),
    control=_trying(429),
)
def account_attempts(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a document that states how many attempts there are, a row of wrong ones, then the right one].

    All the wrong ones are refused in one way, and the right one is served: nothing was locked silently. The
    wrong ones are twice as many as stated: the time for which they are counted may end in between.
    """
    steps = played(seen[-1])
    wrong = [step for step in steps if step.who == "wrong"]
    kinds = {step.status for step in wrong}
    if not wrong or not any(step.who == "one" and step.same(wrong[0]) and step.good for step in steps[-1:]):
        return
    for at, source in enumerate(seen[:-1]):
        most = attempts(str(source.result.get("text", ""))) if source.result.get("status") == 200 else 0
        if most and len(wrong) > 2 * most and len(kinds) == 1 and min(kinds) in _WRONG:
            where = line(str(source.args.get("url", "")), 80)
            title = f"{wrong[0].called} allows {len(wrong)} attempts, {where} states {most}"
            place = on(seen[-1], wrong[0].path, wrong[0].method)
            yield observed(title, f"account-attempts {wrong[0].path}", "answers", led=(at,), where=place)
            return


def attempts(text: str) -> int:
    """How many attempts to log in a document permits; 0 where it does not say, or says more than is tried."""
    for found in _ATTEMPTS.finditer(text):
        begun = max(text.rfind(mark, 0, found.start()) for mark in (". ", "\n", ";")) + 1
        sentence = text[begun : found.start()] + re.split(r"[.;\n]", text[found.start() :], maxsplit=1)[0]
        near = text[max(0, found.start() - 120) : found.end() + 80]
        if _ELSEWHERE.search(sentence) or not _ENTERING.search(near):
            continue
        said = (found[1] or found[2]).lower()
        count = int(said) if said.isdecimal() else _WORDS.index(said) + 2
        return count if 0 < 2 * count < ATTEMPTS else 0
    return 0
