"""Oracles of what a visitor is given and should not be: fields of JSON, files that were left. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleet.oracles.echoes import OWN, family, host, route
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity
from fleet.text import line

PEOPLE = "e-mail addresses of many people"
_LEFT = (
    ("/.git/config", r"\[core\]", "settings of a git repository"),
    ("/.git/HEAD", r"ref: refs/heads/[^\s<>]+", "the head of a git repository"),
    ("/.svn/wc.db", r"SQLite format 3.*", "the working copy of a Subversion repository"),
    ("/.env", r"(?:export )?[A-Z][A-Z0-9_]{2,60}=.*", "settings of a program"),
    ("/.htpasswd", r"[\w.-]{1,40}:(?:\$\w{1,4}\$|\{SHA\})\S{10,}", "names and passwords of a server"),
    (
        ("/backup.sql", "/dump.sql"),
        r"(?:CREATE|DROP) TABLE .*|INSERT INTO .*|PRAGMA .*|SET [\w@]+ ?=.*",
        "a copy of a database",
    ),
)
"""Files by the end of their path, their first line that is not a comment, and what they are: by their format,
since a site may answer every path with a page."""


def _users(*names: str, **args: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_fetch", {"url": "{site}/users", **args}, {"status": 200, "private": names}),)


@Oracle(
    id="private-fields",
    says="no answer to a visitor has a password, a secret of the server or data of many people in a field",
    severity=Severity.HIGH,
    surface="security",
    judges=("page",),
    forgeable=True,
    example=_users("password", PEOPLE),
    control=_users(),
)
def private_fields(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """By the name and the value of a field together; e-mail addresses alone are less grave. A page of a name
    that a run minted is its own."""
    last = seen[-1]
    names = [str(one) for one in last.result.get("private", ())]
    grave = [one for one in names if one != PEOPLE]
    if not names or int(last.result.get("status", 0)) >= 400 or OWN.search(str(last.args.get("url", ""))):
        return
    if "authorization" in {str(name).lower() for name in last.args.get("headers", {})}:
        return
    said = ", ".join(grave or names)
    severity = Severity.HIGH if grave else Severity.MEDIUM
    title, key = (
        f"{last.asked} shows a visitor {line(said.replace('_', ' '), 80)}",
        f"private-fields {family(last.args)} {said}",
    )
    yield observed(title, key, "private", severity=severity, where={"field": said})


def _file(text: str, kind: str = "text/plain", **args: object) -> tuple[Exchange, ...]:
    got = {"status": 200, "content_type": kind, "text": text}
    return (Exchange("qa_fetch", {"url": "{site}/.git/HEAD", **args}, got),)


@Oracle(
    id="leftover-file",
    says="no file of a repository, of settings, of passwords or of a database is served to visitors",
    severity=Severity.HIGH,
    surface="security",
    judges=("page",),
    yields_to=("secret",),
    example=_file("ref: refs/heads/main\n"),
    control=_file("<html><body>ref: refs/heads/main</body></html>", "text/html"),
)
def leftover_file(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """By name and format together, on GET alone."""
    last = seen[-1]
    if last.result.get("status") != 200 or set(last.args) - {"url", "longest"}:
        return
    page, text = route(last.args), str(last.result.get("text", ""))
    rows = (row.strip() for row in text[:4_000].splitlines())
    first = next((row for row in rows if row and not row.startswith(("#", "--", "/*"))), "")
    for name, begins, said in _LEFT:
        if page.endswith(name) and re.fullmatch(begins, first):
            yield observed(f"{last.asked} answers {said}", f"leftover-file {host(last.args)}", "text")
            return
