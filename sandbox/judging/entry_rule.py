"""Whether a source defines one of a platform's entry functions, so that its module must export one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])'|`(?:\\.|[^`\\])*`", re.DOTALL
)
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|[^\s\w]|\d\w*")
_BEFORE = {
    "rust": (("fn",),),
    "typescript": (("export", "function"),),
    "c": (("int",), ("void",), ("float",), ("double",), ("long",)),
    "go": (("func",),),
    "": (("fn",), ("func",), ("fun",)),
}
"""By family: the tokens before the name of a function that a module exports, at the top level. A family that
is not listed has no such rule."""
_HIDDEN = frozenset({"static", "inline", "extern", "async", "const", "unsafe"})
"""With one of these before it, a definition is another matter."""
_ENDS = frozenset("};")


def defines(source: str, entries: Sequence[str], family: str) -> bool:
    """Whether the source certainly defines one of them as a plain top-level function with a body."""
    before = _BEFORE.get(family, ())
    return any(
        tokens[at] in entries
        and tokens[at + 1 : at + 2] == ["("]
        and any(tuple(tokens[max(at - len(one), 0) : at]) == one for one in before)
        and not _HIDDEN & set(_item(tokens, at))
        and _has_body(tokens, at)
        for tokens in (list(_top_level(source)),)
        for at in range(len(tokens))
    )


def _top_level(source: str) -> Iterator[str]:
    """Tokens outside braces; each pair of braces as `{` and `}`. Nothing of a source that does not nest."""
    depth = 0
    for hit in _TOKEN.finditer(_NOISE.sub(" 0 ", source)):
        token = hit[0]
        depth -= token == "}"
        if depth <= 0:
            yield token
        depth += token == "{"


def _item(tokens: Sequence[str], at: int) -> Sequence[str]:
    """The tokens of the item before its name."""
    start = at
    while start and tokens[start - 1] not in _ENDS:
        start -= 1
    return tokens[start:at]


def _has_body(tokens: Sequence[str], at: int) -> bool:
    for token in tokens[at:]:
        if token in "{;":
            return token == "{"
    return False
