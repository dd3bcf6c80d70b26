"""What a refused sign-up asks for, and the fields that fit it better. Pure; the refusal is a stranger's text.

Read are the forms in which frameworks tell of fields (FastAPI and pydantic, Django REST, Laravel, Rails,
express-validator, zod, class-validator, JSON:API, problem details), and plain sentences.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox import strict_json
from sandbox.http import HttpReply
from sandbox.sites.accounts import READ, innermost, lines
from sandbox.text import decode

SIGN_UPS = 6
"""Most tries of one sign-up: each refusal may ask for one thing more."""
COMPLAINTS = 24
"""Complaints of one answer that are read."""
NODES = 400
MOST_FIELDS = 40
LONGEST_NAME, LONGEST_TEXT = 60, 400
_NAME = r"[A-Za-z_][\w.\[\]-]{0,59}"
_SAYING = (
    "msg",
    "message",
    "detail",
    "error",
    "description",
    "reason",
    "title",
    "text",
    "constraints",
    "code",
)
_NAMING = (
    *("loc", "path", "param", "field", "name", "property", "pointer", "attribute", "key", "parameter"),
    *("source", "propertyPath", "target"),
)
_GENERAL = frozenset(
    (
        *(*_SAYING, "errors", "details", "data", "body", "issues", "fields", "fieldErrors", "violations"),
        *("non_field_errors", "invalid_params", "invalidParams", "validation", "status", "statusCode"),
    )
)
"""Names in an answer that are no field's."""
_NO_COMPLAINT = frozenset(("input", "instance", "url", "type", "code", "trace", "stack"))
_MISSING = re.compile(
    r"(?i)\b(?:required|missing|mandatory|must be (?:given|provided|present|set|included|supplied)"
    r"|(?:should|must|can ?not|can't|may not|is) (?:not )?(?:be )?(?:empty|blank|null|undefined)|no value)\b"
)
_KIND = r"(?:property|field|parameter|attribute|key|value)"
_NAMED_AS_MISSING = re.compile(
    rf"(?i)(?:required|missing)(?: required)?(?: {_KIND}s?)?:? [`'\"]?({_NAME})[`'\"]?"
    rf"|[`'\"]({_NAME})[`'\"](?: \w+){{0,3}} (?:required|missing|mandatory)"
    rf"|\b({_NAME})(?: field)? (?:is|are) (?:a )?(?:required|missing|mandatory)"
    rf"|\b({_NAME}) (?:must be (?:accepted|provided)|(?:should |must |can ?)not be (?:blank|empty|null))"
)
_WORDS = frozenset(
    (
        "is",
        "are",
        "the",
        "a",
        "an",
        "field",
        "fields",
        "property",
        "value",
        "parameter",
        "and",
        "that",
        "this",
        "data",
    )
)
"""What a sentence has where a field's name might stand."""
_UNKNOWN = re.compile(
    r"(?i)extra (?:inputs|fields)|unexpected|unknown (?:field|property|key|attribute)|extra_forbidden"
    r"|not (?:a )?(?:permitted|allowed field)|should not exist|additional propert|unrecogni[sz]ed key"
)
_PATTERN = re.compile(
    r"(?i)(?:pattern|regex|regular expression|format)\b[^\n]{0,30}?"
    r"[`'\"/](\^?[^`'\"\n]{2,200}?\$?)[`'\"/](?:\s|$|[,.;}\]])"
)
_BETWEEN = re.compile(
    r"(?i)(\d{1,3})\s*(?:-|–|to|and)\s*(\d{1,3})\s*(?:char|letter|symbol|digit|long)"
    r"|between (\d{1,3}) and (\d{1,3})"
)
_EXACT = re.compile(r"(?i)exactly (\d{1,3})\b|\b(\d{1,3})-(?:digit|character|letter)")
_LEAST = re.compile(
    r"(?i)(?:at least|minimum(?: length)?(?: of| is)?|min\.?|no (?:less|fewer) than|too short\D{0,30}"
    r"|longer than or equal to)\s*:?\s*(\d{1,3})"
    r"|(?:min_?length|minimum|min)['\"]?\s*[:=]\s*(\d{1,3})"
    r"|(\d{1,3}) (?:or more )?characters (?:or more|minimum|at least)"
)
_MOST = re.compile(
    r"(?i)(?:at most|maximum(?: length)?(?: of| is)?|max\.?|no more than|not (?:be )?more than|up to|exceed"
    r"|fewer than or equal to|too long\D{0,30}|shorter than or equal to)\s*:?\s*(\d{1,3})"
    r"|(?:max_?length|maximum|max)['\"]?\s*[:=]\s*(\d{1,3})"
)
_SIZE = re.compile(r"(?i)\b(?:characters?|chars?|letters|long|length|short|string|symbols|digits)\b|_too_")
_NUMBERED = re.compile(
    r"(?i)\b(?:greater than or equal to|at least|minimum(?: is| of)?|>=|not less than)\s*(-?\d{1,9})"
    r"|\b(?:less than or equal to|at most|maximum(?: is| of)?|<=)\s*(-?\d{1,9})"
)
"""The bound of a number."""
_ONE_OF = re.compile(
    r"(?i)(?:one of|expected|allowed values?(?: are)?|valid (?:values|choices|options)(?: are)?|be either)"
    r"\b:?\s*[\[(:]?\s*[`'\"]?([\w.@+-]{1,40})[`'\"]?(?:\s*(?:[,|/]|or\b)|[\])])"
)
_LETTERS = re.compile(
    r"(?i)only (?:contain )?(?:\w+ )?(?:letters|alphabetic)|(?:letters|alphabetic(?:al)? characters) only"
    r"|alphabetic|(?:no|not contain(?: any)?) (?:digits|numbers)"
)
_ALNUM = re.compile(
    r"(?i)alpha-?numeric|letters(?:,)? (?:and|or) (?:numbers|digits)"
    r"|(?:no|not contain(?: any)?) (?:special|symbol|punctuation)"
)
_DIGITS = re.compile(
    r"(?i)only (?:contain )?(?:digits|numbers|numeric)|(?:digits|numbers|numeric) only|must be numeric"
    r"|exactly \d{1,3} digits|\d-digit"
)
_NEEDS = (
    (re.compile(r"(?i)\b(?:upper-?\s?case|capital)"), "A"),
    (re.compile(r"(?i)\b(?:lower-?\s?case)"), "a"),
    (re.compile(r"(?i)\b(?:digit|number|numeral|numeric)"), "1"),
    (re.compile(r"(?i)\b(?:special|symbol|punctuation|non-?alphanumeric)"), "!"),
)
_SYMBOLS = re.compile(r"(?:of|from|like|as|:|\()[\s:]{0,4}[`'\"\[(]?((?:[!@#$%^&*?~+=_.,;|<>-]\s?){1,30})")
"""The symbols that a sentence lists."""
_TYPED = re.compile(
    r"(?i)\b(?:valid|be|expected|of type|as|an?)\s+(?:an? |valid |type )*"
    r"(integer|int|whole number|number|float|boolean|bool|array|list|object|dictionary|date-?time|date)\b"
)
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("integer", "int", "whole number", "number", "float"), 1),
    **dict.fromkeys(("boolean", "bool"), True),
    **{kind: ["en"] for kind in ("array", "list")},
    **{kind: {} for kind in ("object", "dictionary")},
    **dict.fromkeys(("date", "date-time", "datetime"), "1990-05-01"),
}
_DOMAIN = re.compile(r"@([a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){1,3})", re.I)
_RESERVED = (".example", ".test", ".invalid", ".localhost")
_TAKEN = re.compile(r"(?i)already|taken|in use|exists|unique|duplicate")
_TERMS = re.compile(r"(?i)terms|consent|agree|accept|privacy|policy|gdpr|tos$|^is_|^has_|enabled$|newsletter")
_GUESSES: tuple[tuple[re.Pattern[str], Any], ...] = tuple(
    (re.compile(rf"(?i){name}"), value)
    for name, value in (
        (r"pass(?:word|phrase|wd|code|wort|key)|keyphrase|^pwd|secret$|confirm", "{phrase}"),
        (r"e-?mail", "{email}"),
        (r"user|login|nick|handle|account|slug", "{handle}"),
        (_TERMS.pattern.removeprefix("(?i)"), True),
        (r"phone|mobile|^tel", "{handle:[+]493023125[0-9]{4}}"),  # numbers that nobody has
        (r"year", 1990),
        (r"birth|^dob|_date$|^date", "1990-05-01"),
        (r"^age$", 30),
        (r"zip|postal|plz", "10115"),
        (r"country", "DE"),
        (r"locale|language|lang$", "en"),
        (r"currency", "EUR"),
        (r"time_?zone|^tz$", "Europe/Berlin"),
        (r"url|website|homepage", "https://example.com/"),
        (r"(?:first|given)_?-?name", "Quinn"),
        (r"(?:last|family|sur)_?-?name", "Avery"),
        (r"name", "Quinn Avery"),
        (r"city|town", "Berlin"),
        (r"street|address", "Example Street 1"),
        (r"company|organi[sz]ation|team", "Example"),
        (r"count|number|amount|size|quantity", 1),
    )
)


def guessed(name: str) -> Any:  # noqa: ANN401  any JSON
    """A value for a field of a sign-up, by its name."""
    return next((value for form, value in _GUESSES if form.search(name)), "{handle}")


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """What is said of a field; `name` is "" where the answer does not say of which."""

    name: str
    text: str


@dataclass(slots=True)
class TextRules:
    """What a text of ours must be, as far as refusals said it."""

    letters: str = ""
    low: int = 0
    high: int = 0
    needs: dict[str, None] = field(default_factory=dict)

    def learn(self, text: str) -> bool:
        """Take what a complaint says; whether that was anything new."""
        before = (self.letters, self.low, self.high, tuple(self.needs))
        sized = text if _SIZE.search(text) else ""
        if both := _BETWEEN.search(sized):
            self.low, self.high = int(both[1] or both[3]), int(both[2] or both[4])
        elif exact := _EXACT.search(text):
            self.low = self.high = int(exact[1] or exact[2])
        else:
            least, most = _LEAST.search(sized), _MOST.search(sized)
            self.low = int(next(filter(None, least.groups()))) if least else self.low
            self.high = int(next(filter(None, most.groups()))) if most else self.high
        for form, letters in ((_LETTERS, "a-z"), (_DIGITS, "0-9"), (_ALNUM, "a-z0-9")):
            if form.search(text):
                self.letters = letters
                break
        else:
            self.needs |= {one: None for form, one in _NEEDS if form.search(text)}
            if listed := _SYMBOLS.search(text):
                self.needs.pop("!", None)
                self.needs[listed[1][0]] = None
        return before != (self.letters, self.low, self.high, tuple(self.needs))

    def pattern(self, *, phrase: bool) -> str:
        """A pattern of texts that fit; those of a passphrase have each kind of character."""
        needs = dict.fromkeys(("Q", "a", "1") if phrase and not self.letters else ())
        needs |= {one: None for one in self.needs if not (one in "Aa1" and phrase and not self.letters)}
        fixed = "".join(f"[{one}]" if one not in "^]\\" else f"\\{one}" for one in needs)
        size = max(self.low, min(self.high or 100, 16 if phrase else 10))
        rest = max(0, size - len(needs))
        return f"{fixed}[{self.letters or 'a-z0-9'}]{{{rest}}}" if rest else fixed


class Adaptation:
    """The fields of one sign-up while it is refused, in `whole` as they are sent; `more` are those that may
    be sent besides, `host` is the platform's."""

    def __init__(self, fields: Mapping[str, Any], more: Mapping[str, Any], host: str = "") -> None:
        self.whole, self._more, self._host = copy.deepcopy(dict(fields)), dict(more), host.lower()
        self.fields = innermost(self.whole)
        self._rules: dict[str, TextRules] = {}
        self.form_unread = False
        """Whether the last answer lacks all fields that were sent: it does not read how they were sent."""

    def learn(self, reply: HttpReply, calm: frozenset[str] = frozenset()) -> bool:
        """Change the fields by what a refusal says; False where that asks for nothing that can be done.

        What may be sent besides is sent once a refusal says nothing else. `calm`: lines that the page has
        without a refusal.
        """
        found = [one for one in complaints(reply) if one.text not in calm]
        lacking = {one.name for one in found if one.name and _MISSING.search(one.text)}
        self.form_unread = bool(lacking & set(self.fields)) and lacking >= set(self.fields)
        changed = [self._heed(one) for one in found]
        if not any(changed) and self._more:
            self.fields |= {name: value for name, value in self._more.items() if name not in self.fields}
            self._more = {}
            return True
        return any(changed)

    def _heed(self, one: FieldRefusal) -> bool:
        name, text = one.name or self._meant(one.text), one.text
        if not name:
            return False
        if _UNKNOWN.search(text) and name in self.fields:
            del self.fields[name]
            self._more.pop(name, None)
            return True
        if name not in self.fields:
            if not re.fullmatch(_NAME, name) or len(self.fields) >= MOST_FIELDS:
                return False
            if not (_MISSING.search(text) or _TERMS.search(f"{name} {text}") or name in self._more):
                return False
            self.fields[name] = self._more.pop(name, guessed(name))
            return True
        before = self.fields[name]
        self.fields[name] = value = self._fitted(name, before, text)
        if isinstance(value, str) and value.startswith("{phrase:"):  # and where it is repeated
            self.fields |= {at: value for at, one in self.fields.items() if str(one).startswith("{phrase")}
        return bool(value != before or type(value) is not type(before))

    def _fitted(self, name: str, before: Any, text: str) -> Any:  # noqa: ANN401  any JSON
        """Another value of a field that was sent, by what is said of it."""
        if (asked := _TYPED.search(text)) and type(kind := _TYPES[asked[1].lower()]) is not type(before):
            return kind
        if not isinstance(before, str):
            if type(before) is int and (bound := _NUMBERED.search(text)):
                return int(next(filter(None, bound.groups())))
            return True if isinstance(before, bool) else before
        if (found := _PATTERN.search(text)) and found[1].isprintable():
            return f"{{{_word(name, before)}:{found[1]}}}"
        if (choice := _ONE_OF.search(text)) and not _SIZE.search(text):
            return choice[1]
        if (
            before.startswith("{email")
            and (asked := _DOMAIN.search(text))
            and self._harmless(asked[1].lower())
        ):
            local = before[7:].partition("@")[0] if before.startswith("{email:") else "[a-z]{10}"
            return f"{{email:{local}@{asked[1].lower().replace('.', '[.]')}}}"
        rules = self._rules.setdefault(name, TextRules())
        if not rules.learn(text):
            return "{handle}" if _TAKEN.search(text) and "{" not in before else before
        word = _word(name, before)
        host = before.partition("@")[2].removesuffix("}") or "example[.]com"
        tail = f"@{host}" if word == "email" else ""
        return f"{{{word}:{rules.pattern(phrase=word == 'phrase')}{tail}}}"

    def _harmless(self, host: str) -> bool:
        """Whether mail to a host reaches nobody (RFC 2606), or the platform itself."""
        reserved = host.endswith(_RESERVED) or host in ("example.com", "example.org", "example.net")
        return reserved or f".{self._host}".endswith(f".{'.'.join(host.split('.')[-2:])}")

    def _meant(self, text: str) -> str:
        """The field that a sentence is about: one that it says is missing, else one of ours."""
        plain = re.sub(r"[\W_]", "", text.lower())
        known = sorted({**self.fields, **self._more}, key=len, reverse=True)
        said = {one: plain.find(re.sub(r"[\W_]", "", one.lower())) for one in known}
        found = [one for one, at in said.items() if at >= 0]
        missing = _MISSING.search(text) and _NAMED_AS_MISSING.search(text)
        name = next(filter(None, missing.groups())) if missing else ""
        if name and name.lower() not in _WORDS and name not in found:
            return name
        if found:
            return min(found, key=lambda one: said[one])
        for form, value in _GUESSES[:3]:  # by what it is: a password, whatever its field is called
            word = f"{value}".rstrip("}")
            if form.search(text) and (
                held := [at for at, one in self.fields.items() if str(one).startswith(word)]
            ):
                return held[0]
        accepted = re.search(rf"(?i)\b({_NAME})[^.]{{0,30}} must be accepted|accept (?:the )?({_NAME})", text)
        return next(filter(None, accepted.groups())) if accepted else ""


def _word(name: str, before: str) -> str:
    """Which of our words a field holds, so that it keeps its meaning in a pattern."""
    found = re.match(r"\{(handle|email|phrase)\b", before) or re.match(r"\{(\w+)\b", str(guessed(name)))
    return found[1] if found and found[1] in ("handle", "email", "phrase") else "handle"


def complaints(reply: HttpReply) -> list[FieldRefusal]:
    """What an answer complains of, field by field where it says which."""
    try:
        document = strict_json.loads(reply.body[: READ * 4])
    except (ValueError, RecursionError):
        text = decode(reply.body)[:READ]
        return [FieldRefusal("", one[:LONGEST_TEXT]) for one in lines(text, reply.content_type) if one][
            :COMPLAINTS
        ]
    found = dict.fromkeys(one for one in _walked(document) if one.text.strip())
    return list(found)[:COMPLAINTS]


def _walked(document: Any) -> Iterator[FieldRefusal]:  # noqa: ANN401  any JSON
    """Each complaint of a document, by breadth."""
    waiting: list[tuple[str, Any]] = [("", document)]
    for _ in range(NODES):
        if not waiting:
            return
        name, value = waiting.pop(0)
        if isinstance(value, str):
            # one text may be several sentences, each on a field of its own
            yield from (
                FieldRefusal(name, one.strip()[:LONGEST_TEXT]) for one in re.split(r"(?<=[.;!])\s+|\n", value)
            )
        elif isinstance(value, list):
            waiting += [(name, one) for one in value[:COMPLAINTS]]
        elif isinstance(value, dict):
            where = next((named for key in _NAMING if (named := _last(value.get(key)))), "")
            saying = [key for key in _SAYING if isinstance(value.get(key), str)]
            if where and saying:
                bounds = {key: one for key, one in value.items() if isinstance(one, int | float)}
                texts = " ".join(str(value[key]) for key in saying)
                yield FieldRefusal(
                    where, f"{texts} {value.get('type', '')} {_pairs(value.get('ctx', bounds))}"[:600]
                )
                continue
            if where and isinstance(value.get("constraints"), dict):
                waiting += [(where, one) for one in value["constraints"].values()]
                continue
            for key, inner in list(value.items())[:COMPLAINTS]:
                if str(key) not in _NO_COMPLAINT:
                    waiting.append((name if str(key) in _GENERAL else str(key)[:LONGEST_NAME], inner))


def _pairs(extra: Any) -> str:  # noqa: ANN401  any JSON
    """The bounds that stand beside a complaint, as `name: value`."""
    pairs = extra.items() if isinstance(extra, Mapping) else ()
    told = (
        (key, f"'{one}'" if key == "pattern" else str(one))
        for key, one in pairs
        if isinstance(one, str | int | float)
    )
    return " ".join(f"{key}: {one}" for key, one in told)


def _last(place: Any) -> str:  # noqa: ANN401  any JSON
    """The field that a place ends in: `["body", "user"]`, `/data/attributes/user`, `user`, `$.user`."""
    if isinstance(place, dict):
        place = place.get("pointer", place.get("parameter"))
    if isinstance(place, list) and place:
        place = place[-1]
    return re.split(r"[/.]", place)[-1][:LONGEST_NAME] if isinstance(place, str) else ""
