"""Patterns of secrets: one table for reporting them on pages and for masking them before they leave.

Masking may be wrong about a harmless word; a report may not. So each row gives what is masked, and which of
that is a leak for certain: a platform may show the rest by right (an example in a document, a public token).

Every pattern is linear on hostile text: once it has begun it ends in a match, which is consumed, or within a
bounded number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A group of `pattern`, where it has one, is the secret itself; `certain` matches the whole of a leak."""

    kind: str
    pattern: re.Pattern[str]
    certain: re.Pattern[str] | None = None

    def leaks(self, found: re.Match[str]) -> bool:
        """Whether the match may be reported."""
        return self.certain is not None and self.certain.fullmatch(found[found.lastindex or 0]) is not None

    def hide(self, text: str, word: str, where: Callable[[re.Match[str]], bool] = bool) -> str:
        """The text with `word` in the place of every secret of this row that `where` says yes to."""

        def hidden(found: re.Match[str]) -> str:
            if not where(found):
                return found[0]
            start, end = (at - found.start() for at in found.span(found.lastindex or 0))
            return found[0][:start] + word + found[0][end:]

        return self.pattern.sub(hidden, text)


_ANY = re.compile(r"[\s\S]+")
_PEM_LABEL = "[A-Z ]{0,40}"
_PEM = rf"-----BEGIN {_PEM_LABEL}PRIVATE KEY-----(?:[^-]|-(?!----)){{0,16384}}(?:-----END {_PEM_LABEL}-----)?"
_HEX64 = r"((?:0x)?[0-9a-f]{64})\b"
_OWNER = (
    r"(?:private|secret|signing|signer|sponsor|fee[_ -]?payer|payer|deployer|wallet|master)[_ -]?(?:private)?"
)
_TOKEN = r"[A-Za-z0-9._~+/=-]"
_WORD = rf"(?![a-z]{{1,20}}(?:[.]?\s|[.]?\Z|(?!{_TOKEN}).))"  # "bearer tokens" is prose
_LABEL = r"(?:x-goog-api-key|x-api-key|authorization|cookie|api[-_]?key|private[-_]?key|password|mnemonic)"
_VALUE = rf"{_LABEL}[\"']?[ \t]*[:=][ \t]*[\"']?(?!\[)[^\s\"',;]{{6,}}"
_VENDOR = (
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|glpat-[\w-]{20,}|xox[abeprs]-[0-9]+-[A-Za-z0-9-]{16,}"
    r"|AKIA(?![A-Z0-9]{0,16}EXAMPLE)[A-Z0-9]{16}|npm_[A-Za-z0-9]{36}"
)

SECRETS: tuple[SecretPattern, ...] = (
    SecretPattern("private-key", re.compile(_PEM), re.compile(rf"[\s\S]+-----END {_PEM_LABEL}-----")),
    # 64 hex digits are a key only where the words before them say so: a hash looks the same
    SecretPattern(
        "private-key",
        re.compile(rf"(?i){_OWNER}[_ -]?key\b[\"'`]?[\s:=>\"'`]{{0,8}}(?:is\s+)?{_HEX64}"),
        _ANY,
    ),
    SecretPattern(
        "private-key",
        re.compile(
            r"(?i)\b(?:priv[_-]?key|privkey|fee[_ -]?payer|sponsor)"
            rf"[\"'`]?\s{{0,4}}[:=]\s{{0,4}}[\"'`]?{_HEX64}"
        ),
        _ANY,
    ),
    SecretPattern("call-token", re.compile(r"0x[0-9a-fA-F]{40}:\d{6,13}:0x[0-9a-fA-F]{64,130}")),
    # base64 of `{"`: a head alone is masked too, or a page of heads would be searched to its end from each
    SecretPattern("jwt", re.compile(r"\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?)?")),
    SecretPattern(
        "bearer",
        re.compile(rf"\b(?i:bearer)[ \t:=]+{_WORD}{_TOKEN}{{6,}}"),
        re.compile(rf"[a-zA-Z]+[ \t:=]+(?=[^0-9]*[0-9]){_TOKEN}{{16,}}"),
    ),
    SecretPattern(
        "api-key",
        re.compile(r"\bsk[-_][A-Za-z0-9_-]{6,}"),
        # a run of characters that is not a word: classes of style sheets begin with `sk-` too
        re.compile(
            r"sk-(?=[\w-]*(?<![A-Za-z0-9])(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{16})[\w-]+|sk_(?:live|test)_\w{16,}"
        ),
    ),
    SecretPattern("api-key", re.compile(r"\bAIza[0-9A-Za-z_-]{6,}"), re.compile(r"AIza[0-9A-Za-z_-]{30,}")),
    SecretPattern(
        "api-key",
        re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|npm_)[A-Za-z0-9_-]{8,}"),
        re.compile(_VENDOR),
    ),
    SecretPattern("password", re.compile(r"(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)")),
    SecretPattern("private", re.compile(rf"(?i)(?<=[-\"' \t,;{{(]){_VALUE}")),
    SecretPattern("private", re.compile(rf"(?i)\A{_VALUE}")),
)
