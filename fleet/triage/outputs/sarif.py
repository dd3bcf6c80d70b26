"""The worklist as SARIF 2.1.0 (OASIS, errata 01), for code scanning and viewers.

What consumers reject is avoided: an empty message, a result without a physical location, a rule twice, a
second run. Texts are plain, and what SARIF reads as a link or a placeholder in them is escaped
(3.11.5, 3.11.6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from fleet.findings.repro import ReproError, parse_repro
from fleet.text import line
from fleet.triage.life import OPEN
from fleet.triage.outputs.document import WorklistHeader, as_of
from fleet.triage.outputs.json_file import dump
from fleet.triage.worklist import WorklistItem

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "qaFleetItem/v1"
"""The key in `partialFingerprints`; a changed way to name items would get a new version."""
LEVELS: Mapping[str, str] = MappingProxyType(
    {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
)
"""A severity that is not here is a `note`."""
WORKLIST = "worklist.json"
"""The location of an item about which no page is known: the file that describes it."""
BASES: Mapping[str, str] = MappingProxyType(
    {"site": "Base URL of the platform's documents", "proxy": "Base URL of the platform's agent calls"}
)
_PLACE = re.compile(r"\{(site|proxy)\}/?")
_SLUG = re.compile(r"[^a-z0-9]+")
_SPECIAL = re.compile(r"[\\\[\]]")
_BARE = re.compile("%(?![0-9A-Fa-f]{2})")


def to_sarif(items: Sequence[WorklistItem], header: WorklistHeader) -> bytes:
    """One run; a rule is a surface with the persona that looks at it. Closed items are suppressed."""
    rules = list(dict.fromkeys(rule_of(item) for item in items))
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
        "properties": {"asOf": as_of(header.as_of)},
        "results": [_result(item, rules) for item in items],
    }
    return dump({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]})


def rule_of(item: WorklistItem) -> str:
    """The rule of an item: `surface/persona`. A stranger's words make no rule."""
    if not item.trusted:
        return "stranger"
    return "/".join(filter(None, (_slug(item.surface), _slug(item.source) if item.source else "")))


def _slug(text: str) -> str:
    return _SLUG.sub("-", text.lower())[:40].strip("-") or "unknown"


def _rule(name: str) -> dict[str, Any]:
    surface, _, source = name.partition("/")
    words = "reported by a stranger, not proven" if name == "stranger" else f"{surface} defect"
    words += f", found by {source}" if source else ""
    return {
        "id": name,
        "shortDescription": {"text": f"{words[0].upper()}{words[1:]}."},
        "properties": {"tags": [surface]},
    }


def _result(item: WorklistItem, rules: list[str]) -> dict[str, Any]:
    rule = rule_of(item)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": LEVELS.get(item.severity, "note"),
        "message": {"text": _message(item)},
        "locations": [_location(item)],
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
    if item.count > 0:
        result["occurrenceCount"] = item.count
    if item.state not in OPEN:
        why = _plain(item.reason or item.state)
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _message(item: WorklistItem) -> str:
    title = line(item.title, 300) or f"finding {item.fingerprint}"
    repro = f" Repro: {line(item.repro, 1_000)}" if item.repro else ""
    return _plain(f"{title}.{repro}")


def _plain(text: str) -> str:
    """Text that SARIF shows as it is: links and placeholders are escaped."""
    escaped = _SPECIAL.sub(lambda match: "\\" + match[0], line(text, 2_000))
    return escaped.replace("{", "{{").replace("}", "}}")


def _location(item: WorklistItem) -> dict[str, Any]:
    surface = line(item.surface) or "unknown"
    logical = {"name": surface, "fullyQualifiedName": f"{surface}/{item.fingerprint}", "kind": "resource"}
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(item),
            "region": {"startLine": 1},
        },
        "logicalLocations": [logical],
    }


def _artifact(item: WorklistItem) -> dict[str, str]:
    """The first page that the repro names, relative to its base if it has one."""
    try:
        calls = parse_repro(item.repro) if item.repro else ()
    except ReproError:
        calls = ()
    url = next((str(call.args["url"]) for call in calls if call.args.get("url")), "")
    if found := _PLACE.match(url):
        return {"uri": _uri(url[found.end() :].lstrip("/")) or ".", "uriBaseId": found[1]}
    if url.startswith(("http://", "https://")):
        return {"uri": _uri(url)}
    return {"uri": WORKLIST}


def _uri(text: str) -> str:
    """The text as a URI: whatever may not stand in one is percent-encoded."""
    return quote(_BARE.sub("%25", line(text, 1_000)), safe="/:?&=%~+,;@!$'()*-._")
