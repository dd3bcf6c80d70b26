"""Oracles of one page: what any answer over HTTP must not contain. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.findings.sighting import template
from fleet.oracles.echoes import family, gave, gave_key, host
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.oracles.place import host_of
from fleet.oracles.texts import Passage, is_html, leaves, parsed, passages
from fleet.oracles.web import traces
from fleet.oracles.web.access import MISSING
from fleet.oracles.web.variations import below, inputs, neutral, varied
from fleet.personas.needs import strings
from fleet.severity import Severity
from fleet.text import line
from sandbox.secrets.patterns import ISSUED
from sandbox.text import mask

ELSEWHERE = frozenset({501, 502, 503, 504, 507})
"""Server statuses that do not blame the page: not offered, a gateway's outage, a full disk."""
REFUSED_ANYWHERE = frozenset({404, 405})
"""Refusals that one handler writes for all pages: what it leaks is one defect."""
WHOLE = frozenset({"private-key", "mnemonic", "aws-key", "database-url", "labelled-secret"})
"""Secrets that give away an identity or a store as a whole."""
SPOKEN = WHOLE | {one.kind for one in ISSUED} | {"session-token"}
"""Kinds that no document shows as an example; an `api-key` may be one, but not in a refusal."""
OF_SERVER = ("server", "x-powered-by", "via", "x-served-by", "x-backend", "x-runtime")
"""Headers in which programs name themselves."""


_FORMAT = re.compile(r"\.(?:csv|html|json|txt|xml)$")
"""Ends a route that answers in several formats; its parameters are read before a format is chosen."""

_STACK = re.compile(r"(?i)(?:stack|back)_?-?trace|stack")
"""What a field of a failed answer is called that is for its developers, whatever language it is in."""
_FAILED = re.compile(r"(?i)errors?")
_RAISED = re.compile(r"(?:Error|Exception)\b|\bat \w|\bline \d")
_TELLING = 4
"""Characters that a value has at least, to be known again in a sentence."""
_SENTENCE = 160
_THREE_WORDS = re.compile(r"(?:[^\W\d_]{2,}\W+){2,}[^\W\d_]{2,}")
_DIGIT = re.compile(r"\d")
_OWN_NAME = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b")
"""What only code and settings are called, as `DATABASE_URL`."""
_EXPLAINED = 300
"""Characters of a message that names one, at most."""

oracle = partial(Oracle, surface="ux")


def _page(**result: object) -> tuple[Exchange, ...]:
    return (Exchange("qa_fetch", {"url": "{site}/x"}, result),)


_IN_ERRORS = re.compile(r'(?s)"extensions"\s*:\s*\{.{0,400}?"(?:stack_?trace|exception)"\s*:')
"""GraphQL errors that carry the trace of each."""
_TRACEBACK = "Traceback (most recent call last):\n  File x"


@dataclass(frozen=True, slots=True)
class Leak:
    """Words of a program that broke, the text around them, and whether that speaks of a failure."""

    trace: traces.Trace
    text: str
    speaks: bool


@oracle(
    id="trace",
    says="an answer never shows a stack trace, a panic, or an error of the system or a database",
    severity=Severity.MEDIUM,
    judges=("page", "reply"),
    forgeable=True,
    words=True,
    example=_page(status=500, text=_TRACEBACK),
    control=_page(status=404, text="there is no such page"),
)
def trace(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status, called = int(last.result.get("status", 0)), "reply" in last.kinds
    if (leaked := leak(last)) is None:
        return
    found, text = leaked.trace, leaked.text
    mild = found.kind in traces.MILD and status < 500
    severity: Severity = Severity.LOW if mild else Severity.MEDIUM
    words = "" if found.words in ("", traces.HEADING) else f": {line(found.words, 80)}"
    title = f"{last.asked} answers {status} with {found.kind}{words}"
    anywhere = found.table == "pages" or status in REFUSED_ANYWHERE
    where = "call" if called else "any" if anywhere else family(last.args)
    stacks, paged = found.table == "stacks", where not in ("call", "any")
    broke = traces.place(text) if stacks and paged else ""
    said = "" if found.table == "databases" else template(found.words)  # its words are those that were sent
    key = f"trace {where} {found.kind} {said}"
    if paged and (
        traces.of_server(found) or found.table == "paths"
    ):  # its handler shows one path on any page
        key = f"trace {host(last.args)} {found.kind} {said}"
    if broke:  # one place of its code, whatever page shows it
        key = f"trace {host(last.args)} {found.kind} at {broke}"
    elif stacks and paged and 400 <= status < 500 and traces.of_library(text):  # it refused, and shows how
        key = f"trace {host(last.args)} {found.kind} in refusals"
    shown = str(last.result.get("text", ""))[: traces.LOOKED_AT]
    listed = paged and stacks and _IN_ERRORS.search(shown) is not None  # a setting of its server
    if listed:
        key = f"trace {host(last.args)} {found.kind} in errors"
    code = traces.place(text) if stacks and not listed else ""  # of a reply too
    if stacks and not code and status >= 500:
        code = traces.library_path(text)
    at = {"trace": f"{found.kind} at {code}"} if code else None
    if paged and (
        listed or traces.of_server(found) or found.table == "databases"
    ):  # one handler shows all of them
        at = {"trace": f"{found.kind} of {host_of(last, facts)}"}
    yield observed(title, key, "text", "error", "reply", severity=severity, where=at)


@oracle(
    id="header-place",
    says="a header that names a program does not say where its code is",
    severity=Severity.LOW,
    judges=("page",),
    forgeable=True,
    example=_page(status=200, headers={"server": "moss (/srv/moss/releases/12/app.py)"}),
    control=_page(status=200, headers={"server": "moss/1.2 (Debian)"}),
)
def header_place(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A place of the server's own in a header in which it names its program."""
    last = seen[-1]
    for name in OF_SERVER:
        found = traces.find(str(dict(last.result.get("headers", {})).get(name, "")))
        if found is not None and not gave(last.args, found.words):
            title = f"{last.asked}, header {name}: {line(found.words, 80)}"
            yield observed(title, f"header {host(last.args)} {name} {found.kind}", "headers")
            return


def leak(last: Exchange) -> Leak | None:
    """The first leak that the caller did not send itself."""
    status = int(last.result.get("status", 0))
    if "reply" in last.kinds:
        text = "\n".join(str(last.result.get(name, "")) for name in ("error", "reply"))
        spoken = [Passage(text, True)] if status >= 400 else []
    else:
        spoken = list(passages(last.result))
    for passage in spoken:
        found = traces.find(passage.text, paths=passage.failing, heading=passage.failing or not passage.page)
        if found is None:
            continue
        sent = (
            found.words.lstrip("/") if found.table == "paths" else found.words
        )  # a name may be sent without it
        if not gave(last.args, sent):
            return Leak(found, passage.text, passage.failing)
    text = str(last.result.get("text", ""))
    for path, value in leaves(parsed(text)):
        failed = status >= 400 or any(map(_FAILED.fullmatch, path))
        if failed and any(map(_STACK.fullmatch, path)) and _RAISED.search(str(value)):
            return Leak(traces.Trace("a stack trace", "", "pages"), text, True)
    return None


def _about(value: str, result: Mapping[str, Any]) -> str:
    """The server's own sentence about a value that it was sent, `Cannot sort table by {value}`; "" for none.

    One piece of code says it, whatever page and parameter led there. Three words at least, and no number,
    which may be another one at the next answer.
    """
    lines = (row.strip() for passage in passages(result) for row in passage.text.splitlines())
    for row in lines if len(value) >= _TELLING else ():
        words = row.replace(value, " ")
        if value in row and len(row) <= _SENTENCE and _THREE_WORDS.search(words) and not _DIGIT.search(words):
            return row.replace(value, "{value}")
    return ""


def _of_itself(asked: Exchange) -> str:
    """The server's own message about a part of itself, `DATABASE_URL is not set`; "" for none.

    What it lacks is the same whatever route needs it. The name is none that the caller sent.
    """
    text, sent = str(asked.result.get("text", "")), "\n".join(strings(asked.args))
    said = passages(asked.result) if isinstance(parsed(text), dict) else ()
    for row in (row.strip() for passage in said for row in passage.text.splitlines()):
        names = [one for one in _OWN_NAME.findall(row) if one not in sent]
        if names and len(row) <= _EXPLAINED and _THREE_WORDS.search(row) and not _DIGIT.search(row):
            return row
    return ""


_USUAL_FILE = re.compile(
    r"/(?:robots\.txt|sitemap\.xml|llms\.txt|skill\.md|(?:openapi|swagger)\.(?:json|ya?ml)|\.env|\.git/config"
    r"|security\.txt|ai-plugin\.json)\Z"
)
"""Files that one asks every host for, though no page names them."""


def _is_absent(call: Exchange) -> bool:
    return str(call.args.get("url", "")).endswith(f"/{MISSING}") and set(call.args) == {"url"}


def _as_absent(seen: Sequence[Exchange]) -> bool:
    """Whether the last page is one that no platform has, or answers as that one did before it."""
    absent = [one for one in seen if _is_absent(one)]
    said = [
        (
            one.result.get("status"),
            neutral(str(one.result.get("text", "")), urlsplit(str(one.args["url"])).path),
        )
        for one in (*absent[:1], seen[-1])
        if set(one.args) == {"url"}
    ]
    return len(said) == 2 and said[0] == said[1]


@oracle(
    id="server-error",
    says="no request makes a page answer with a server error",
    severity=Severity.MEDIUM,
    judges=("page",),
    yields_to=("trace",),
    example=_page(status=500),
    control=_page(status=503),
)
def server_error(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    last = seen[-1]
    status = last.result.get("status", 0)
    if not isinstance(status, int) or status < 500 or status in ELSEWHERE:
        return
    sent = last.args.get("headers")
    named = f" to the header {line(', '.join(sent), 40)}" if isinstance(sent, Mapping) and sent else ""
    title = f"{last.asked} answers {status}{named}"
    if _as_absent(seen):  # one handler answers for all of them
        where = {"route": host(last.args), "parameter": "a page that is not there"}
        led = tuple(at for at, one in enumerate(seen[:-1]) if _is_absent(one))[:1]  # a repro needs it
        key = f"server-error {host(last.args)} absent {status}"
        yield observed(title, key, "status", led=led, where=where)
        return
    asked = [one for one in seen[:-1] if not _is_absent(one)]
    found = (varied((asked[0], last)) or below((asked[0], last))) if asked else None
    where = dict(found.parts(last)) if found else {}
    given = inputs(last.args).items()
    values = (
        [found.values[-1]] if found else [text for (part, _), text in given if part in ("parameter", "field")]
    )
    said = next(filter(None, (_about(value, last.result) for value in values)), "")
    if sentence := said or _of_itself(last):
        where = {"route": host(last.args), "parameter": sentence}
    elif where.get("parameter", "").startswith("parameter "):
        where["route"] = _FORMAT.sub("", where["route"])
    elif set(last.args) == {"url"} and _USUAL_FILE.search(str(last.args["url"])):
        where = {"route": host(last.args), "parameter": "a usual file"}  # fails as any that is not there does
    elif _is_no_body(last.args):
        where = {"route": host(last.args), "parameter": "no body"}  # what reads bodies is one for all of them
    yield observed(title, f"server-error {family(last.args)} {status}", "status", where=where)


def _is_no_body(args: Mapping[str, Any]) -> bool:
    """Whether a call has no body where one belongs, or one that is not the JSON that it is called."""
    body = str(args.get("body", ""))
    broken = bool(body) and "json" in str(args.get("body_type", "")) and parsed(body) is None
    return args.get("method") in ("POST", "PUT", "PATCH") and not args.get("fields") and (broken or not body)


@oracle(
    id="secret",
    says="no public answer contains a secret",
    severity=Severity.CRITICAL,
    surface="security",
    judges=("page",),
    forgeable=True,
    example=_page(status=200, secrets=("private-key",)),
    control=_page(status=200, secrets=()),
)
def secret(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A secret in a public answer; except in a page of a name that a run minted, where the driver may put
    one, and except what the caller sent."""
    last = seen[-1]
    refused = int(last.result.get("status", 0)) >= 400 and not is_html(last.result)
    spoken = SPOKEN | {"api-key"} if refused else SPOKEN
    kinds = spoken & {str(kind) for kind in last.result.get("secrets", ())}
    if not kinds or gave_key(last.args):
        return
    given = {kind for text in strings(last.args) for kind in mask(unquote(text))[1]}
    for kind in sorted(kinds - given):
        words = kind.replace("-", " ")
        title = f"{last.asked} shows {'an' if words[0] in 'aeo' else 'a'} {words}"
        severity: Severity = Severity.CRITICAL if kind in WHOLE else Severity.HIGH
        yield observed(title, f"secret {family(last.args)} {kind}", "secrets", severity=severity)
