"""The worklist as SARIF 2.1.0 (OASIS, errata 01), for code scanning and viewers.

What consumers reject is avoided: an empty message, a result without a physical location, a rule twice, a
second run, and whatever makes GitHub's code scanning refuse the whole file: a location that has a scheme or
reads as if it had one, more results or bytes than it takes ("SARIF support for code scanning"). Texts are
plain, and what SARIF reads as a link or a placeholder in them is escaped (3.11.5, 3.11.6).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from fleet.findings.kinds import Kind, kind_titled, kinds, link
from fleet.findings.repro import ReproError, parse_repro
from fleet.severity import GRAVE, Severity, weight
from fleet.text import line
from fleet.triage.items.life import OPEN
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, as_of
from fleet.triage.outputs.item_page import NO_PAGES, ItemPage, also_seen
from fleet.triage.outputs.json_file import dump

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "qaFleetItem/v1"
"""The key in `partialFingerprints`; a changed way to name items would get a new version."""
RESULTS = 25_000
"""Most results of a run that GitHub takes. The items come best first, ours before strangers'."""
BYTES = 10_000_000
"""Most bytes of a file that GitHub takes, compressed with gzip."""
WORKLIST = "worklist.json"
"""The location of an item about which no page is known: the file that describes it."""
BASES: Mapping[str, str] = MappingProxyType(
    {"site": "Base URL of the platform's documents", "proxy": "Base URL of the platform's agent calls"}
)
_OTHER = "A probe's own expectation does not hold; the result says what was expected and what was seen."
_PLACE = re.compile(r"\{(site|proxy)\}/?")
_HOST = re.compile(r"(?i)[a-z][a-z0-9+.-]*://([^/?#]+)")
_SOURCE = re.compile(
    r"(?<![\w./:-])((?:[\w-]{1,60}/){0,8}[\w-]{1,60}\.(?:rs|py|js|ts|go|sol|java|rb|php|c|cc)):(\d{1,6})\b"
)
"""A file of a program and its line, as a trace names them: below the root of a repository."""
_SLUG = re.compile(r"[^a-z0-9]+")
_SPECIAL = re.compile(r"[\\\[\]]")
_BARE = re.compile("%(?![0-9A-Fa-f]{2})")


def to_sarif(
    items: Sequence[WorklistItem], header: WorklistHeader, pages: Mapping[str, ItemPage] = NO_PAGES
) -> bytes:
    """One run; a rule is a kind of finding, or a surface with the persona that looks at it. Closed items are
    suppressed.

    Of what is beyond what GitHub takes first the pages are left out, then the last items, which `leftOut`
    counts.
    """
    most = min(len(items), RESULTS)
    while True:
        made = _document(items[:most], header, pages, left=len(items) - most)
        if len(made) <= BYTES or len(gzip.compress(made, 6, mtime=0)) <= BYTES:
            return made
        if not pages:
            most = most * 3 // 4
        pages = NO_PAGES


def _document(
    items: Sequence[WorklistItem], header: WorklistHeader, pages: Mapping[str, ItemPage], left: int
) -> bytes:
    rules = {name: at for at, name in enumerate(dict.fromkeys(rule_of(item) for item in items))}
    bases = {name: {"description": {"text": text}} for name, text in BASES.items()}
    driver = {
        "name": "qa-fleet",
        "version": version("qa-fleet"),
        "rules": [_rule(name) for name in rules],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"qa-fleet/{_slug(header.platform)}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": bases,
        "properties": {"asOf": as_of(header.as_of)} | ({"leftOut": left} if left else {}),
        "results": [_result(item, pages.get(item.fingerprint), rules) for item in items],
    }
    return dump({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]})


def rule_of(item: WorklistItem) -> str:
    """The rule of an item: its kind, or `surface/persona`. A stranger's words make no rule."""
    if not item.trusted:
        return "stranger"
    if kind := kind_titled(item.title):
        return kind.id
    return "/".join(filter(None, (_slug(item.surface), _slug(item.source) if item.source else "")))


def _slug(text: str) -> str:
    return _SLUG.sub("-", text.lower())[:40].strip("-") or "unknown"


def _rule(name: str) -> dict[str, Any]:
    if kind := kinds().get(name):
        return _rule_of_kind(kind)
    surface, _, source = name.partition("/")
    words = "Reported by a stranger, not proven" if name == "stranger" else f"{surface.capitalize()} defect"
    words += f", found by {source}" if source else ""
    told = "Anyone can write to the log: read it before you act." if name == "stranger" else _OTHER
    return {
        "id": name,
        "name": _pascal(words),
        "shortDescription": {"text": f"{words}."},
        "fullDescription": {"text": f"{words}. {told}"},
        "help": {"text": told, "markdown": told},
        "properties": {"tags": [surface], "precision": "low" if name == "stranger" else "high"},
    }


def _pascal(words: str) -> str:
    """The name of a rule as one identifier."""
    return "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", words))


def _rule_of_kind(kind: Kind) -> dict[str, Any]:
    listed = "\n".join(f"- [{one}]({link(one)})" if link(one) else f"- {one}" for one in kind.references)
    tags = [kind.subject, *(["security"] if kind.security else [])]
    tags += [f"external/cwe/{one.lower()}" for one in kind.references if one.startswith("CWE-")]
    problem = {"error": "error", "warning": "warning", "note": "recommendation"}[_level_of(kind.severity)]
    rated = (
        {"security-severity": str(kind.severity.score)} if kind.security else {"problem.severity": problem}
    )
    return {
        "id": kind.id,
        "name": _pascal(kind.name),
        "shortDescription": {"text": f"{kind.name}."},
        "fullDescription": {"text": kind.wrong},
        "help": {
            "text": " ".join(text for _, text in kind.sections),
            "markdown": "\n\n".join(f"**{head}.** {text}" for head, text in kind.sections) + f"\n\n{listed}",
        },
        **({"helpUri": kind.links[0]} if kind.links else {}),
        "defaultConfiguration": {"level": _level_of(kind.severity)},
        "properties": {"tags": tags, "precision": "very-high", **rated},
    }


def _level_of(severity: str) -> str:
    if weight(severity) < Severity.MEDIUM.weight:
        return "note"
    return "error" if severity in GRAVE else "warning"


def _result(item: WorklistItem, page: ItemPage | None, rules: Mapping[str, int]) -> dict[str, Any]:
    rule = rule_of(item)
    title = line(item.title, 300) or f"finding {item.fingerprint}"
    parts = [f"{title}."]
    if page and page.expected and page.observed:
        parts += [f"Expected: {page.expected}", f"Observed: {page.observed.rstrip('.')}."]
    if page and page.script:
        parts.append(f"To see it: fleet items show {item.fingerprint} --script | bash")
    elif item.repro:
        parts.append(f"Repro: {line(item.repro, 1_000)}")
    # a level fails a check, so whatever a stranger says is a `note`
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": rules[rule],
        "level": _level_of(item.severity) if item.trusted else "note",
        "message": {"text": _plain(" ".join(parts))},
        "locations": [_location(item, page)],
        "partialFingerprints": {FINGERPRINT: item.fingerprint},
        "properties": {
            "rank": item.rank,
            "score": item.score,
            "state": item.state,
            "proof": item.proof,
            "severity": line(item.severity),
            "why": line(item.why, 1_000),
        },
    }
    if item.evidence:
        result["properties"]["evidence"] = f"sha256:{item.evidence}"
    if page:
        shown = {name: value for name, value in asdict(page).items() if value and name != "pictures"}
        result["properties"]["page"] = shown | ({"also": also_seen(item)} if item.also else {})
    if item.count > 0:
        result["occurrenceCount"] = item.count
    if item.state not in OPEN:
        why = _plain(item.reason or item.state)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _plain(text: str) -> str:
    """Text that SARIF shows as it is: links and placeholders are escaped."""
    escaped = _SPECIAL.sub(lambda match: "\\" + match[0], line(text, 2_000))
    return escaped.replace("{", "{{").replace("}", "}}")


def _location(item: WorklistItem, page: ItemPage | None) -> dict[str, Any]:
    """The line of the source that the observation names, else the first page of the repro."""
    surface = line(item.surface) or "unknown"
    logical = {"name": surface, "fullyQualifiedName": f"{surface}/{item.fingerprint}", "kind": "resource"}
    source = _SOURCE.search(page.observed if page else item.title) if item.trusted else None
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(source[1])} if source else _artifact(item),
            "region": {"startLine": max(1, int(source[2])) if source else 1},
        },
        "logicalLocations": [logical],
    }


def _artifact(item: WorklistItem) -> dict[str, str]:
    """The first page that the repro names: its path below its base or its host, without a scheme."""
    try:
        calls = parse_repro(item.repro) if item.repro else ()
    except ReproError:
        calls = ()
    url = next((str(call.args["url"]) for call in calls if call.args.get("url")), "")
    if found := _PLACE.match(url):
        return {"uri": _uri(url[found.end() :]) or ".", "uriBaseId": found[1]}
    if found := _HOST.match(url):
        return {"uri": _uri(f"{found[1].rpartition('@')[2]}{url[found.end() :]}") or WORKLIST}
    return {"uri": WORKLIST}


def _uri(text: str) -> str:
    """The text as a relative reference (RFC 3986, 4.2): no scheme, no host, no way up, nothing unencoded."""
    path, mark, query = line(text, 1_000).partition("?")
    steps = [step for step in path.split("/") if step not in ("", ".", "..")]
    shown = "/".join(steps) + ("/" if steps and path.endswith("/") else "")
    return f"{_quoted(shown, '/') or '.'}?{_quoted(query, ':/?')}" if mark else _quoted(shown, "/")


def _quoted(text: str, also: str) -> str:
    return quote(_BARE.sub("%25", text), safe=f"{also}&=%~+,;@!$'()*-._")
