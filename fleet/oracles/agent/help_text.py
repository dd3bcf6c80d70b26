"""The commands that an agent's help text names, read from its usual forms. Pure; the text is untrusted."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOKED_AT = 4_000
DOCUMENT = 60_000
"""Characters of a document that are read."""
MOST = 24
"""Commands of one text."""

_QUOTED = re.compile(
    r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|«([^»\n]{2,80})»"
    r"|(?<!\w)'([^'\n]{2,60})'(?!\w)"
)
_BULLET = re.compile(r"(?m)^[ \t]{0,8}(?:[-*•+]|\d{1,2}[.)])[ \t]+([^\n]{2,160})$")
_VALUE = r"<[^>\n]{1,30}>|\[[^\]\n]{1,30}\]|[A-Z]{1,12}\b"
_SLASH = re.compile(rf"(?<![\w/:.])(/[a-z][a-z0-9_-]{{1,30}}(?![\w/-]|\.\w)(?: (?:{_VALUE}))*)")
_LIST = re.compile(
    r"\b(?:ask(?: me)?|commands?(?: are)?|try|say|type|write|send(?: me)?|supported|available|respond to"
    r"|usage|also|react to|options|menu|features|skills|i (?:understand|answer|know|can)|you can)\b"
    r"[^:\n.;]{0,40}:[ \t]*(?=(\n?[^\n]{4,600}(?:\n[^\n]{2,80}){0,20}))",
    re.IGNORECASE,
)
_DESCRIBED = re.compile(r"\s+(?:[-–—=]|->|→|:)\s+|:\s+|\s{2,}|\t")
_HOLE = re.compile(r"<([^<>\n]{1,30})>|\[([^\[\]\n]{1,30})\]|\b([A-Z][A-Z_]{0,15})\b|(\.\.\.|…)")
_LETTERS = re.compile(r"[a-zA-Z]{2}")
_NUMERIC = re.compile(r"^(?:n|num|number|count|digits?|times|k|amount|int|integer|limit|size|steps?)$", re.I)
_SHOUTED = frozenset({"I", "A", "OK", "URL", "JSON", "API", "ID", "AI", "FAQ", "QA", "TODO"})
_SENTENCE = re.compile(r"(?<!\d)[.!](?:\s|$)")
_HEADS = frozenset({"tools", "tool", "commands", "help", "examples", "usage", "and more", "more", "note"})
_COMMANDS = frozenset({"tools", "commands", "help", "usage"})
_TELLS = re.compile(
    r"\b(?:commands?|say|also|type|try|ask me|send(?: me)?|write|usage|respond to|react to)\b", re.I
)
_TOLD = re.compile(rf"(?:{_TELLS.pattern})\s*$", re.IGNORECASE)
"""Right before the colon: a single thing after it is what to say, and not a remark on commands."""
_SYNTAX = re.compile(r"\b(?:i|we) (?:understand|know|answer)\b", re.IGNORECASE)
"""Before a list in which an item has a place for a value: then its items are what to say."""
_HINT = re.compile(
    r"\b(?:say|type|try|send(?: me)?|ask(?: me)?|enter|write)\b:? {0,2}[`'\"“]?"
    r"(/?[a-z?][a-z? ]{2,30}?)[`'\"”]?(?= (?:for|to|and)\b|[.!,;]|$)",
    re.IGNORECASE,
)
_OWNERS = re.compile(
    r"\b(?:owner|admin(?:istrator)?|operator|author|creator|staff)s?\b[^.;\n]{0,20}\bonly\b"
    r"|\bonly\b[^.;\n]{0,24}\b(?:owner|admin(?:istrator)?|operator|author|creator|staff)s?\b"
    r"|\b(?:my|its|their) [a-z]{3,20} only\b|\bonly (?:my|its|their) [a-z]{3,20}\b",
    re.IGNORECASE,
)
_REMARK = re.compile(r"(?<=\S) {1,2}\([^()\n]{2,60}\)[ .]{0,2}$")
"""What is said of a command after it, as in `close_dock N (my keeper only)`."""
_ENDED = re.compile(r"[.!?][\"'`]?\s|\n")
BEFORE = 120
"""Characters of the same sentence before a quoted command in which the text tells its reader to say it."""
_DIGITS = re.compile(r"\b\d{1,4}\b")


@dataclass(frozen=True, slots=True)
class Command:
    """One command as the help text spells it, e.g. `set motto TEXT`.

    `sure`: the text tells its reader to say this; else it may be a topic, or a word in quotation marks.
    """

    spelled: str
    sure: bool = True

    @property
    def holes(self) -> tuple[str, ...]:
        """Names of the places for a value, in lower case."""
        found = (next(filter(None, hit.groups()), "") for hit in _HOLE.finditer(self.spelled))
        return tuple(name.lower() for name in found if name not in _SHOUTED)

    def filled(self, *values: str) -> str:
        """The message with these values in its places; the last one serves for all that follow."""
        given = list(values) or ["moss"]

        def value(hit: re.Match[str]) -> str:
            name = next(filter(None, hit.groups()), "")
            if name in _SHOUTED:
                return hit[0]
            chosen = given.pop(0) if len(given) > 1 else given[0]
            return "3" if _NUMERIC.match(name) and not values else chosen

        return _HOLE.sub(value, self.spelled)

    @property
    def numeric(self) -> bool:
        """Whether it takes a number: a place for one, or an example with one."""
        return any(map(_NUMERIC.match, self.holes)) or bool(_DIGITS.search(self.spelled))

    def sized(self, size: int) -> str:
        """The message with this number in it."""
        if any(map(_NUMERIC.match, self.holes)):
            return self.filled(str(size))
        return _DIGITS.sub(str(size), self.filled("moss"), count=1)


def commands(text: str) -> tuple[Command, ...]:
    """Commands that a help text names: quoted, after a slash, in a list of its own, or after `try:`."""
    text = text[:LOOKED_AT]
    found: list[tuple[str, bool]] = []
    holes = any(_HOLE.search(hit[0]) for hit in _QUOTED.finditer(text))
    for hit in (*_QUOTED.finditer(text), *_SLASH.finditer(text)):
        before = _ENDED.split(text[max(0, hit.start() - BEFORE) : hit.start()])[-1]
        instructs = bool(_TELLS.search(before) or (holes and _SYNTAX.search(before)))
        several = hit[0].startswith("/") and len(_SLASH.findall(text)) > 1
        found.append((next(filter(None, hit.groups())), instructs or several))
    bullets = list(_BULLET.finditer(text))
    head = text[: bullets[0].start()].rstrip().rpartition("\n")[2] if len(bullets) > 1 else ""
    for hit in bullets if len(bullets) > 1 else ():
        found.append(
            (_DESCRIBED.split(hit[1].strip("`\"'"))[0].strip("`\"'"), _TELLS.search(head) is not None)
        )
    for hit in _LIST.finditer(text):
        instructs = _TELLS.search(head := hit[0].partition(":")[0]) is not None
        mark, items = _items(hit[1])
        instructs = instructs and bool(mark or _TOLD.search(head))
        instructs = instructs or bool(_SYNTAX.search(hit[0]) and any(Command(item).holes for item in items))
        found += [(item, instructs and mark in ("", ";", "|")) for item in items]
    kept: dict[str, bool] = {}
    for raw, sure in found:
        if one := _tidied(raw, sure):
            kept[one] = kept.get(one, False) or sure
    return tuple(Command(one, sure) for one, sure in kept.items())[:MOST]


def _items(tail: str) -> tuple[str, list[str]]:
    """The items of a list, one a line or inline, and their separator; none where it could be prose."""
    lines = tail.strip("\n").split("\n")
    if tail.startswith("\n") and len(lines) > 1:
        return "\n", [_DESCRIBED.split(one.strip().lstrip("-*•+ "))[0] for one in lines]
    tail = lines[0]
    for mark in (";", "|", ","):
        items = [one.strip() for one in _SENTENCE.split(tail)[0].split(mark)]
        if len(items) > 1:
            bare = [_DESCRIBED.split(re.sub(r"^(?:and|or) ", "", one))[0] for one in items]
            short = [one for one in bare if len(one.split()) <= 7]
            return mark, short if mark != "," or len(short) == len(items) > 2 else []
    only = _SENTENCE.split(tail)[0].strip()
    return "", [only] if _HOLE.search(only) and len(only.split()) <= 7 else []


def _tidied(raw: str, sure: bool) -> str:
    """One command without its punctuation; "" for what cannot be one. `sure`: a heading's word may be one."""
    said = " ".join(_REMARK.sub("", raw).strip(" \t`\"'“”*_").rstrip(".,;:").split())
    bad = (
        said.lower() in (_HEADS - _COMMANDS if sure else _HEADS)
        or "://" in said
        or "{" in said
        or "}" in said
        or not _LETTERS.search(said)
    )
    return "" if bad or len(said) > 80 or len(said.split()) > 8 else said


_TO_AGENTS = re.compile(
    r"\b(?:agents?|assistants?|bots?)\b[^\n]{0,60}\b(?:understands?|knows?|answers?|commands?|say|ask|told?)\b"
    r"|\bcommands?\b[^\n]{0,40}\b(?:agents?|assistants?|bots?)\b|^#{1,6} [^\n]{0,40}\bcommands?\b",
    re.IGNORECASE,
)
"""The line of a document after which it lists what to say to an agent."""
_ITEM = re.compile(r"^[ \t]{0,8}(?:[-*•+|]|\d{1,2}[.)])[ \t]*(?:`([^`\n]{2,80})`|([^|\n]{2,160}))")
_REQUEST = re.compile(r"^(?:GET|HEAD|POST|PUT|PATCH|DELETE)\b|^/\S{0,80}/|\w\(")


def documented(text: str) -> tuple[Command, ...]:
    """Commands that a document of the platform lists as what its agents understand."""
    found: dict[str, None] = {}
    listing = False
    for row in text[:DOCUMENT].splitlines():
        if item := _ITEM.match(row) if listing else None:
            raw = item[1] or _DESCRIBED.split(item[2].strip())[0]
            one = "" if _REQUEST.search(raw) else _tidied(raw, True)
            found |= {one: None} if one else {}
        elif row.strip():
            listing = _TO_AGENTS.search(row) is not None and row.rstrip().endswith(
                (":", "commands", "Commands")
            )
    return tuple(map(Command, found))[:MOST]


_TOOL = re.compile(
    r"(?<![\w./-])([a-z]{2,20}(?:_[a-z0-9]{2,20}){1,4}|[a-z]{2,12}(?:[A-Z][a-z]{2,15}){1,3})(?![\w/-]|\.\w)"
)
_TOOLS = re.compile(r"\btools?\b[^:\n]{0,30}:[ \t]*([^\n.]{3,400})", re.IGNORECASE)
_TOOL_WORD = re.compile(r"(?<![\w-])[a-z][a-zA-Z_-]{2,40}(?![\w-])")


def tools(text: str) -> tuple[str, ...]:
    """Words of a text that are spelled like a tool: `delete_file`, `sendPayment`, or listed as one."""
    text = text[:LOOKED_AT]
    found = [hit[1] for hit in _TOOL.finditer(text)]
    for listed in _TOOLS.finditer(text):
        items = [item.strip(" `\"'") for item in re.split(r"[,;|]| and ", listed[1])]
        found += [item for item in items if _TOOL_WORD.fullmatch(item)]
    return tuple(dict.fromkeys(found))[:MOST]


def hints(text: str) -> tuple[str, ...]:
    """What an answer to words without a meaning tells its reader to say instead."""
    found = (" ".join(hit[1].split()) for hit in _HINT.finditer(text[:LOOKED_AT]))
    return tuple(dict.fromkeys(found))[:3]


def reserved(text: str) -> tuple[str, ...]:
    """Tools that a text says to be for an owner or the like only."""
    parts = re.split(r"(?<=[.;!?])\s+|\n", text[:LOOKED_AT])
    return tuple(tool for part in parts if _OWNERS.search(part) for tool in tools(part))
