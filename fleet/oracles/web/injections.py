"""Oracles of attacks by difference: a payload beside its benign control, in one input of one page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html.parser import HTMLParser
from typing import Any

from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.texts import parsed
from fleet.oracles.web import traces
from fleet.oracles.web.pages import ELSEWHERE
from fleet.oracles.web.variations import Variation, anew, as_module, below, neutral, varied
from fleet.severity import Severity
from fleet.text import line

PRODUCT = re.compile(r"(\d{3,6})\s{0,2}\*\s{0,2}(\d{3,6})")
COMMAND = re.compile(r"\bexpr (\d{3,6}) \\?\* (\d{3,6})|\$\(\((\d{3,6})\*(\d{3,6})\)\)")
"""A product that a shell computes: by its program, or by itself."""
PAIR = re.compile(r"'(\w{1,12})%?'='(\w{1,12})%?|\b(\d{3,6})=(\d{3,6})\b")
KNOWN_FILES = (
    ("/etc/passwd", re.compile(r"(?<![\w/.:-])root:[^:\n]{0,40}:0:0:")),
    ("/etc/host.conf", re.compile(r"(?m)\A(?:#[^\n]{0,200}\n)*multi on$")),
    (
        "the settings of its package",
        re.compile(r'\A\s*\{[\s\S]{0,4000}?"(?:(?:devD|d)ependencies|scripts|lockfileVersion)"\s*:'),
    ),
    ("win.ini", re.compile(r"(?mi)^\[(?:fonts|extensions|mci extensions)\]")),
)
_GROUPS = re.compile(r"(?m)^root:[^:\n]{0,20}:0:[\w,-]{0,80}$")
_HEADER = re.compile(r"[\r\n]+\s{0,4}([A-Za-z][\w-]{3,40}):\s{0,4}(\S{1,60})")
_JSON_KEY = re.compile(r"\",\s{0,2}\"(\w{6,40})\":")
_SPELLING = re.compile(r"(?:%[0-9a-fA-F]{2}|[.\\/]){3,}")


def _read(seen: Sequence[Exchange]) -> Variation | None:
    """The input that varies over the whole question, if its first call is the control."""
    return varied(seen) if len(seen) > 1 and seen[-1].args != seen[0].args else None


def _observed(seen: Sequence[Exchange], found: Variation, what: str, key: str, *fields: str) -> Observation:
    title = f"{found.shown(seen[-1])}: {what}"
    where_ = found.parts(seen[-1])
    return observed(title, f"{key} {found.spot(seen[-1])}", *fields, led=(0,), where=where_)


_LITERAL = re.compile(
    r"\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*'|`(?:[^`\\]|\\[\s\S])*`|//[^\n]*|/\*[\s\S]*?\*/"
)
"""Texts and comments of a script, from its left; one that is never closed is not one."""
_RUN = (None, "", "module", "text/javascript", "application/javascript")


class _Scripts(HTMLParser):
    """The programs of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and dict(attrs).get("type") in _RUN
        self.texts += [value or "" for name, value in attrs if name.startswith("on") and len(name) > 2]

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts.append(data)


oracle = partial(Oracle, judges=("page",), surface="security")


def _asked(*pairs: tuple[str, dict[str, Any]], **more: object) -> tuple[Exchange, ...]:
    return tuple(Exchange("qa_fetch", {"url": "{site}/x?q=" + sent, **more}, got) for sent, got in pairs)


_OK: dict[str, Any] = {"status": 200, "text": "moss"}
_TRUE, _FALSE = "moss%27%20AND%20%271%27%3D%271", "moss%27%20AND%20%271%27%3D%272"
_NONE: dict[str, Any] = {"status": 200, "text": "none"}
_DOTS = "..%2F..%2Fetc%2Fpasswd"
_BREAK = "x%0D%0Ax-qa-split%3A%20qa77"


@oracle(
    id="script-injection",
    says="what a caller sends never becomes a program of the page",
    severity=Severity.HIGH,
    example=_asked(("qa12345", _OK), ("%3Cscript%3Eqa12345", {"canary_executable": True}), canary="qa12345"),
    control=_asked(("qa12345", _OK), ("%3Cscript%3Eqa12345", {"canary_executable": False}), canary="qa12345"),
)
def script_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found, canary = _read(seen), str(seen[-1].args.get("canary", ""))
    if found is None or len(canary) < 6 or found.values[0] != canary or canary not in found.values[-1]:
        return
    first, last = seen[0].result, seen[-1].result
    if 300 <= int(last.get("status", 0)) < 400:  # no browser shows the body of a redirect
        return
    if last.get("canary_executable") and (not first.get("canary_executable") or _runs(last, canary)):
        yield _observed(seen, found, "a script sent there runs", "script", "canary_executable")


@oracle(
    id="quote-injection",
    says="a quote in an input is a character like any other",
    severity=Severity.HIGH,
    words=True,
    example=_asked(
        ("a", _OK), ("a%27", {"status": 200, "text": "SQLSTATE[42601]"}), ("a%27%27", _OK), ("a", _OK)
    ),
    control=_asked(("a", _OK), ("a%27", {"status": 404}), ("a%27%27", {"status": 404}), ("a", _OK)),
)
def quote_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[value, value and a quote, value and two quotes, value]."""
    found = varied(seen) if len(seen) == 4 else None
    if found is None:
        return
    benign, broken, mended, again = found.values
    mark = broken.removeprefix(benign)
    if mark not in ("'", '"') or mended != benign + mark * 2 or again != benign:
        return
    first, one, two, last = (_status(each) for each in seen)
    leaks = [traces.find(str(each.result.get("text", "")), paths=False) for each in seen]
    errors = [one is not None and one.table == "databases" for one in leaks]
    fails = (one >= 500 and one not in ELSEWHERE) or errors[1]
    if fails and max(first, two, last) < 500 and first == last and not (errors[0] or errors[2] or errors[3]):
        name = "quote" if mark == "'" else "double quote"
        answers = f"a {name} answers {one}, two of them {two}"
        what = f"a {name} gives a database error" if errors[1] else answers
        at = _observed(seen, found, what, "quote", "status", "text")
        yield Observation(at.sighting, at.fields, led=(0, 1, 2))


@oracle(
    id="condition-injection",
    says="a condition in an input is text, true or false",
    severity=Severity.CRITICAL,
    example=_asked(("moss", _OK), (_TRUE, _OK), (_FALSE, _NONE), (_TRUE, _OK), (_FALSE, _NONE)),
    control=_asked(("moss", _OK), (_TRUE, _NONE), (_FALSE, _NONE), (_TRUE, _NONE), (_FALSE, _NONE)),
)
def condition_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[value, with a true condition, with a false one, true again, false again]."""
    found = varied(seen) if len(seen) == 5 else None
    if found is None or found.values[1:3] != found.values[3:5]:
        return
    pairs = [PAIR.search(value) for value in found.values[:3]]
    holds = [None if one is None else (one[1] or one[3]) == (one[2] or one[4]) for one in pairs]
    if holds != [None, True, False] or any(_status(each) >= 500 for each in seen):
        return
    plain, true, false, true_again, false_again = (
        (
            _status(each),
            str(each.result.get("content_type", "")),
            neutral(neutral(str(each.result.get("text", "")), value), found.values[0]),
        )
        for each, value in zip(seen, found.values, strict=True)
    )
    wide = " or " in found.values[1].lower()
    same, other = (false, true) if wide else (true, false)
    if true == true_again and false == false_again and same == plain and other != plain:
        what = "true and false conditions answer differently"
        at = _observed(seen, found, what, "condition", "status", "text", "sha256")
        yield Observation(at.sighting, at.fields, led=(0, 1, 2, 3))


@oracle(
    id="expression-injection",
    says="an expression in an input is text and is not computed",
    severity=Severity.CRITICAL,
    example=_asked(("moss", _OK), ("%7B%7B1009*2003%7D%7D", {"status": 200, "text": "2021027"})),
    control=_asked(("moss", _OK), ("%7B%7B1009*2003%7D%7D", {"status": 200, "text": "{{1009*2003}}"})),
)
def expression_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _read(seen)
    if found is None or COMMAND.search(found.values[-1]):
        return
    if product := computed(found.values[-1], PRODUCT, "".join(found.values), _all(seen[-1]), _all(seen[0])):
        what = f"{line(found.values[-1], 40)} is computed to {product}"
        yield _observed(seen, found, what, "expression", "text")


@oracle(
    id="command-injection",
    says="a command in an input is text and is not run",
    severity=Severity.CRITICAL,
    example=_asked(("moss", _OK), ("moss;expr%201009%20%5C*%202003", {"status": 200, "text": "2021027"})),
    control=_asked(("moss", _OK), ("moss;expr%201009%20%5C*%202003", {"status": 200, "text": "no moss"})),
)
def command_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _read(seen)
    if found is None:
        return
    if product := computed(found.values[-1], COMMAND, "".join(found.values), _all(seen[-1]), _all(seen[0])):
        what = f"a command in it, {line(found.values[-1], 40)}, prints {product}"
        yield _observed(seen, found, what, "command", "text")


def _hearing(sent: str, *heard: str) -> tuple[Exchange, ...]:
    return _asked(("moss", _OK), (sent, {"status": 200, "heard": list(heard)}))


_AT = "{listener}/qah0123456789ab"


@oracle(
    id="listener-asked",
    says="a server asks for no address that its caller names, of its own machine or network",
    severity=Severity.HIGH,
    example=_hearing(_AT, "qah0123456789ab"),
    control=_hearing(_AT),
)
def listener_asked(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """The fleet's own listener was asked for a word that this input alone has."""
    found = _read(seen)
    if found and (sent := told_listener(found.values[-1], seen[-1].result)) and not RUN.search(sent):
        yield _observed(seen, found, "the server asks for an address sent there", "listener", "heard")


@oracle(
    id="listener-command",
    says="a command in an input is text and is not run, whatever of its output is shown",
    severity=Severity.CRITICAL,
    example=_hearing(f"moss;curl%20-s%20{_AT};", "qah0123456789ab"),
    control=_hearing(f"moss;curl%20-s%20{_AT};"),
)
def listener_command(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _read(seen)
    if found and (sent := told_listener(found.values[-1], seen[-1].result)) and RUN.search(sent):
        yield _observed(seen, found, "a command in it, curl, is run", "listener-command", "heard")


RUN = re.compile(r"\bcurl -s ")
"""A command that asks for the listener."""


def told_listener(sent: str, result: Mapping[str, Any]) -> str:
    """What was sent, if the listener was asked for its word; else ""."""
    heard = result.get("heard")
    words = heard if isinstance(heard, list | tuple) else ()
    return sent if any(str(word) in sent for word in words) else ""


def computed(sent: str, form: re.Pattern[str], given: str, shown: str, before: str) -> str:
    """The product of what was sent, if this answer alone shows it and it was not sent itself."""
    if (factors := form.search(sent)) is None:
        return ""
    one, two = [int(each) for each in factors.groups() if each][:2]
    product = str(one * two)
    return product if product in shown and product not in before and product not in given else ""


@oracle(
    id="path-climb",
    says="an input never reads a file beside those that are served",
    severity=Severity.CRITICAL,
    example=_asked(("moss", _OK), (_DOTS, {"status": 200, "text": "root:x:0:0:root:/root:/bin/sh"})),
    control=_asked(("moss", _OK), (_DOTS, {"status": 404, "text": "no such document"})),
)
def path_climb(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    begun = anew(seen)
    found = below(seen) or as_module(seen) or begun or _read(seen)
    if found is None or not (_SPELLING.search(found.values[-1]) or found.values[-1].startswith("/")):
        return
    groups = [at for at, one in enumerate(seen[:-1]) if _GROUPS.search(str(one.result.get("text", "")))]
    if begun and not groups:
        return  # a page may show such a file; two of them are the machine's
    for name, content in KNOWN_FILES:
        if content.search(str(seen[-1].result.get("text", ""))) and not content.search(
            str(seen[0].result.get("text", ""))
        ):
            at = _observed(seen, found, f"it reads {name}", "climb", "text")
            yield Observation(at.sighting, at.fields, led=(0, *(groups[:1] if begun else ())))


@oracle(
    id="header-injection",
    says="a line break in an input never becomes a header",
    severity=Severity.HIGH,
    example=_asked(("moss", _OK), (_BREAK, {"status": 302, "headers": {"x-qa-split": "qa77"}})),
    control=_asked(("moss", _OK), (_BREAK, {"status": 302, "headers": {"location": "/x"}})),
)
def header_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _read(seen)
    header = _HEADER.search(found.values[-1]) if found else None
    if found is None or header is None:
        return
    name, value = header[1].lower(), header[2]
    headers = [dict(each.result.get("headers", {})) for each in (seen[0], seen[-1])]
    if value in str(headers[1].get(name, "")) and name not in headers[0]:
        yield _observed(seen, found, f"a line break adds the header {line(name, 40)}", "header", "headers")


@oracle(
    id="json-injection",
    says="a quoted text in an input never becomes a field of the answer",
    severity=Severity.MEDIUM,
    example=_asked(("moss", _OK), ("a%22%2C%22qa12345%22%3A%221", {"text": '{"q":"a","qa12345":"1"}'})),
    control=_asked(
        ("moss", _OK), ("a%22%2C%22qa12345%22%3A%221", {"text": '{"q":"a\\",\\"qa12345\\":\\"1"}'})
    ),
)
def json_injection(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _read(seen)
    key = _JSON_KEY.search(found.values[-1]) if found else None
    if found and key and key[1] in _keys(parsed(str(seen[-1].result.get("text", "")))):
        yield _observed(seen, found, "a quoted text adds a field", "json-field", "text")


def _all(call: Exchange) -> str:
    return "\n".join(
        (str(call.result.get("text", "")), *map(str, dict(call.result.get("headers", {})).values()))
    )


def _keys(value: object, depth: int = 16) -> set[str]:
    if depth == 0 or not isinstance(value, dict | list):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*(_keys(one, depth - 1) for one in inner))


def _status(call: Exchange) -> int:
    status = call.result.get("status", 0)
    return status if isinstance(status, int) else 0


def _runs(result: Mapping[str, Any], canary: str) -> bool:
    """Whether the canary is a word of a program in the part of the page that the result holds."""
    reader = _Scripts()
    try:
        reader.feed(str(result.get("text", "")))
        reader.close()
    except (AssertionError, ValueError, RecursionError):
        return False
    return any(canary in _LITERAL.sub(" ", text) for text in reader.texts)
