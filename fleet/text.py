"""The one place that makes untrusted text safe to show.

Everything from a chain, a page, a compiler, a jail or a persona passes through `clean` before a terminal,
file or prompt sees it; `markdown`, `markdown_code` and `csv_cell` add what those formats need on top. `rich`
reads markup in plain strings: callers wrap cleaned text in `rich.text.Text`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from difflib import get_close_matches

LIMIT = 4_096
"""Default limit of `clean` in characters; an entry of the log has at most 2,048 bytes."""

MARKS = 3
"""Combining marks kept on one base character; living scripts need two or three, a Zalgo bomb has hundreds."""

_BODY = r"[^\x07\x1b\x90\x98-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)"
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # CSI: colours, cursor, erase
    rf"|(?:\x1b\]|\x9d){_BODY}"  # OSC: titles, links (8), clipboard (52)
    rf"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]){_BODY}"  # DCS, SOS, PM, APC strings
    r"|\x1b[ -/]{0,8}[0-~]"  # the short ones, e.g. reset
)
_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_SPACES = re.compile(" {2,}")
_ODD = re.compile("[^\x20-\x7e\n\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u4e00-\u9fff]")
"""What needs a closer look: everything outside ranges that hold only visible letters and signs."""
_HIDDEN = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x2060, 0x2070), 0x2800)
) | {0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9)}
"""Code points that are letters, marks or unassigned by category and yet show nothing: hiding places."""

_HIDDEN_PLANE = range(0xE0000, 0xE1000)
"""Tags and variation selectors of plane 14: invisible, and able to carry whole messages."""

_BAD = "\ufffd"


def clean(text: str, limit: int = LIMIT, *, newlines: bool = False) -> str:
    """Make untrusted text safe for a terminal, a file and a person; idempotent.

    Escape sequences, bidirectional controls and invisible characters go; other controls, private-use
    characters and lone surrogates become U+FFFD; marks are capped; line breaks become spaces unless
    `newlines`. At most `limit` characters come back, the last one an ellipsis if the text was cut.
    """
    cut = len(text) > limit * 8
    if cut:
        text = text[: limit * 8]  # bounds the work; far more than clean text of this length needs
    if not (text.isascii() and text.isprintable()):
        text = _ESCAPES.sub("", text)
        text = _BREAKS.sub("\n" if newlines else " ", text).replace("\t", " ")
        if _ODD.search(text):
            text = _visible(text)
    if cut or len(text) > limit:
        text = text[: max(limit - 1, 0)] + "…"[:limit]
    return text


def _visible(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for char in text:
        if " " <= char <= "~" or char == "\n":
            kept.append(char)
            marks = 0
            continue
        code, category = ord(char), unicodedata.category(char)
        if category == "Cf" or code in _HIDDEN or code in _HIDDEN_PLANE:
            continue
        if category[0] == "M":
            marks += 1
            if marks > MARKS:
                continue
        else:
            marks = 0
            if category in ("Cc", "Cs", "Co", "Cn"):
                char = _BAD
            elif category[0] == "Z":
                char = " "
        kept.append(char)
    return "".join(kept)


def line(text: str, limit: int = 200) -> str:
    """One cleaned line with single spaces and nothing at its ends: a title, a cell, a log message."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # most titles, in a fifth of the time
    return clean(_SPACES.sub(" ", clean(text, limit * 8)).strip(), limit)


def counted(number: int, one: str, many: str = "") -> str:
    """A count and its noun: `1 file`, `0 files`; `many` for a plural without a mere s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def cut_bytes(text: str, limit: int) -> str:
    """The text in at most `limit` UTF-8 bytes, cut on a character boundary, with an ellipsis if cut."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    mark = "…" if limit >= 3 else ""
    return raw[: limit - len(mark.encode())].decode("utf-8", "ignore") + mark


_MARKDOWN = re.compile(r"[\\`*_{}\[\]()<>|~#!$&]")
_AUTOLINK = re.compile(r"(?i):(?=//)|/(?=/)|@|(?<=\w)\.(?=[^\W\d_])|(?<=mailto):|(?<=xmpp):")
"""Where readers make a link by themselves: URLs, `//host`, mail addresses, and `name.tld`, `main.rs` too."""
_LIVE = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w{1,32};)|^#")
"""What a reader of Markdown acts on in a word, wherever it stands; an underscore inside a word is text."""
_START = re.compile(r"[#>]|(?:[-+=]+|\d+[.)])$")
_ESCAPED = re.compile(r"\||<[A-Za-z/!?]|\]\(")
_TRAIL = re.compile(r"[,:]*$")


def markdown(text: str, limit: int = LIMIT) -> str:
    """One line of cleaned text that Markdown shows as it is: no link, image, HTML, table or emphasis.

    Words that a reader of Markdown would act on stand in code spans, so that the text is legible unrendered
    too. A word with a `|`, which ends a cell of a table even there, with a link or with a tag is escaped.
    """
    parts: list[str] = []
    span: list[str] = []
    words = clean(text, limit).split(" ")
    first = next((at for at, word in enumerate(words) if word), 0)
    for at, word in enumerate(words):
        trail = _TRAIL.search(word)
        core = word[: trail.start()] if trail else word
        if _ESCAPED.search(word):
            parts += [*_spanned(span), _escaped(word)]
            span = []
        elif not (_LIVE.search(word) or _AUTOLINK.search(word) or (at == first and _START.match(word))):
            parts += [*_spanned(span), word]
            span = []
        elif core == word:
            span.append(word)
        else:
            parts.append(_spanned([*span, core])[0] + word[len(core) :])
            span = []
    return " ".join([*parts, *_spanned(span)])


def _spanned(words: list[str]) -> list[str]:
    return [markdown_code(" ".join(words))] if words else []


def _escaped(word: str) -> str:
    shown = _MARKDOWN.sub(lambda match: "\\" + match[0], word)
    return re.sub(r"^([-+=]|\d+(?=[.)]))", _escape_start, _AUTOLINK.sub(lambda match: "\\" + match[0], shown))


def _escape_start(match: re.Match[str]) -> str:
    return f"{match[1]}\\" if match[1].isdigit() else f"\\{match[1]}"


def markdown_code(text: str, limit: int = LIMIT) -> str:
    """One line of cleaned text as a code span that also survives in a table cell."""
    shown = clean(text, limit).replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are full-width forms, which some spreadsheets read as the first."""


def csv_cell(text: str, limit: int = LIMIT) -> str:
    """Cleaned text that a spreadsheet does not read as a formula; the csv module quotes it. A dash alone,
    which stands for nothing, is none."""
    shown = clean(text, limit)
    return "'" + shown if shown.lstrip().startswith(_FORMULA) and shown != "-" else shown


def spoken(text: str) -> str:
    """How a run or a model ended, without the underscores of its names in the source."""
    return _NAMES.sub(lambda found: found[0].replace("_", " "), text)


_NAMES = re.compile(r"\b(?!qa_)[a-z]+(?:_[a-z]+)+\b")


def suggestion(word: str, known: Collection[str]) -> str:
    """`; did you mean 'x'?` for the closest known word, else nothing."""
    close = get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
