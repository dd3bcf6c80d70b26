"""Oracles of the session of a site with forms: its cookies, its begin and its end. Pure.

Which cookie is the session is never guessed from its name: it is what opens the account's page, and a page
counts only where a visitor without cookies is not served as that account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fleet.oracles.account.rows import on, oracle
from fleet.oracles.account.site_rows import NAMED, SENT, SERVED, SiteStep, reads, site_row, site_steps
from fleet.oracles.account.tokens import leaves
from fleet.oracles.model import Exchange, Facts, Observation, observed
from fleet.severity import Severity
from fleet.text import line

_PARAMETER = re.compile(r"[?&]([^=&]{1,40})=[^&]{0,40}elsewhere\.example")


def _opened(steps: Sequence[SiteStep], who: str) -> SiteStep | None:
    """The page that such cookies open as the account, and no visitor without cookies."""
    for step in steps:
        if step.who == who and step.method == "GET" and step.named:
            mine = any(one.named for one in reads(steps, "one", step.path))
            theirs = list(reads(steps, "anonymous", step.path))
            if mine and theirs and not any(one.named for one in theirs):
                return step
    return None


def _with(who: str, got: dict[str, Any]) -> tuple[Exchange, ...]:
    first = ("one", "GET", "/", dict[str, Any](), NAMED), ("anonymous", "GET", "/", dict[str, Any](), SERVED)
    return site_row(*first, (who, "GET", "/", {}, got))


def _leaving(got: dict[str, Any]) -> tuple[Exchange, ...]:
    first = ("one", "GET", "/", dict[str, Any](), NAMED), ("anonymous", "GET", "/", dict[str, Any](), SERVED)
    ends = ("one", "POST", "/logout", dict[str, Any](), SENT)
    return site_row(*first, ends, ("kept", "GET", "/", {}, got), ("one", "GET", "/", {}, SERVED))


def _again(leads: str) -> tuple[Exchange, ...]:
    return site_row(
        ("again", "POST", "/login", {}, SENT | {"leads": leads}), page="/login?next=//elsewhere.example/"
    )


@oracle(
    id="session-readable",
    says="the cookies that a script may read do not open an account",
    severity=Severity.MEDIUM,
    example=_with("scripted", NAMED),
    control=_with("scripted", SERVED),
)
def session_readable(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The cookies without HttpOnly are enough."""
    if step := _opened(site_steps(seen[-1]), "scripted"):
        title = f"{line(step.path, 90)} opens with the cookies without HttpOnly"
        yield observed(title, "session-readable", "answers", where={"cookie": "of the session"})


@oracle(
    id="session-plain",
    says="on https, the cookies that go over http as well do not open an account",
    severity=Severity.LOW,
    example=_with("plain", NAMED),
    control=_with("plain", SERVED),
)
def session_plain(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The cookies without Secure are enough, on https."""
    if step := _opened(site_steps(seen[-1]), "plain"):
        title = f"{line(step.path, 90)} opens with the cookies without Secure"
        yield observed(title, "session-plain", "answers", where={"cookie": "of the session"})


@oracle(
    id="session-fixed",
    says="what a visitor's cookies were before the log-in does not open the account after it",
    severity=Severity.MEDIUM,
    example=_with("before", NAMED),
    control=_with("before", SERVED),
)
def session_fixed(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The cookies from before the log-in are enough after it."""
    if step := _opened(site_steps(seen[-1]), "before"):
        title = f"{line(step.path, 90)} opens with the cookies from before the log-in"
        yield observed(title, "session-fixed", "answers")


@oracle(
    id="session-kept",
    says="the cookies of a session that was ended open nothing",
    severity=Severity.MEDIUM,
    example=_leaving(NAMED),
    control=_leaving(SERVED),
)
def session_kept(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """After the log-out, which ended the account's own visit, the cookies from before it are enough."""
    steps = site_steps(seen[-1])
    left = [
        at
        for at, one in enumerate(steps)
        if one.who == "one" and one.taken and (leaves("POST", one.path, "") or ends_visit(one.path))
    ]
    ends = left[0] if left else len(steps)
    if step := _opened(steps, "kept"):
        after = list(reads(steps[ends + 1 :], "one", step.path))
        if step in steps[ends + 1 :] and after and not any(one.named for one in after):
            how = f"{steps[ends].method} {line(steps[ends].path, 60)}"
            title = f"the cookies still open {line(step.path, 60)} after {how}"
            yield observed(title, f"session-kept {steps[ends].path}", "answers")


def ends_visit(path: str) -> bool:
    """Whether a path ends a session, by its last word."""
    word = re.split(r"[^a-z]+", path.partition("?")[0].lower().rstrip("/").rpartition("/")[2])
    return bool({"logout", "signout", "logoff", "leave"} & set(word)) or word[:2] in (
        ["log", "out"],
        ["sign", "out"],
    )


@oracle(
    id="log-in-away",
    says="a log-in does not lead to a foreign host that a link to it names",
    severity=Severity.MEDIUM,
    example=_again("away"),
    control=_again("/"),
)
def log_in_away(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A log-in that is asked to lead to a foreign host does so."""
    for step in site_steps(seen[-1]):
        if step.who == "again" and step.got.get("leads") == "away":
            named = _PARAMETER.search(step.page)
            what = f"its parameter {line(named[1], 40)}" if named else "a field of its form"
            where = line(step.page.partition("?")[0] or step.path, 90)
            title = f"{where} leads where {what} says"
            yield observed(title, f"log-in-away {step.path}", "answers", where=on(seen[-1], step.path))
            return
