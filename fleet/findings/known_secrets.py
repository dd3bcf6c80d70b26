"""Finds exact secrets in a text that may hide them: encoded, reversed, split into pieces. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from html import unescape
from urllib.parse import quote, unquote

MIN_SECRET = 8
"""Shorter registered values would mask half of any text; registering one is a mistake."""
PIECE = 12
"""Consecutive letters and digits of a secret, in any form, that count as a piece of it."""
_PLAIN = re.compile(r"[^0-9a-z]+")
_ESCAPE = re.compile(
    r"%[0-9a-fA-F]{2}|\\{1,4}(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});"
)
LAYERS = 2
"""Escapes within escapes that are undone."""

Spot = tuple[str, int, int]
"""A character in plain letters, and where in the text it stands."""


class KnownSecrets:
    """Exact values in all forms in which a text can hold them; its repr reveals nothing.

    A form is compared by letters and digits alone, whatever their case: so blanks, quotes, line breaks or
    other signs between its pieces, and upper case, hide nothing. ValueError for a value too short to mask.
    """

    __slots__ = ("_exact", "_pieces", "longest")

    def __init__(self, secrets: Iterable[str | bytes], *, piece: int = PIECE) -> None:
        """`piece`: the least piece of a secret as it is, or reversed; that of an encoded one is PIECE."""
        spellings: set[str] = set()
        self._pieces: dict[int, set[str]] = {}
        for secret in secrets:
            spellings |= _spellings(secret)
            for form, least in _forms(secret, piece):
                size = min(least, len(form))
                grams = (form[at : at + size] for at in range(len(form) - size + 1))
                self._pieces.setdefault(size, set()).update(grams)
        first = sorted(spellings, key=lambda text: (-len(text), text))
        self._exact = re.compile("|".join(map(re.escape, first)), re.IGNORECASE) if first else None
        self.longest = max(map(len, spellings), default=0)

    def __repr__(self) -> str:
        return "KnownSecrets()"

    def masked(self, text: str, mask: str) -> str:
        """The text with `mask` instead of every secret, and of every piece of one."""
        if self._exact is None:
            return text
        text = self._exact.sub(mask, text)
        shown, at = "", 0
        for begin, end in sorted(self._hidden(text)):
            if begin >= at:
                shown, at = f"{shown}{text[at:begin]}{mask}", end
            at = max(at, end)
        return shown + text[at:]

    def _hidden(self, text: str) -> Iterator[tuple[int, int]]:
        """Where pieces stand, in the text as it is and in what it says without its escapes."""
        if self._shows(text):
            yield from self._found([(char, at, at + 1) for at, char in enumerate(text)])
        plain = text
        for _ in range(LAYERS):
            if (undone := _ESCAPE.sub(lambda hit: _char(hit[0]), plain)) == plain:
                return
            plain = undone
            if self._shows(plain):
                spots = [(char, at, at + 1) for at, char in enumerate(text)]
                for _ in range(LAYERS):
                    spots = _undone(spots)
                    yield from self._found(spots)
                return

    def _shows(self, text: str) -> bool:
        plain = _plain(text)
        return any(
            plain[at : at + size] in grams
            for size, grams in self._pieces.items()
            for at in range(len(plain) - size + 1)
        )

    def _found(self, spots: list[Spot]) -> Iterator[tuple[int, int]]:
        kept = [(char, begin, end) for one, begin, end in spots for char in _plain(one)]
        plain = "".join(char for char, _, _ in kept)
        for size, grams in self._pieces.items():
            run = -1
            for at in range(len(plain) - size + 2):
                hit = plain[at : at + size] in grams
                if hit and run < 0:
                    run = at
                elif not hit and run >= 0:
                    yield kept[run][1], kept[at - 1 + size - 1][2]
                    run = -1


def _plain(text: str) -> str:
    return _PLAIN.sub("", text.lower())


def _undone(spots: list[Spot]) -> list[Spot]:
    """The same text with one layer of escapes undone: each stands where its characters stood."""
    text = "".join(char for char, _, _ in spots)
    made, last = list[Spot](), 0
    for hit in _ESCAPE.finditer(text):
        made += spots[last : hit.start()]
        char = _char(hit[0])
        if len(char) == 1:
            made.append((char, spots[hit.start()][1], spots[hit.end() - 1][2]))
        last = hit.end()
    return made + spots[last:]


def _char(escape: str) -> str:
    if escape.startswith("\\"):
        return chr(int(escape.lstrip("\\")[1:], 16))
    return unquote(escape) if escape.startswith("%") else unescape(escape)


def _raws(secret: str | bytes) -> list[bytes]:
    if isinstance(secret, bytes):
        return [bytes(secret)]
    bare = secret[2:] if secret[:2] in ("0x", "0X") else secret
    found = [secret.encode("utf-8", "surrogatepass")]
    return [*found, bytes.fromhex(bare)] if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", bare) else found


def _forms(secret: str | bytes, piece: int) -> Iterator[tuple[str, int]]:
    """Letters and digits of each form, forwards and backwards, and the least piece of it."""
    told = [secret.strip()] if isinstance(secret, str) else []
    raws = _raws(told[0] if told else secret)
    encoded = [raw.hex() for raw in raws]
    encoded += [part for raw in raws for turned in (raw, raw[::-1]) for part in _of_base64(turned)]
    encoded += [str(int.from_bytes(raw)) for raw in raws if len(raw) >= 16]
    for texts, least in ((told, piece), (encoded, PIECE)):
        for form in map(_plain, texts):
            if len(form) >= MIN_SECRET:
                yield form, least
                yield form[::-1], least


def _of_base64(raw: bytes) -> Iterator[str]:
    """What is the same in every base64 of a text with this in it, by its place; both alphabets."""
    for before in range(3):
        size = (before + len(raw)) * 4 // 3
        whole = base64.b64encode(b"\0" * before + raw + b"\0\0")
        for coded in (whole, whole.translate(bytes.maketrans(b"+/", b"-_"))):
            yield coded.decode()[(0, 2, 3)[before] : size]


def _spellings(secret: str | bytes) -> set[str]:
    """Spellings of a secret in a log: hex, base64, URL-encoded, decimal, or as Python prints bytes."""
    if len(secret) < MIN_SECRET:
        raise ValueError(f"a secret of fewer than {MIN_SECRET} characters cannot be masked")
    forms: set[str] = set()
    if isinstance(secret, str):
        secret = secret.strip()
        bare = secret[2:] if secret[:2] in ("0x", "0X") else secret
        forms |= {secret, bare, quote(secret, safe="")}
    for raw in _raws(secret):
        forms |= {raw.hex(), repr(raw)[2:-1], base64.b64encode(raw).decode().rstrip("=")}
        forms.add(base64.urlsafe_b64encode(raw).decode().rstrip("="))
        if len(raw) >= 16:
            forms.add(str(int.from_bytes(raw)))
    return {form for form in forms if len(form) >= MIN_SECRET}
