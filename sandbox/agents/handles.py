"""Handles: what a tool hands out so that a later call can name it. Standard library alone.

A handle is found by the name that it has in structured content, or by its form in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NAMED = re.compile(
    r"(?i)(?:^|_)(?:id|ident|handle|ref|reference|token|ticket|job|task|cart|basket|draft|session|booking"
    r"|order|upload|workspace|receipt|number|code)$|[a-z](?:Id|Ref|Handle|Token)$"
)
"""A field, or an argument, that names something which was made before."""
_UNGUESSED = re.compile(
    r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z]{1,12}[-_][A-Za-z0-9]{3,40}|[0-9a-f]{12,64})\b"
)
"""What in a text looks like one: digits must be among it."""
MOST = 20
Handle = str | int


def handles(structured: object, text: str) -> list[tuple[str, Handle]]:
    """Names and values; of a text's, the name is `text`. At most MOST."""
    found = list(_in(structured, 4))
    found += [("text", one) for one in _UNGUESSED.findall(text) if re.search("[0-9]", one)]
    return found[:MOST]


def handle(argument: str, structured: object, text: str) -> Handle | None:
    """The one that an argument wants: of its own name, else of any, else the first of a text."""
    found = handles(structured, text)
    named = [value for name, value in found if name.casefold() == argument.casefold()]
    return next(iter([*named, *(value for _, value in found)]), None)


def unlike(value: Handle) -> Handle:
    """One of the same form that nobody was given."""
    if isinstance(value, int):
        return value + 7_654_321
    head, last = value[:-4], value[-4:]
    swapped = last.translate(str.maketrans("0123456789abcdefABCDEF", "7305916284cfebad" + "CFEBAD"))
    return head + (swapped if swapped != last else "0000")


def _in(value: object, depth: int) -> Iterator[tuple[str, Handle]]:
    if isinstance(value, list) and depth:
        for one in value[:MOST]:
            yield from _in(one, depth - 1)
    for key, one in value.items() if isinstance(value, dict) else ():
        known = type(one) is int or (isinstance(one, str) and 0 < len(one) <= 200)
        if known and NAMED.search(str(key)):
            yield str(key), one
        elif depth:
            yield from _in(one, depth - 1)
