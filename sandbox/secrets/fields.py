"""Secrets and personal data in JSON, by the name of a field and the shape of its value together. Pure.

A name alone is not enough (`"password": "Passwort"` is a translation), nor is a value (a long number is a
count). What describes data, such as a schema or an example, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

DEPTH, MOST, LONGEST = 12, 20_000, 4_000
"""Levels and values that are looked at, characters of a value."""
NAMES = 12
"""Most names of one answer."""
MANY_PEOPLE = 5
"""Different e-mail addresses in one answer that make it a list of people."""
_DESCRIBES = frozenset(
    ("openapi", "swagger", "$schema", "properties", "examples", "example", "schema", "enum")
)
_HASH = re.compile(
    r"\$(?:2[abxy]?|argon2\w{1,2}|scrypt|pbkdf2[\w-]*|[156y])\$.{16,}|(?:pbkdf2|scrypt|argon2)\w*[:$].{16,}"
    r"|(?:\w{2,12}[:$])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})",
    re.IGNORECASE,
)
_WORDY = re.compile(r"(?=.*[\d\W_])\S{4,128}")
"""A passphrase, as no label and no sentence is one."""
_DRAWN = re.compile(r"(?=.*\d)[\w+/=.:~-]{8,}", re.ASCII)
_PASS = r"(?:pass(?:word|wd|phrase)?|pwd)"
_SENT_ONCE = r"(?:reset|recovery|verification|confirmation|otp|totp|mfa|2fa|activation)"
_WORD = re.compile(r"\S{6,}")
_SHAPES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (re.compile(rf"(?i)(?:.*[_.-])?(?:{name})"), shape)
    for name, shape in (
        (r"(?:user_?)?(?:pass(?:word|wd|phrase)|pwd)(?:_?(?:plain|clear|text)){0,2}", _WORDY),
        (rf"(?:hashed_?)?{_PASS}_?(?:hash(?:ed)?|digest)|hashed_?{_PASS}", _HASH),
        (rf"{_SENT_ONCE}_?(?:code|token|pin)|otp", re.compile(r"\d{4,8}|[\w.~+/=-]{8,}", re.ASCII)),
        (r"(?:totp|otp|mfa|2fa)_?secret", re.compile(r"[A-Z2-7]{16,64}=*|[\w+/=-]{16,}", re.ASCII)),
        (r"(?:jwt|client|signing|session|app)_?secret(?:_?key)?|secret_?key(?:_?base)?", _WORD),
        (r"(?:database|db|redis|mongo(?:db)?|postgres|mysql|amqp|broker)_?(?:url|uri|dsn)", re.compile(r"\w+://[^\s/:@]+:[^\s/@]+@\S+")),
        (r"(?:private|encryption|master|service_?role|access|api)_?key|secret_?access_?key", _DRAWN),
        (r"ssn|social_?security(?:_?(?:number|no))?", re.compile(r"\d{3}-?\d{2}-?\d{4}")),
        (r"(?:credit_?)?card_?(?:number|no)|cc_?number", re.compile(r"(?:\d[ -]?){13,19}")),
        (r"cvv2?|cvc2?", re.compile(r"\d{3,4}")),
    )
)  # fmt: skip
_PLAIN = _SHAPES[0][0]
_PERSON = re.compile(
    r"(?i)(?:user_?)?(?:name|mail|e-?mail|login|handle|id|account|role|is_?admin)$|.*user_?name"
)
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}", re.ASCII)
_ENVIRONMENT = frozenset(
    ("PATH", "HOME", "PWD", "USER", "LANG", "SHELL", "HOSTNAME", "PYTHONPATH", "NODE_ENV")
)
_HIDDEN = re.compile(
    r"(?i)[*•x.#_-]{3,}|.*(?:\*\*\*|\.\.\.|…|redact|hidden|masked|removed|example|change.?me|<|\$\{|\{\{).*"
)


def private_fields(document: object, ours: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The names of such fields, sorted; `ours` are texts that the caller wrote or was given itself."""
    if isinstance(document, dict) and _DESCRIBES & set(map(str, document)):
        return ()
    found, mails = set[str](), set[str]()
    for number, (name, value, beside) in enumerate(_values(document, DEPTH)):
        if number >= MOST:
            break
        if isinstance(value, dict):
            if len(_ENVIRONMENT & set(map(str, value))) >= 2 and all(
                isinstance(one, str) for one in value.values()
            ):
                found.add(name or "environment")
            continue
        text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if not text or len(text) > LONGEST or text in ours:
            continue
        mails |= (
            {text} if _MAIL.fullmatch(text) else set()
        )  # people of example.com too, where five of them are
        if _HIDDEN.fullmatch(text):
            continue
        for called, shape in _SHAPES:
            if called.fullmatch(name) and shape.fullmatch(text):
                alone = called is _PLAIN and not any(_PERSON.fullmatch(other) for other in beside)
                found |= set() if alone else {name}
                break
    if len(mails - ours) >= MANY_PEOPLE:
        found.add("e-mail addresses of many people")
    return tuple(sorted(found))[:NAMES]


def _values(
    value: object, left: int, name: str = "", beside: tuple[str, ...] = ()
) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Each value with its name and the names beside it; what describes data has none."""
    if left == 0:
        return
    if isinstance(value, Mapping):
        yield name, value, beside
        names = tuple(map(str, value))[:64]
        for key, inner in value.items():
            if str(key) not in _DESCRIBES:
                yield from _values(inner, left - 1, str(key), names)
    elif isinstance(value, list):
        for inner in value[:2_000]:
            yield from _values(inner, left - 1, name, beside)
    else:
        yield name, value, beside
