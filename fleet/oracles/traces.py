"""Output of programs that break internally: patterns by language, as data. Pure.

A refusal must not contain any of it: a stack trace, a panic, an error of the operating system or
of a database tells a user nothing and a stranger too much.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOKED_AT = 8_000
"""Most characters searched in a text; a tool's result keeps no more."""

TRACES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("a Rust panic", r"thread '[^'\n]{1,80}' (?:\(\d{1,9}\) )?panicked at"),
        ("an operating-system error", r"\(os error \d{1,5}\)|\[Errno \d{1,5}\]"),
        ("an operating-system error", r"\bE(?:NOENT|ACCES|PERM|CONNREFUSED|PIPE|ISDIR): "),
        ("a Python traceback", r"Traceback \(most recent call last\):"),
        ("a Go panic", r"(?m)^(?:panic: |goroutine \d{1,9} \[)"),
        (
            "a JavaScript stack",
            r"(?m)^\s{0,16}at [\w.$<>\[\] ]{1,120} \((?:file://|node:|/)[^)\n]{1,300}:\d{1,7}:\d{1,7}\)",
        ),
        ("a Java stack", r"(?m)^\s{0,16}at [\w.$]{1,200}\([\w$]{1,80}\.(?:java|kt|scala):\d{1,7}\)"),
        ("a PHP error", r"(?:Fatal error|Uncaught \w{1,60}): [^\n]{1,300} in /[^\n]{1,200} on line \d{1,7}"),
        ("a .NET stack", r"(?m)^\s{0,16}at [\w.<>`\[\], ]{1,200}\([^)\n]{0,200}\) in [^\n]{1,200}:line \d"),
        ("an SQL error", r"SQLSTATE\[\w{5}\]|\bORA-\d{5}\b|You have an error in your SQL syntax"),
        ("an SQL error", r"(?:sqlite3\.OperationalError|psycopg\w{0,8}\.errors|pq: syntax error)"),
    )
)


@dataclass(frozen=True, slots=True)
class Trace:
    """Its kind, and the words that show it."""

    kind: str
    words: str


def find(text: str) -> Trace | None:
    """The first pattern found in a text, or None."""
    for kind, pattern in TRACES:
        if found := pattern.search(text[:LOOKED_AT]):
            return Trace(kind, found.group(0))
    return None
