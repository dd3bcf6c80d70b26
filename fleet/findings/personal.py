"""Other people's data in an answer: cards, papers, health, lists of people, classified and secret text. Pure.

It tells a person that a platform shows what it should not, and what the fleet came to hold. Numbers count
only with their check digits, or beside the word that says what they are; addresses only in numbers; published
test numbers never. Values leave this module by `values` alone, to be masked and sealed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

MOST = 200_000
"""Characters of one text that are read."""
BREACH = 500
"""Records of one kind in an answer above which laws on breaches ask for a notice."""
MANY = 10
"""Different addresses or telephone numbers in one answer that are a list of people."""
_TEST_CARDS = frozenset(
    (
        *("4242424242424242", "4111111111111111", "4012888888881881", "4000056655665556", "4222222222222"),
        *("5555555555554444", "5105105105105100", "2223003122003222", "5200828282828210", "378282246310005"),
        *("371449635398431", "6011111111111117", "6011000990139424", "30569309025904", "3530111333300000"),
    )
)
"""Cards of the documents of payment providers."""
_CARD = re.compile(r"(?<![\d.-])[3-6]\d{3}(?:[ -]?\d){9,15}(?![\d.-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_SSN = re.compile(r"\b(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}\b")
_SAYS_SSN = re.compile(r"(?i)\bssns?\b|social[ _-]security")
_LABELLED: Mapping[str, re.Pattern[str]] = {
    "card-code": re.compile(r"(?i)\b(?:cvv2?|cvc2?|card[ _]security[ _]code)\b[\"'\s:=#]{1,6}\d{3,4}\b"),
    "passport": re.compile(
        r"(?i)\bpassport(?:[ _-]?(?:no|nr|number))?\b[\"'\s:=#.]{1,6}(?=[A-Z]{0,3}\d)[A-Z0-9]{6,9}\b"
    ),
    "driving-licence": re.compile(
        r"(?i)\bdriv(?:er'?s?|ers|ing)[ _-]?licen[cs]e(?:[ _-]?(?:no|nr|number))?\b[\"'\s:=#.]{1,6}"
        r"(?=[A-Z-]{0,4}\d)[A-Z0-9-]{5,20}\b"
    ),
    "health": re.compile(
        r"(?i)\b(?:(?:mrn|medical[ _-]record(?:[ _-]?(?:no|nr|number))?|patient[ _-]?id)\b[\"'\s:=#.]{1,6}"
        r"(?=[A-Z-]{0,4}\d)[A-Z0-9-]{4,15}|(?:diagnos[ie]s|icd-?10(?:[ _-]?code)?)\b[\"'\s:=#.]{1,6}"
        r"[A-TV-Z]\d\d(?:\.[0-9A-Z]{1,4})?|diagnosed with [a-z]{4,})\b"
    ),
    "classified": re.compile(
        r"(?m)^[ \t]*(?:(?:TOP SECRET|SECRET|CONFIDENTIAL)//[A-Z/, ]{2,60}|classification[\"']?\s{0,3}[:=]"
        r"[\s\"']{0,3}(?:TOP SECRET|SECRET|CONFIDENTIAL)\b)"
    ),
    "trade-secret": re.compile(
        r"(?im)^[ \t#*/<!-]{0,20}(?:company|strictly) confidential\b"
        r"|\b(?:contains|constitutes?) (?:our )?trade secrets?\b"
    ),
    "legal-hold": re.compile(
        r"(?i)\b(?:litigation|legal)[ _-]hold\b[^\n]{0,60}\b(?:preserve|delete|destroy|retain)"
    ),
}
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,4}[A-Za-z]{2,18}\b")
_PHONE = re.compile(r"(?<![\w+])\+\d{1,3}(?:[ ().-]{0,2}\d){7,12}(?!\d)")


def personal(text: str) -> dict[str, str]:
    """What a text shows, by kind, in words without the values; {} for an ordinary one."""
    text = text[:MOST]
    seen = {kind: sorted(set(found)) for kind, look in _LOOKS.items() if (found := look(text))}
    words = {kind: f"{len(found)}" for kind, found in seen.items()}
    if cards := _cards(text):
        seen["card"] = cards
        words["card"] = f"{len(cards)}, the first ends in {cards[0][-4:]}"
    for kind, found in seen.items():
        if len(found) > BREACH:
            words[kind] += f", more than {BREACH}: a breach that has to be told"
    return words


def values(text: str) -> dict[str, list[str]]:
    """What stands for people in a text, by kind and as it is written there: what no record keeps. A text that
    is a number says nothing of what it is."""
    text = text[:MOST]
    low = text.lower()
    if low.strip().isdigit() or not (_NUMBERS.search(text) or low.count("@") >= MANY or "diagnos" in low):
        return {}
    found = {
        kind: [one[0] for one in _LABELLED[kind].finditer(text)]
        for kind, words in _WORDS.items()
        if any(word in low for word in words)
    }
    found["card"] = [one[0] for one in _CARD.finditer(text) if _is_card(re.sub(r"\D", "", one[0]))]
    found["account-number"] = [one[0] for one in _IBAN.finditer(text) if _ibans(one[0])]
    found["social-security"] = _ssns(text) if "ssn" in low or "social" in low else []
    for kind, sign in (("e-mail", "@"), ("telephone", "+")):
        many = low.count(sign) >= MANY and _LOOKS[kind](text)
        found[kind] = [one[0] for one in _LISTS[kind].finditer(text)] if many else []
    return {kind: list(dict.fromkeys(rows)) for kind, rows in found.items() if rows}


def laws(kinds: Iterable[str]) -> list[str]:
    """What law or rule each kind may fall under, as a hint to a person who knows: never advice."""
    return sorted({one for kind in kinds for one in LAWS[kind]})


def _cards(text: str) -> list[str]:
    return [
        one
        for one in dict.fromkeys(re.sub(r"\D", "", one[0]) for one in _CARD.finditer(text))
        if _is_card(one)
    ]


def _is_card(digits: str) -> bool:
    return digits not in _TEST_CARDS and len(set(digits)) > 3 and _luhn(digits)


def _luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(one), 10)) for one in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _ibans(text: str) -> list[str]:
    plain = dict.fromkeys(one[0].replace(" ", "") for one in _IBAN.finditer(text))
    return [
        one
        for one in plain
        if 15 <= len(one) <= 34 and int("".join(str(int(char, 36)) for char in one[4:] + one[:4])) % 97 == 1
    ]


def _ssns(text: str) -> list[str]:
    return _SSN.findall(text) if _SAYS_SSN.search(text) else []


def _many(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    def look(text: str) -> list[str]:
        seen = list(dict.fromkeys(one[0].lower() for one in pattern.finditer(text)))
        return seen if len(seen) >= MANY else []

    return look


_LISTS = {"e-mail": _EMAIL, "telephone": _PHONE}
_LOOKS: Mapping[str, Callable[[str], list[str]]] = {
    **{kind: pattern.findall for kind, pattern in _LABELLED.items()},
    "account-number": _ibans,
    "social-security": _ssns,
    **{kind: _many(pattern) for kind, pattern in _LISTS.items()},
}
KINDS = (*_LOOKS, "card")
HELD = frozenset(KINDS) - {"classified", "trade-secret", "legal-hold"}
"""Kinds of which the text itself is a value; the others are marks on a text."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "card-code": ("cvv", "cvc", "security"),
    "passport": ("passport",),
    "driving-licence": ("driv",),
    "health": ("mrn", "medical", "patient", "diagnos", "icd"),
}
"""Of each labelled kind, words without which no text has it."""
_NUMBERS = re.compile(r"\d{3}")
_PEOPLE = ("CCPA", "GDPR", "PIPEDA", "state privacy laws")
LAWS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(KINDS, _PEOPLE),
    **dict.fromkeys(("card", "card-code"), (*_PEOPLE, "PCI DSS")),
    "health": (*_PEOPLE, "HIPAA"),
    "classified": ("state secrets",),
    "trade-secret": ("trade secrets",),
    "legal-hold": ("preservation of evidence",),
}
"""By kind, what it may fall under."""
