"""Pairs of sources that must behave alike, whatever the compiler: metamorphic relations. Pure.

A pair is checked by making it again: `related` says which relation leads from a source to its variant, so
both sides of the fence agree without trust. A relation makes nothing of a source it is not certain about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

MAX_SOURCE = 65_536
"""Characters of a source that variants are made of."""
MAX_RENAMED = 12

_SKIPPED = r"//[^\n]*|/\*.*?\*/|;;[^\n]*"
_STRING = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])'|`(?:\\.|[^`\\])*`"
_TOKEN = re.compile(
    rf"(?P<blank>\s+|{_SKIPPED})|(?P<string>{_STRING})|(?P<name>\$?[A-Za-z_][\w$]*)|(?P<number>\d[\w.]*)"
    r"|(?P<sign>::|=>|->|\.\.|.)",
    re.DOTALL,
)
_DECLARES = frozenset({"let", "const", "var"})
_ITEM_STARTS = frozenset({"pub", "fn", "const", "enum", "#", "function", "export"})
_NOT_BEFORE = frozenset(
    {".", "::", "@", "#", "fn", "function", "enum", "export", "class", "struct", "import"}
)
_NOT_AFTER = frozenset({"(", "!", "::"})
_FUNCTION = re.compile(r"^(?:#\[[^\]]*\]\s*)*(?:(?:pub|export)\s+)?(?:fn|function)\s")
_FRESH = "zq"
_LONG = 70
"""Letters of the longest name that a local gets."""
_DEAD = {
    "function": ("", " let zqdead: i32 = 1 + 2;", ""),
    "fn": (
        "const ZQ1: i32 = 1;\nfn zqdead() -> i32 { return ZQ1; let zq2: i32 = 1; zq2 }\n",
        " let _ = 3; let _zq3: i32 = 1; let zq: i32 = _zq3; let zq: i32 = zq + 1; let zq: i32 = zq;",
        "\nenum Zq4 { A }\nfn zq5() { }\nconst ZQ6: i32 = 2;\n",
    ),
}
"""By the word of a function: what comes in front of all else, first in the first function, and last."""
_SIGNATURE = re.compile(r"\bfn\s+(\w+)\s*\(([^()]*)\)\s*(->\s*\w+)?")
_VALUES = {"i32": "1", "i64": "1", "f32": "1.0", "bool": "true"}
"""Of the types of a language with `fn`."""
_DEAD_WAT = " (func $zqdead (result i32) (i32.add (i32.const 1) (i32.const 2)))"


@dataclass(frozen=True, slots=True)
class SourceVariant:
    """`relation` is `renamed locals`, `dead code` or `reordered items`."""

    relation: str
    source: str


@dataclass(frozen=True, slots=True)
class SourceToken:
    kind: str
    text: str
    at: int
    depth: int
    """Braces that are open before it; a brace belongs to the outside."""


def variants(source: str, forms: Collection[int] | None = None) -> tuple[SourceVariant, ...]:
    """Each certain relation's variants of the source, in a fixed order; the same for the same source. With
    `forms`, of these rows of the table only."""
    if len(source) > MAX_SOURCE or _FRESH in source.lower():
        return ()
    return tuple(
        SourceVariant(relation, variant)
        for form, (relation, make) in enumerate(RELATIONS)
        if (forms is None or form in forms) and (variant := make(source)) and variant != source
    )


def related(source: str, variant: str) -> str:
    """The relation that leads from one to the other, in either direction; "" for none."""
    for first, second in ((source, variant), (variant, source)):
        for made in variants(first):
            if made.source == second:
                return made.relation
    return ""


def _tokens(source: str) -> list[SourceToken]:
    """Tokens without blanks and comments."""
    found, depth = [], 0
    for hit in _TOKEN.finditer(source):
        kind = hit.lastgroup or ""
        if kind == "blank":
            continue
        depth -= hit[0] == "}"
        found.append(SourceToken(kind, hit[0], hit.start(), depth))
        depth += hit[0] == "{"
    return found


def _short(at: int) -> str:
    return f"{_FRESH}{at}"


def _capital(at: int) -> str:
    """Without a digit."""
    return f"{_FRESH.capitalize()}{chr(ord('a') + at)}"


def _long(at: int) -> str:
    """With `_` in front, and a digit from 0 on at the end."""
    return f"_{_FRESH.ljust(_LONG - 2, 'o')}{at}"


def _renamed(source: str, name_of: Callable[[int], str]) -> str:
    """Every local that can be renamed with certainty, each occurrence in the file."""
    tokens = _tokens(source)
    declared = _wat_locals(tokens) if _is_wat(tokens) else _locals(tokens)
    fresh = {name: "$" * name.startswith("$") + name_of(at) for at, name in enumerate(declared)}
    pieces, end = [], 0
    for token in tokens:
        if token.kind == "name" and token.text in fresh:
            pieces += [source[end : token.at], fresh[token.text]]
            end = token.at + len(token.text)
    return "".join((*pieces, source[end:]))


def _locals(tokens: Sequence[SourceToken]) -> list[str]:
    """Names declared by `let` and the like inside braces that can be nothing else than variables."""
    texts = ["", *(token.text for token in tokens), "", ""]
    declared: dict[str, None] = {}
    refused: set[str] = set()
    strings = "".join(token.text for token in tokens if token.kind == "string")
    if "struct" in texts or "class" in texts:
        return []
    for at, token in enumerate(tokens, 1):
        if token.kind != "name":
            continue
        before = texts[at - 2] if texts[at - 1] == "mut" and at > 1 else texts[at - 1]
        declares = before in _DECLARES and texts[at + 1] in ("=", ":", ";")
        if declares and token.depth > 0:
            declared[token.text] = None
        elif declares or not _is_use(texts, at) or token.text in strings:
            refused.add(token.text)
    return [name for name in declared if name not in refused and name not in strings][:MAX_RENAMED]


def _is_use(texts: Sequence[str], at: int) -> bool:
    """Neither a member, a type, a function, a field, a label nor a short form of a property."""
    before, after = texts[at - 1], texts[at + 1]
    short = before in "{," and after in ",}"
    return before not in _NOT_BEFORE and after not in _NOT_AFTER and after != ":" and not short


def _is_wat(tokens: Sequence[SourceToken]) -> bool:
    return [token.text for token in tokens[:2]] == ["(", "module"]


def _wat_locals(tokens: Sequence[SourceToken]) -> list[str]:
    """`(local $x` and `(param $x`: an index by another name, in whatever other space the name is used."""
    texts = [token.text for token in tokens]
    named = (
        texts[at + 2]
        for at in range(len(texts) - 2)
        if texts[at] == "(" and texts[at + 1] in ("local", "param") and texts[at + 2].startswith("$")
    )
    return list(dict.fromkeys(named))[:MAX_RENAMED]


def _dead(source: str) -> str:
    """Locals that nothing reads in the first function, and items that nothing uses."""
    tokens = _tokens(source)
    if _is_wat(tokens):
        if tokens[-1].text != ")" or not _balanced(tokens):
            return ""
        return source[: tokens[-1].at] + _DEAD_WAT + source[tokens[-1].at :]
    for start, token in enumerate(tokens):
        if token.depth == 0 and token.text in _DEAD:
            before, inside, after = _DEAD[token.text]
            for later in tokens[start:]:
                if later.text == "{":
                    return before + source[: later.at + 1] + inside + source[later.at + 1 :] + after
    return ""


def _used(source: str) -> str:
    """A function that nothing calls, and that calls each function with plain parameters."""
    calls = []
    for hit in _SIGNATURE.finditer(source):
        types = [one.partition(":")[2].strip() for one in hit[2].split(",") if one.strip()]
        if all(one in _VALUES for one in types):
            calls.append(f"{'let _ = ' * bool(hit[3])}{hit[1]}({', '.join(_VALUES[one] for one in types)});")
    return f"{source}\nfn zq7() {{ {' '.join(calls)} }}\n" if calls else ""


def _balanced(tokens: Sequence[SourceToken]) -> bool:
    """Whether the last parenthesis closes the first."""
    depth = 0
    for token in tokens[:-1]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return False
    return depth == 1


def _reordered(source: str) -> str:
    """The functions of a file of functions and constants, last first, behind all else. Not with texts or
    arrays: the order of what they leave in memory is the compiler's choice, and an address may be part of the
    behaviour."""
    tokens = _tokens(source)
    if any(token.kind == "string" or token.text in ("[", "&") for token in tokens):
        return ""
    items = list(_items(source, tokens))
    if len(items) < 2 or "" in items:
        return ""
    functions = [item for item in items if _FUNCTION.search(item)]
    return "\n".join([*(item for item in items if item not in functions), *reversed(functions)])


def _items(source: str, tokens: Sequence[SourceToken]) -> Iterator[str]:
    """The text of each item of the top level; "" for one that cannot be moved."""
    first = 0
    for at, token in enumerate(tokens):
        if token.depth == 0 and token.text in ("}", ";"):
            movable = tokens[first].text in _ITEM_STARTS
            yield source[tokens[first].at : token.at + 1] if movable else ""
            first = at + 1
    if first < len(tokens):
        yield ""


RELATIONS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("renamed locals", partial(_renamed, name_of=_short)),
    ("renamed locals", partial(_renamed, name_of=_capital)),
    ("renamed locals", partial(_renamed, name_of=_long)),
    ("dead code", _dead),
    ("dead code", _used),
    ("reordered items", _reordered),
)
