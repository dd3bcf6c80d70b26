"""Reads what documents state: sentences with their values taken out, and a few well-known facts. Pure.

Two sources state the same fact for certain if they say it in the same sentence, or if both name it by one of
few unmistakable words. A value that is approximate, a range or an example is not a statement.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from fleet.oracles.texts import is_html, leaves, parsed, visible

_DIMENSIONS: Mapping[str, Mapping[str, str]] = {
    "seconds": {
        **{"ms": "0.001", "millisecond": "0.001", "s": "1", "sec": "1", "second": "1", "min": "60"},
        **{"minute": "60", "h": "3600", "hour": "3600", "day": "86400", "week": "604800"},
    },
    "bytes": {"byte": "1", "b": "1", "kb": "1000", "kib": "1024", "mb": "1000000", "mib": "1048576"},
    "credits": {"credit": "1"},
    "wei": {"wei": "1", "gwei": "1e9", "ether": "1e18", "eth": "1e18"},
    "characters": {"character": "1", "char": "1"},
    "calls": {"call": "1", "request": "1", "message": "1", "turn": "1"},
    "percent": {"%": "1", "percent": "1"},
}
_UNITS = {
    word: (unit, Decimal(factor)) for unit, words in _DIMENSIONS.items() for word, factor in words.items()
}
_NUMBER = r"\d{1,3}(?:,\d{3}){1,8}(?:\.\d{1,30})?|\d{1,40}(?:\.\d{1,30})?"
_AMOUNT = re.compile(rf"(?<![\w.,:/#-])({_NUMBER})[\s-]?(%|[A-Za-z]{{1,13}})?(?![\w/:])")
_COUNTED = re.compile(rf"(?<![\w.,:/#-])({_NUMBER}) ([a-z]{{3,20}})(?![\w/:])")
"""An amount of anything, in a sentence that has no other amount."""
_REMARK = re.compile(r" {0,2}\((?:[^()\d]|\(\)){1,80}\)")
_SYMBOL = re.compile(rf"(?<![\w.])(\$)({_NUMBER})(?!\w)")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{40}\b")
_WORD_VALUES = (
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")),
    ("address", _ADDRESS),
    ("route", re.compile(r"(?<![\w/.:<])/(?:[a-z0-9][\w.:{}<>-]{0,60}/?){1,8}(?:\?[\w=&<>{}%-]{1,80})?")),
)
_VAGUE = re.compile(
    r"(?i)\b(?:about|around|roughly|approximately|some|e\.g|example|for instance|such as|between|typically"
    r"|usually|up to date|was|were|formerly|previously|since|released?|changelog|version|step|chapter|section"
    r"|(?<!/)v\d)\b|~|≈"
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+(?=[A-Z`*\[(])|\n+|\s\|\s|(?<=:)\s{2,}")
_TEXTS = re.compile(r'"((?:[^"\\\n]|\\.){12,400})"')
"""Texts of a JSON document that is cut."""
_WRAP = re.compile(
    r"(?m)^(?![ \t]*(?:[#>|`~]|\d{1,2}[.)] |[-*+] ))([^\n]{50,400}?[^\n.:;!?|])\n(?=[a-z(`*0-9][^\n]{2})"
)
"""A long line of prose, not of a heading, a list, a table or code, that goes on in the next one."""
_NORM = re.compile(
    r"(?i)\b(?:at most|no more than|up to|max(?:imum)?|limit(?:ed|s)?|must|costs?|price|charged?|fee|valid"
    r"|good for|expires?|within|allowed|accepts?|cap|default|contact|write to|report|address|deployed"
    r"|lives at|per|longer|calls? (?:go|are (?:posted|sent)))\b"
)
"""A sentence with one of these sets a rule; it does not describe a moment."""
_MOMENT = re.compile(
    r"(?i)\b(?:ago|now|today|currently|so far|left|remaining|uptime|elapsed|total|registered|online|active"
    r"|balance|you have|has been|served|took|generated|rendered|updated|last|latest|pending|see|read more"
    r"|next|previous)\b"
)
_SESSION = re.compile(
    r"(?i)(?:^|[,;:(] ?)(?:(?:a|an|each|every|your|the|api|web|log-?in|user) ){0,2}sessions? "
    r"(?:lasts?|expires? (?:after|in)|(?:is|are) (?:valid|good) for|lives?(?: for)?) "
)
_IDLE = re.compile(r"(?i)inactiv|idle|unused|without|activity|quiet|remember")
_CONTRACT = re.compile(
    r"(?i)(?:^|\b(?:the|one|our|this|by a) )contract(?: address)?(?: is| at|:|,)? {0,2}(0x[0-9a-f]{40})\b"
)
"""The contract of a platform that has one: no other word says which."""
_OTHER_CHAIN = re.compile(
    r"(?i)\b(?:main|test|dev)net\b|\b(?:other|another|foreign|sepolia|goerli|ethereum)\b"
)
_MARKUP = re.compile(r"[*_`#>|\[\]\"“”]|^\s*(?:[-+]|\d{1,2}[.)])\s")
_MOST = 600
"""Sentences of one document."""
_EIGHTEEN = re.compile(r"(?i)\b18 decimals?\b|10\s?(?:\^|\*\*)\s?18|\b1e18\b|\b1,?0{3}(?:,?0{3}){5} wei")


@dataclass(frozen=True, slots=True)
class Statement:
    """One value of one fact. `fact` is its identity, `value` comparable within `unit`, `shown` as written."""

    fact: str
    unit: str
    value: str
    shown: str


def statements(result: Mapping[str, Any]) -> Mapping[str, Statement]:
    """What one answer states, by fact and unit; what it states twice with different values is left out."""
    return _stated(str(result.get("text", "")), is_html(result))


@lru_cache(maxsize=64)  # each source of a question is compared with each other one
def _stated(text: str, html: bool) -> Mapping[str, Statement]:
    document = parsed(text)
    found: dict[str, set[Statement]] = defaultdict(set)
    if isinstance(document, dict):
        made = [*_of_fields(document)]
        spoken = [value for _, value in leaves(document) if isinstance(value, str) and " " in value]
    else:
        cut = _TEXTS.findall(text) if text.lstrip()[:1] == "{" else []
        made, spoken = [], cut or [visible(text) if html else text]
    for words in spoken:
        made += [*_of_sentences(words)]
    for one in made:
        found[f"{one.fact} [{one.unit}]"].add(one)
    if (
        len({one.lower() for one in _ADDRESS.findall(text)}) > 1
    ):  # several contracts: each document means its own
        found.pop("address of the contract [address]", None)
    clear = {key: next(iter(some)) for key, some in found.items() if len({one.value for one in some}) == 1}
    price = clear.get("price of one call [credits]")
    if price is not None and _EIGHTEEN.search(text) and "price of one call [wei]" not in clear:
        wei = Decimal(price.value) * 10**18  # the text says how many decimals a credit has
        clear["price of one call [wei]"] = Statement(price.fact, "wei", _decimal(wei), price.shown)
    return clear


def _of_sentences(text: str) -> Iterator[Statement]:
    for raw in _SENTENCE.split(_WRAP.sub(r"\1 ", text))[:_MOST]:
        said = _REMARK.sub("", " ".join(_MARKUP.sub(" ", raw).split()))
        if not 12 <= len(said) <= 300 or _VAGUE.search(said):
            continue
        counted = [] if (amounts := [*_amounts(said)]) else [*_counted(said)]
        amounts += counted
        if known := [*_known(said, amounts)]:
            yield from known
        if len(amounts) > 1 and (first := _first_clause(said)):
            yield from _of_rule(first, [one for one in amounts if one[1] <= len(first)], least=3)
        elif not known:
            yield from _of_rule(said, amounts, least=3 - len(counted))


def _first_clause(said: str) -> str:
    """What stands before the first comma or conjunction after the first number; it has the subject."""
    number = re.search(r"\d", said)
    end = re.compile(r",? (?:and|but|or)\b|[,;(] ?").search(said, number.end() + 2) if number else None
    return said[: end.start()] if end else ""


def _of_rule(said: str, amounts: list[tuple[int, int, str, str]], *, least: int) -> Iterator[Statement]:
    """The sentence itself as a fact, if it sets a rule with one value; `least`: words that it has."""
    template, shown = said, list[tuple[str, str, str]]()
    for start, end, unit, value in reversed(amounts):
        template = f"{template[:start]}{{{unit}}}{template[end:]}"
        shown.insert(0, (unit, value, said[start:end]))
    for kind, pattern in _WORD_VALUES:
        for hit in pattern.finditer(template):
            shown.append((kind, hit[0].lower().rstrip("./"), hit[0]))
        template = pattern.sub(f"{{{kind}}}", template)
    words = re.findall(r"[a-z]{3,}", re.sub(r"\{[a-z]+\}", " ", template.lower()))
    rule = _NORM.search(said) and not _MOMENT.search(said)
    if rule and len(shown) == 1 and len(words) >= least and not re.search(r"\d", template):
        unit, value, written = shown[0]
        key = " ".join(word.rstrip("s") for word in re.findall(r"[a-z]+|\{[a-z]+\}", template.lower()))
        yield Statement(f"sentence {key}", unit, value, written)


def _amounts(said: str) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, unit and value in the base unit of every amount with a unit that is known."""
    for hit in _AMOUNT.finditer(said):
        word = (hit[2] or "").lower()
        unit = _UNITS.get(word) or _UNITS.get(word.rstrip("s"))
        value = _number(hit[1])
        if unit is not None and value is not None:
            yield hit.start(), hit.end(), unit[0], _decimal(value * unit[1])
    for hit in _SYMBOL.finditer(said):
        if (value := _number(hit[2])) is not None:
            yield hit.start(), hit.end(), "dollars", _decimal(value)


def _counted(said: str) -> Iterator[tuple[int, int, str, str]]:
    """The same for the only number of a sentence, in the unit of the word after it."""
    hits = [*_COUNTED.finditer(said)]
    if len(hits) == 1 and len(re.findall(r"\d+", said)) == 1 and (value := _number(hits[0][1])) is not None:
        yield hits[0].start(), hits[0].end(), hits[0][2].rstrip("s"), _decimal(value)


_PRICE = re.compile(
    r"(?i)\b(?:costs?|price|priced|fee|charged?|charges)\b.{0,40}"
    r"\b(?:per|each|every|one|a|an) (?:agent )?(?:call|message|turn)\b"
    r"|\b(?:a|an|one|each|every) (?:call|message|turn)\b.{0,40}\b(?:costs?|price|priced|charged)\b"
)
_RATE = re.compile(r"(?i)\b(?:calls|requests|messages) (?:per|a|each|every|in any|in a) minute\b")
_LIFETIME = re.compile(
    r"(?i)\btokens?\b.{0,60}\b(?:good|valid|fresh|expires?|lives?|lasts?|lifetime|accepted)\b"
)
_CHAIN = re.compile(r"(?i)\bchain[ _-]?id\b[^0-9a-z]{0,6}(?:is |of )?(\d{1,12})\b")
_DIAMOND = re.compile(
    r"(?i)\bdiamond(?: contract)?(?: address)?\b[^0-9a-z]{0,6}(?:is |at )?(0x[0-9a-f]{40})\b"
)


def _known(said: str, amounts: list[tuple[int, int, str, str]]) -> Iterator[Statement]:
    """The well-known facts of a sentence that has one amount of the fact's unit."""
    for fact, pattern, units in (
        ("price of one call", _PRICE, ("credits", "wei", "dollars")),
        ("calls in a minute", _RATE, ("calls",)),
        ("lifetime of a token", _LIFETIME, ("seconds",)),
    ):
        fitting = [one for one in amounts if one[2] in units]
        if len(fitting) == 1 and pattern.search(said):
            start, end, unit, value = fitting[0]
            yield Statement(fact, unit, value, said[start:end].strip())
    if _SESSION.search(said) and not _IDLE.search(said):
        lasting = [one for one in amounts if one[2] == "seconds"]
        for start, end, unit, value in lasting if len(lasting) == 1 else ():
            yield Statement("lifetime of a session", unit, value, said[start:end].strip())
    if _OTHER_CHAIN.search(said):
        return
    if contract := _CONTRACT.search(said):
        yield Statement("address of the contract", "address", contract[1].lower(), contract[1])
    if chain := _CHAIN.search(said):
        yield Statement("chain id", "number", chain[1], chain[1])
    if diamond := _DIAMOND.search(said):
        yield Statement("address of the diamond", "address", diamond[1].lower(), diamond[1])


_PER = r"(?:call_?|message_?|turn_?)?(?:price|cost|fee)(?:_?per_?(?:call|message|turn))?"
_FIELDS = tuple(
    (fact, unit, re.compile(pattern))
    for fact, unit, pattern in (
        ("price of one call", "wei", f"{_PER}_?wei"),
        ("price of one call", "credits", f"{_PER}(?:_?credits)?"),
        ("chain id", "number", "chain_?id"),
        ("address of the diamond", "address", "diamond(?:_?address)?"),
        ("address of the contract", "address", "contract(?:_?address)?"),
        ("calls in a minute", "calls", "(?:rate_?limit|calls|requests|limit)_?per_?minute"),
        (
            "lifetime of a token",
            "seconds",
            "token_?(?:ttl|lifetime|freshness|max_?age)(?:_?s(?:ec(?:onds)?)?)?",
        ),
    )
)


def _of_fields(document: Mapping[str, Any]) -> Iterator[Statement]:
    """Well-known facts by the name of a field; a field in a list belongs to one of several things."""
    fields = [
        (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", path[-1]).lower().replace("-", "_"), value)
        for path, value in leaves(document)
        if len(path) <= 3 and "[]" not in path and isinstance(value, int | float | str)
    ]
    prices = [name for name, _ in fields if re.search("price|cost|fee", name)]
    several = any(not re.fullmatch(f"{_PER}(?:_?wei|_?credits)?", name) for name in prices)
    for name, value in fields:
        for fact, unit, pattern in _FIELDS:
            if not pattern.fullmatch(name) or isinstance(value, bool) or (several and name in prices):
                continue
            text = str(value).strip()
            if unit == "address" and re.fullmatch(r"0x[0-9a-fA-F]{40}", text):
                yield Statement(fact, unit, text.lower(), text)
            elif unit != "address" and (number := _number(re.sub(r"(?i) credits?$", "", text))) is not None:
                bare = unit in ("number", "calls") or unit.removesuffix("s") in text
                shown = text if bare else f"{text} {unit.removesuffix('s') if text == '1' else unit}"
                yield Statement(fact, unit, _decimal(number), shown)


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", "")) if re.fullmatch(_NUMBER, text) else None
    except InvalidOperation:
        return None


def _decimal(value: Decimal) -> str:
    return format(value.normalize(), "f")
