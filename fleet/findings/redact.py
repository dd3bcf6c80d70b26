"""Redaction: masking of what leaves this machine, before anything is hashed or signed.

Three layers. Secrets the fleet holds are registered at load and masked in all their forms, pieces included.
Things that look like a secret, or like data of other people, are masked by pattern. And a field of a tool
result is private until its name is public by a tool's spec, so a new field is masked until a person has
decided about it.

A word of 32 bytes may be a key, a hash, a root or an id, and looks like each. One that a view of a public
chain returned is public, whatever it is: it stays, unless it is one that the fleet holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from fleet.findings.known_secrets import PIECE, KnownSecrets
from fleet.findings.personal import values
from sandbox import tools
from sandbox.secrets.mnemonics import bip39_words
from sandbox.secrets.patterns import ISSUED, SECRETS, SecretPattern, hide_all
from sandbox.sites.accounts import PHRASE, SECRET, SHAPED

MAX_DEPTH = 32

_OWN = frozenset({"calls", "chain_id", "expect", "tool"})


@cache
def public_names() -> frozenset[str]:
    """Names of tool arguments and result fields that may be kept in evidence; their values are still masked.

    Each tool's spec says which; asked for when something is masked, because reading them all imports all.
    """
    return _OWN.union(*(spec.public for spec in tools.TOOLS.values()))


_HASH_KEYS = frozenset({"tx", "txs", "sha256", "hash", "tx_hash", "block_hash", "ev", "topic", "topics"})
_PRIVATE_KEY_NAMES = re.compile(
    r"(?i)(^|[-_])(api[-_]?key|private[-_]?key|secret|password|passwd|mnemonic|seed[-_]?phrase|authorization"
    r"|cookie|credential|access[-_]?token|refresh[-_]?token|auth[-_]?token|bearer|signature)s?($|[-_])"
)
_HEX64 = r"(?<![0-9a-fA-F])(?:0[xX])?[0-9a-fA-F]{64}(?![0-9a-fA-F])"
_HASH_LABEL = r"\b(?:tx|txn|transaction|sha-?256|hash|digest|block)(?:[ \t]*[:=][ \t]*|[ \t]+)[\"'(]?"
_PUBLIC_HASH = re.compile(rf"(?i){_HASH_LABEL}({_HEX64})")
_HASH_VALUE = re.compile(r"\A(?:0x|sha256:)?[0-9a-fA-F]{64}\Z")
_KEY64 = re.compile(_HEX64)
_PADDED = re.compile(r"(?i)(?:0x)?0{24}")
"""Begins a number or an address as the ABI spells it: no key has 96 bits of zeros."""
_WORDS = re.compile(r"(?<![A-Za-z])[a-zA-Z]{3,8}(?:[\s,]+(?:\d{1,2}[.)]\s*)?[a-zA-Z]{3,8}){11,}(?![A-Za-z])")


_SHORTEST = 12 * 3 + 11
"""Characters of the least text that the patterns of this module match: twelve words of three letters."""

_OFTEN, _KEPT = 64, 4096
"""Names and values of headers come with each answer: clean texts of up to so many characters, so many of
them, are known again."""


def mask(kind: str) -> str:
    """Replaces a secret; masking twice changes nothing."""
    return f"[redacted:{kind}]"


def _mask_of(secret: SecretPattern) -> str:
    return mask(secret.kind)


def chain_words(answers: Iterable[tuple[str, Mapping[str, Any]]]) -> frozenset[str]:
    """The words of 32 bytes, in lower-case hex, that views of the chain returned, by tools and results."""
    return frozenset(
        word
        for tool, result in answers
        if tool in tools.TOOLS
        for name in tools.TOOLS[tool].on_chain & result.keys()
        for word in _words_in(result[name], MAX_DEPTH)
    )


def _words_in(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from (found[0][-64:].lower() for found in _KEY64.finditer(value))
    elif depth and isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _words_in(inner, depth - 1)


class Redactor:
    """Masks text and structures; its repr reveals nothing, and what it knows never changes."""

    __slots__ = ("_clean", "_hides", "_known", "_on_chain", "_public", "reach")

    def __init__(
        self,
        secrets: Iterable[str | bytes] = (),
        *,
        public: frozenset[str] | None = None,
        piece: int = PIECE,
        hides: Callable[[str], str] = str,
    ) -> None:
        """`secrets` are exact values (key bytes, hex, tokens); ValueError for one too short to mask.

        `piece`: the least piece of a secret that is masked; `hides` what no public log names.
        """
        self._known = KnownSecrets(secrets, piece=piece)
        self._public, self._hides = public, hides
        self._on_chain: frozenset[str] = frozenset()
        self._clean: set[str] = set()
        self.reach = max(self._known.longest, 1) - 1
        """Most characters of a registered secret that cannot be recognised yet: how much of a text in pieces
        must be held back."""

    def __repr__(self) -> str:
        return "Redactor()"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a Redactor knows secrets and is not pickled")

    def showing(self, words: Iterable[str]) -> Redactor:
        """The same, but these words (see `chain_words`) stay if they are not registered secrets."""
        words = {*words}
        if not words:
            return self
        other = object.__new__(Redactor)
        other._clean = set()
        other._known, other._public, other.reach = self._known, self._public, self.reach
        other._hides = self._hides
        other._on_chain = self._on_chain | words
        return other

    def answer(self, tool: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """`fields` of a tool's result, with what the chain returned in it."""
        return self.showing(chain_words([(tool, result)])).fields(result)

    def text(self, text: str) -> str:
        """The text with every registered secret and everything that looks like one masked."""
        if text in self._clean:
            return text
        masked = self._masked(text)
        if masked == text and len(text) <= _OFTEN:
            if len(self._clean) >= _KEPT:
                self._clean.clear()
            self._clean.add(text)
        return masked

    def public(self, text: str) -> str:
        """The text as a public log may have it: masked, and without what the operator withholds."""
        return self._hides(self.text(text))

    def secrets(self, text: str) -> list[tuple[str, str]]:
        """The secrets of others that `text` masks, with what each looks like: none that the fleet holds."""
        found: list[tuple[str, str]] = []
        self._masked(text, lambda kind, value: found.append((kind, value)))
        return list(dict.fromkeys(one for one in found if "[redacted:" not in one[1]))

    def _masked(self, text: str, found: Callable[[str, str], object] = lambda *_: None) -> str:
        def where(
            judge: Callable[[re.Match[str]], bool], row: SecretPattern
        ) -> Callable[[re.Match[str]], bool]:
            def hides(match: re.Match[str]) -> bool:
                if yes := judge(match):
                    found(row.kind, match[match.lastindex or 0])
                return yes

            return hides

        text = self._known.masked(text, mask("secret"))
        text = hide_all(text, SECRETS, _mask_of, lambda row: where(row.leaks if row.drawn else bool, row))
        # what looks like an example as well, under what the other rows left
        text = hide_all(text, ISSUED, _mask_of, partial(where, _unmasked))
        for kind, rows in values(text).items():
            for value in rows:
                found(kind, value)
                text = text.replace(value, mask(kind))
        if len(text) < _SHORTEST:
            return text
        if _KEY64.search(text):
            public = {match.span(1) for match in _PUBLIC_HASH.finditer(text)}

            def hidden(match: re.Match[str]) -> str:
                if match.span() in public or self._is_no_key(match[0]):
                    return match[0]
                found("private-key", match[0])
                return mask("private-key")

            text = _KEY64.sub(hidden, text)

        def phrase(match: re.Match[str]) -> str:
            if (masked := _mask_mnemonic(match)) != match[0]:
                found("mnemonic", match[0])
            return masked

        return _WORDS.sub(phrase, text)

    def value(self, value: Any, *, key: str = "", depth: int = MAX_DEPTH) -> Any:  # noqa: ANN401  any JSON
        """A structure of JSON types with every string in it masked, keys included; tuples become lists."""
        if depth == 0:
            return mask("too-deep")
        if isinstance(value, str):
            return self._string(value, key)
        if value is None or isinstance(value, bool | int | float):
            return self._number(value, key)
        if isinstance(value, Mapping):
            return {
                self.text(str(name)): self.value(inner, key=str(name), depth=depth - 1)
                for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(inner, key=key, depth=depth - 1) for inner in value]
        return mask("unknown-type")

    def fields(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record of a tool (arguments or result): only public fields keep a value, masked."""
        public = public_names() if self._public is None else self._public
        return {
            self.text(name): self.value(inner, key=name if name in _HASH_KEYS else "")
            if name in public
            else mask("not-public")
            for name, inner in record.items()
        }

    def _is_no_key(self, word: str) -> bool:
        return _PADDED.match(word) is not None or word[-64:].lower() in self._on_chain

    def _number(self, value: float | None, key: str) -> float | str | None:
        if key and _PRIVATE_KEY_NAMES.search(key):
            return mask("private")
        if isinstance(value, int) and value >= 2**64 and self.text(str(value)) != str(value):
            return mask("secret")
        return value

    def _string(self, value: str, key: str) -> str:
        if key and _PRIVATE_KEY_NAMES.search(key):
            return value if value in (PHRASE, SECRET) or SHAPED.fullmatch(value) else mask("private")
        if key.lower() in _HASH_KEYS and _HASH_VALUE.match(value):
            return self._known.masked(value, mask("secret"))
        return self.text(value)


@cache
def _phrase_words() -> frozenset[str]:
    return frozenset(bip39_words())


def _mask_mnemonic(match: re.Match[str]) -> str:
    known = _phrase_words()
    run = longest = 0
    for word in re.findall("[a-z]+", match[0].lower()):
        run = run + 1 if not known or word in known else 0
        longest = max(longest, run)
    return mask("mnemonic") if longest >= 12 else match[0]


def _unmasked(found: re.Match[str]) -> bool:
    return "[redacted:" not in found[0]
