"""`+++` front matter: its extent, its values, and the line of each key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from fleet.errors import PersonaError
from fleet.text import clean

Loc = tuple[int | str, ...]
"""A value's location, as pydantic reports it: `("probe", 1, "steps", 0, "tool")`."""

FENCE = "+++"
DOTS = 128
"""Dots on one line of TOML: a key of n parts costs tomllib n * n steps, and 32,000 parts fit into a file."""
_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)$|\s*\(at end of document\)$")
_HIDDEN = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)|' r"'''[\s\S]*?(?:'''|\Z)|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'|#[^\n]*"
)
_HEADER = re.compile(r"^[ \t]*\[{1,2}[ \t]*([A-Za-z0-9_.-]+)[ \t]*\]{1,2}[ \t]*$", re.MULTILINE)
_STRING = re.compile(r"[A-Za-z0-9_.-]+[ \t]*=[ \t]*(\"\"\"|'''|\"|')(?:(?<=\"\"\"|''')\r?\n)?")
_ESCAPE = re.compile(r"\\(?:u.{4}|U.{8}|[ \t]*\r?\n\s*|.)|\r\n|.", re.DOTALL)
_WORD = r"(?<![A-Za-z0-9_.-])"


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The two halves of a file; `first` is the file's line on which `toml` starts."""

    toml: str
    body: str
    first: int = 2

    def data(self, file: str) -> dict[str, Any]:
        """The TOML as plain values; PersonaError with the line of a syntax error."""
        for number, text in enumerate(self.toml.split("\n"), self.first):
            if text.count(".") > DOTS:
                remedy = "break the line: a text may span lines between three quotes"
                raise PersonaError(f"more than {DOTS} dots on a line", file=file, line=number, remedy=remedy)
        try:
            return tomllib.loads(self.toml)
        except RecursionError:
            raise PersonaError("nested too deeply", file=file, line=self.first, remedy="flatten it") from None
        except ValueError as error:  # TOMLDecodeError, and int() on thousands of digits
            message = str(error)
        at = _AT_LINE.search(message)
        reason = clean(message[: at.start()] if at else message, 200)
        line = int(at[1]) if at and at[1] else max(1, self.toml.count("\n")) if at else 1
        remedy = "fix the syntax at that line"
        raise PersonaError(f"not TOML: {reason}", file=file, line=self.first + line - 1, remedy=remedy)

    def line(self, loc: Loc) -> int:
        """The file's line of the key at `loc`, or of its table, or 0.

        TOML libraries give no positions, so this looks for the key's text inside its table's text; strings
        and comments are blanked first. Best effort: a wrong guess only costs the reader a glance.
        """
        at, _ = self._position(loc)
        return self.first + self.toml.count("\n", 0, at) if at >= 0 else 0

    def place(self, loc: Loc, offset: int) -> tuple[int, int]:
        """The file's line and column of one character of the string at `loc`; column 0 if it is not found."""
        at, whole = self._position(loc)
        start = _STRING.match(self.toml, at) if whole else None
        if start is None:
            return self.line(loc), 0
        here, basic = start.end(), start[1].startswith('"')
        for _ in range(offset if basic else 0):
            while found := _ESCAPE.match(self.toml, here):
                here = found.end()
                if not re.match(r"\\[ \t]*\r?\n", found[0]):  # a line's end that is escaped yields nothing
                    break
        here += 0 if basic else offset
        return self.first + self.toml.count("\n", 0, here), here - self.toml.rfind("\n", 0, here)

    def _position(self, loc: Loc) -> tuple[int, bool]:
        """Position of the key at `loc` or of the nearest table above it (-1: none), and whether all of it was
        found."""
        text = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), self.toml)
        at, end, rest = _table(text, loc)
        for part in rest if at >= 0 else ():
            found = _step(text, part, at, end)
            if found < 0:
                return at, False
            at = found
        return at, at >= 0


def _table(text: str, loc: Loc) -> tuple[int, int, Loc]:
    """Start (-1 for none) and end of the table that `loc` is in, and the rest of `loc`."""
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    own = [(h, end) for h, end in zip(headers, ends, strict=False) if loc and h[1] == loc[0]]
    index = loc[1] if len(loc) > 1 and isinstance(loc[1], int) else None
    if (index or 0) < len(own):
        header, end = own[index or 0]
        return header.start(1), end, loc[1:] if index is None else loc[2:]
    top = headers[0].start() if headers else len(text)
    known = bool(loc) and _step(text, loc[0], 0, top) >= 0
    return (0, top, loc) if known else (-1, 0, ())


def _step(text: str, part: int | str, at: int, end: int) -> int:
    """Position of one part of a location in the text after `at`, or -1."""
    if isinstance(part, int):
        depth = 0
        for here in range(at, end):  # a table of the array: found by counting brackets
            if text[here] in "[{":
                depth += 1
                if text[here] == "{" and depth == 2:
                    if part == 0:
                        return here
                    part -= 1
            elif text[here] in "]}":
                depth -= 1
                if depth <= 0:
                    break
        return -1
    match = re.compile(rf"{_WORD}{re.escape(part)}[ \t]*[=.]").search(text, at, end)
    return match.start() if match else -1


def split(text: str, file: str) -> FrontMatter:
    """The front matter and the body of a persona file; PersonaError when either fence is missing."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise PersonaError("no front matter", file=file, line=1, remedy=f"start the file with a line {FENCE}")
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            toml = "\n".join([*lines[1:index], ""])
            return FrontMatter(toml, "\n".join(lines[index + 1 :]))
    remedy = f"end it with a line {FENCE}"
    raise PersonaError(
        "the front matter has no end", file=file, line=text.rstrip("\n").count("\n") + 1, remedy=remedy
    )
