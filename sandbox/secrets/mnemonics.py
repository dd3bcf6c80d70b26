"""Wallet phrases by BIP-39: twelve to twenty-four words of one list whose last bits are a checksum."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from functools import cache
from pathlib import Path

LENGTHS = (24, 21, 18, 15, 12)
_RUN = re.compile(r"(?<![A-Za-z])[a-z]{3,8}(?:[\s,\"']{1,6}(?:\d{1,2}[.)]\s?)?[a-z]{3,8}){11,}(?![A-Za-z])")
_WORD = re.compile(r"[a-z]{3,8}")
_PUBLIC = frozenset({"abandon", "test", "zoo", "legal", "letter"})
"""First words of the phrases that BIP-39's vectors and every development node publish."""


@cache
def bip39_words() -> tuple[str, ...]:
    """The English BIP-39 list that eth-account ships, in its order, read without importing it; or none.

    Read only when twelve candidate words in a row turned up.
    """
    spec = importlib.util.find_spec("eth_account")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(root) / "hdaccount" / "wordlist" / "english.txt"
        if path.is_file():
            return tuple(path.read_text(encoding="utf-8").split())
    return ()


def phrases(text: str) -> tuple[str, ...]:
    """Every wallet phrase of the text, but for the published ones.

    A phrase stands alone: of a longer row of listed words one in sixteen stretches has a right checksum.
    """
    found = []
    for run in _RUN.finditer(text):
        words: list[re.Match[str]] = []
        for word in [*_WORD.finditer(text, *run.span()), None]:
            if word is not None and word[0] in _numbers():
                words.append(word)
                continue
            if len(words) in LENGTHS and words[0][0] not in _PUBLIC and _valid([one[0] for one in words]):
                found.append(text[words[0].start() : words[-1].end()])
            words = []
    return tuple(found)


@cache
def _numbers() -> dict[str, int]:
    return {word: at for at, word in enumerate(bip39_words())}


def _valid(words: list[str]) -> bool:
    value = 0
    for word in words:
        value = value << 11 | _numbers()[word]
    check = len(words) * 11 // 33
    entropy = (value >> check).to_bytes((len(words) * 11 - check) // 8)
    return hashlib.sha256(entropy).digest()[0] >> (8 - check) == value & ((1 << check) - 1)
