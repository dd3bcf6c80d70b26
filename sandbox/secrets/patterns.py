"""Patterns of secrets: one table for reporting them on pages and for masking them before they leave.

Masking may be wrong about a harmless word; a report may not. So each row gives what is masked, and which of
that is a leak for certain: a platform may show the rest by right (an example in a document, a public token).

Every pattern is linear on hostile text: once it has begun it ends in a match, which is consumed, or within a
bounded number of characters.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PLACEHOLDER = re.compile(
    r"(?i)(?:0x)?(?:([0-9a-f])\1{63}|(?:0123456789abcdef){4}|(?:1234567890){6}1234|(?:1234567890abcdef){4}"
    r"|(?:deadbeef){8}|(?:cafebabe){8}|0{56}[0-9a-f]{8})"
)
"""Keys that stand for a key in documents and tests."""
PUBLISHED = frozenset(json.loads(Path(__file__).with_name("published_keys.json").read_text("utf-8")))
"""Keys of the development mnemonic that Hardhat, Anvil and their documents print: everybody has them."""
_EXAMPLE = re.compile(
    r"(?i)example|sample|placehold|your|x{4}|test|dummy|fake|change.?me|redacted|hidden|secret|passw|token|insert"
    r"|\.\.\.|foo|bar|mock|[<>{}$%]"
)


def looks_drawn(value: str) -> bool:
    """Whether a value seems to be drawn at random: no example, no run, no repetition."""
    kinds = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
    if len(set(value)) < 10 or kinds < 2 or _EXAMPLE.search(value.partition("_live_")[2] or value):
        return False
    steps = [ord(after) - ord(before) for before, after in pairwise(value)]
    return not any(
        steps[at] in (0, 1, -1) and len(set(steps[at : at + 3])) == 1 for at in range(len(steps) - 2)
    )


LASTS_S = 400 * 86_400
"""Seconds: a token that is good for longer is made to be public."""


def current(token: str) -> bool:
    """Whether a signed token (RFC 7519) names its owner and has not expired."""
    part = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return False
    if not isinstance(claims, dict) or not claims.get("sub"):
        return False
    ends = claims.get("exp")
    return isinstance(ends, int | float) and 0 < ends - time.time() < LASTS_S


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A group of `pattern`, where it has one, is the secret itself; `certain` matches the whole of a leak.

    `drawn`: it is one only if it looks drawn at random, as an example in a document does not; `live`: only
    if it is a token that is valid now. `words`: a text with a match has one of them, as `fold` spells it; to
    look for them first is far faster.
    """

    kind: str
    pattern: re.Pattern[str]
    certain: re.Pattern[str] | None = None
    drawn: bool = False
    live: bool = False
    words: tuple[str, ...] = ()

    def leaks(self, found: re.Match[str]) -> bool:
        """Whether the match may be reported."""
        value = found[found.lastindex or 0]
        if self.certain is None or self.certain.fullmatch(value) is None:
            return False
        if value.lower().removeprefix("0x") in PUBLISHED:
            return False
        if self.live:
            return current(value)
        return looks_drawn(value) if self.drawn else not PLACEHOLDER.fullmatch(value)

    def hide(self, text: str, word: str, where: Callable[[re.Match[str]], bool] = bool) -> str:
        """The text with `word` in the place of every secret of this row that `where` says yes to."""

        def hidden(found: re.Match[str]) -> str:
            if not where(found):
                return found[0]
            start, end = (at - found.start() for at in found.span(found.lastindex or 0))
            return found[0][:start] + word + found[0][end:]

        return self.pattern.sub(hidden, text)


_FOLDED = str.maketrans({"İ": "i", "ı": "i", "ſ": "s", "\u212a": "k"})
"""All that `re.IGNORECASE` takes for a letter of ASCII, beside its other case."""


def fold(text: str) -> str:
    """The text in lower case, in which a row's `words` are looked for."""
    return (text if text.isascii() else text.translate(_FOLDED)).lower()


def hide_all(
    text: str,
    rows: Iterable[SecretPattern],
    word: Callable[[SecretPattern], str],
    where: Callable[[SecretPattern], Callable[[re.Match[str]], bool]],
) -> str:
    """The text with the secrets of every row hidden, row after row; see `SecretPattern.hide`."""
    there = _words_in(text)
    for row in rows if there else ():
        if not there.isdisjoint(row.words):
            hidden = row.hide(text, word(row), where(row))
            if hidden != text:
                text, there = hidden, _words_in(hidden)
    return text


def _words_in(text: str) -> set[str]:
    folded = fold(text)
    return {word for word in _WORDS if word in folded}


_ANY = re.compile(r"[\s\S]+")
_PEM_LABEL = "[A-Z ]{0,40}"
_PEM_HEAD = f"-----BEGIN {_PEM_LABEL}PRIVATE KEY-----"
_PEM = rf"{_PEM_HEAD}(?:[^-]|-(?!----)){{0,16384}}(?:-----END {_PEM_LABEL}-----)?"
_HEX64 = r"((?:0x)?[0-9a-f]{64})\b"
_OWNER = (
    r"(?:private|secret|signing|signer|sponsor|fee[_ -]?payer|payer|deployer|wallet|master)[_ -]?(?:private)?"
)
_COMMENT = r"[\"'`]?[;,)]?[ \t]{0,4}(?://|#|/\*|<!--)"
_CALLED = (
    r"(?:(?!(?:an?y?|no|not|never|without|your|users?|hash|salt|public|of|for|from|by|with|than|signed|needs?)\b)"
    r"[a-z'_-]{1,16}:?[ \t]){0,3}"
)
_TOKEN = r"[A-Za-z0-9._~+/=-]"
_WORD = rf"(?![a-z]{{1,20}}(?:[.]?\s|[.]?\Z|(?!{_TOKEN}).))"  # "bearer tokens" is prose
_LABEL = (
    r"(?:x-goog-api-key|x-api-key|authorization|cookie|api[-_]?key|private[-_]?key|password|mnemonic"
    r"|(?:access|refresh)[-_]?token)"
)
_LABELS = (
    *("api", "authorization", "cookie", "private", "password", "mnemonic"),
    *("s_token", "s-token", "stoken", "h_token", "h-token", "htoken"),
)
_VALUE = rf"{_LABEL}[\"']?[ \t]*[:=][ \t]*[\"']?(?!\[)[^\s\"',;]{{6,}}"
_VENDOR = (
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}|glpat-[\w-]{20,}|xox[abeprs]-[0-9]+-[A-Za-z0-9-]{16,}"
    r"|AKIA(?![A-Z0-9]{0,16}EXAMPLE)[A-Z0-9]{16}|npm_[A-Za-z0-9]{36}"
)

_USER = r"[^\s/:@\"'<>]{1,64}"
_AT_HOST = (
    r"(?!(?:[A-Za-z0-9-]{1,63}\.){0,3}example\b)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}(?::\d{1,5})?"
)
_VALUES = "[A-Za-z0-9+/_=.~!@#^&*-]"
_NAMED = (
    r"(?:client|jwt|signing|app|encryption|cookie|session|hmac|django|rails|flask)"
    r"[_-]?secret(?:[_-]?key)?(?:[_-]?base)?"
    r"|(?:admin|root|db|database|postgres|mysql|redis|smtp|service)[_-]?(?:password|passwd|token|secret)"
    r"|secret[_-]?key(?:[_-]?base)?|encryption[_-]?key|master[_-]?key|internal[_-]?(?:api[_-]?)?(?:token|key)"
    r"|aws[_-]?secret[_-]?access[_-]?key|service[_-]?(?:role|account)[_-]?key"
)
_GITHUB = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"

ISSUED: tuple[SecretPattern, ...] = tuple(
    SecretPattern(kind, re.compile(pattern), _ANY, drawn=True, words=tuple(words.split()))
    for kind, words, pattern in (
        (
            "github-token",
            _GITHUB,
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})",
        ),
        ("gitlab-token", "glpat- glrt- gldt- glcbt-", r"\bgl(?:pat|rt|dt|cbt)-[A-Za-z0-9_-]{20,64}"),
        ("slack-token", "xox", r"\bxox[abeprs]-[0-9]{8,16}-[A-Za-z0-9-]{16,255}"),
        (
            "slack-webhook",
            "hooks.slack.com",
            r"hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,32})",
        ),
        (
            "discord-webhook",
            "/api/webhooks/",
            r"discord(?:app)?\.com/api/webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{60,72})",
        ),
        ("aws-key", "akia asia", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
        ("stripe-key", "k_live_", r"\b[sr]k_live_[A-Za-z0-9]{24,200}"),
        ("stripe-key", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{32,100}"),
        ("anthropic-key", "sk-ant-", r"\bsk-ant-[a-z0-9]{3,8}-[A-Za-z0-9_-]{40,200}"),
        ("openai-key", "sk-", r"\bsk-(?:proj-|svcacct-|None-)?[A-Za-z0-9_-]{40,200}"),
        ("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("pypi-token", "pypi-age", r"\bpypi-AgE[A-Za-z0-9_-]{50,255}"),
        ("sendgrid-key", "sg.", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
        ("mailgun-key", "key-", r"\bkey-[0-9a-f]{32}\b"),
        ("telegram-token", ":aa", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
        ("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{34}\b"),
        ("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{48,64}\b"),
        ("replicate-token", "r8_", r"\br8_[A-Za-z0-9]{37}\b"),
        ("digitalocean-token", "_v1_", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
        ("shopify-token", "shp", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
        ("vault-token", "hvs.", r"\bhvs\.[A-Za-z0-9_-]{24,200}"),
        ("linear-key", "lin_api_", r"\blin_api_[A-Za-z0-9]{32,64}\b"),
        ("supabase-token", "sbp_", r"\bsbp_[a-f0-9]{40}\b"),
        ("planetscale-token", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,64}"),
        ("databricks-token", "dapi", r"\bdapi[a-f0-9]{32}\b"),
        ("grafana-token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[a-f0-9]{8}\b"),
        ("age-key", "age-secret-key-1", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
        ("azure-key", "accountkey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
        ("telemetry-key", "@", r"https://([0-9a-f]{32}:[0-9a-f]{32})@"),
        (
            "labelled-secret",
            "secret passw token encryption master internal service",
            rf"(?i)\b(?:{_NAMED})[\"'`]?[ \t]{{0,4}}[:=][ \t]{{0,4}}[\"'`]({_VALUES}{{16,256}})[\"'`]",
        ),
        (
            "labelled-secret",
            "secret passw token encryption master internal service",
            rf"(?<![a-z])(?:{_NAMED.upper()})=({_VALUES}{{16,256}})(?=[\s\"'`]|\Z)",
        ),
        (
            "database-url",
            "@",
            r"\b(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|clickhouse|cockroachdb)"
            rf"(?:\+[a-z0-9]{{1,16}})?://{_USER}:([^\s/:@\"'<>]{{8,128}})@{_AT_HOST}",
        ),
        ("basic-auth-url", "@", rf"\bhttps?://{_USER}:([^\s/:@\"'<>]{{10,128}})@{_AT_HOST}"),
    )
)
"""Secrets of known issuers and known forms: the ones that look drawn are leaks wherever they stand."""

SECRETS: tuple[SecretPattern, ...] = (
    *ISSUED,
    SecretPattern(
        "private-key",
        re.compile(_PEM),
        # words or dots in place of the key, as in a document or in an empty field of a form, are none
        re.compile(
            rf"{_PEM_HEAD}(?![^-]{{0,200}}\b[a-z]{{2,12}},? [a-z]{{2,12}}\b)"
            rf"(?!(?:\\[nr]|\s){{0,8}}(?:\.\.|\u2026|[<{{\[*]))[\s\S]+-----END {_PEM_LABEL}-----"
        ),
        words=("private key-----",),
    ),
    # it is no leak, and what it stands beside is nobody's to read either
    SecretPattern(
        "certificate",
        re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\\nr\s]{1,16384}(?:-----END CERTIFICATE-----)?"),
        words=("begin certificate-----",),
    ),
    # 64 hex digits are a key only where the words before them say so: a hash looks the same
    SecretPattern(
        "private-key",
        re.compile(rf"(?i){_OWNER}[_ -]?key\b[\"'`]?[\s:=>\"'`]{{0,8}}(?:is\s+)?{_HEX64}"),
        _ANY,
        words=("key",),
    ),
    SecretPattern(
        "private-key",
        re.compile(
            r"(?i)\b(?:priv[_-]?key|privkey|fee[_ -]?payer|sponsor)"
            rf"[\"'`]?\s{{0,4}}[:=]\s{{0,4}}[\"'`]?{_HEX64}"
        ),
        _ANY,
        words=("priv", "payer", "sponsor"),
    ),
    # a comment that calls it so; one that only speaks of a key (`no private key is needed`) is hidden where
    # all secrets are, and is not a leak
    SecretPattern(
        "private-key",
        re.compile(
            rf"(?i){_HEX64}{_COMMENT}[ \t]{{0,4}}{_CALLED}private[ _-]key\b"
            r"(?![ \t]+(?:is|was)[ \t]+(?:not|never)\b)"
        ),
        _ANY,
        words=("private",),
    ),
    SecretPattern(
        "private-key",
        re.compile(rf"(?i){_HEX64}{_COMMENT}[^\n]{{0,40}}?private[ _-]key"),
        words=("private",),
    ),
    SecretPattern(
        "call-token", re.compile(r"0x[0-9a-fA-F]{40}:\d{6,13}:0x[0-9a-fA-F]{64,130}"), words=(":0x",)
    ),
    # sent by a user, as a log has it; an example in a document has expired
    SecretPattern(
        "session-token",
        re.compile(r"(?i)\bbearer[ \t:=]{1,4}(eyJ[\w-]{6,1000}\.[\w-]{4,3000}\.[\w-]{16,1000})"),
        _ANY,
        live=True,
        words=("eyj",),
    ),
    # base64 of `{"`: a head alone is masked too, or a page of heads would be searched to its end from each
    SecretPattern(
        "jwt",
        re.compile(r"\beyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?)?"),
        words=("eyj",),
    ),
    SecretPattern(
        "bearer",
        re.compile(rf"\b(?i:bearer)[ \t:=]+{_WORD}{_TOKEN}{{6,}}"),
        re.compile(rf"[a-zA-Z]+[ \t:=]+(?=[^0-9]*[0-9]){_TOKEN}{{16,}}"),
        words=("bearer",),
    ),
    SecretPattern(
        "api-key",
        re.compile(r"\bsk[-_][A-Za-z0-9_-]{6,}"),
        # a run of characters that is not a word: classes of style sheets begin with `sk-` too
        re.compile(
            r"sk-(?=[\w-]*(?<![A-Za-z0-9])(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{16})[\w-]+|sk_(?:live|test)_\w{16,}"
        ),
        words=("sk-", "sk_"),
    ),
    SecretPattern(
        "api-key",
        re.compile(r"\bAIza[0-9A-Za-z_-]{6,}"),
        re.compile(r"AIza[0-9A-Za-z_-]{30,}"),
        words=("aiza",),
    ),
    SecretPattern(
        "api-key",
        re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|npm_)[A-Za-z0-9_-]{8,}"),
        re.compile(_VENDOR),
        words=(*_GITHUB.split(), "glpat-", "xox", "akia", "npm_"),
    ),
    SecretPattern("password", re.compile(r"(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)"), words=("@",)),
    SecretPattern(
        "basic-auth",
        re.compile(r"(?i)\bauthorization[\"']?[ \t]*[:=][ \t]*[\"']?basic[ \t]{1,4}([\w+/=-]{6,})"),
        words=("basic",),
    ),
    SecretPattern("private", re.compile(rf"(?i)(?<=[-\"' \t,;{{(]){_VALUE}"), words=_LABELS),
    SecretPattern("private", re.compile(rf"(?i)\A{_VALUE}"), words=_LABELS),
)

_WORDS = tuple(sorted({word for row in SECRETS for word in row.words}))
