"""What makes GitHub's code scanning refuse or cut a SARIF file, as rules.

Sources: GitHub Docs, "SARIF support for code scanning" and "SARIF results exceed one or more limits" (the
numbers); the errors of its importer, `locationFromSarifResult: expected artifact location` and `expected
scheme "file"` (places); github/codeql-action, `upload-lib` (rules and tags twice, runs of one category).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

MOST = {"runs": 20, "results": 25_000, "rules": 25_000, "locations": 1_000, "tags": 20}
CHARS = {"shortDescription": 1_024, "fullDescription": 1_024, "name": 255}
BYTES = 10_000_000
"""Of the file, compressed with gzip."""


def refusals(data: bytes) -> list[str]:
    """What code scanning would refuse; nothing for a file that it takes whole."""
    return [*dict.fromkeys(_refusals(data))]


def _refusals(data: bytes) -> Iterator[str]:
    if len(gzip.compress(data)) > BYTES:
        yield "the file is too large"
    runs = json.loads(data)["runs"]
    yield from _many("runs", runs)
    for run in runs:
        rules = run["tool"]["driver"].get("rules", [])
        yield from (*_many("results", run["results"]), *_many("rules", rules))
        ids = [rule["id"] for rule in rules]
        if len({*ids}) != len(ids):
            yield "a rule twice"
        for rule in rules:
            yield from _rule(rule)
        for result in run["results"]:
            if ids[result["ruleIndex"]] != result["ruleId"]:
                yield "a result of another rule"
            yield from _result(result)


def _many(name: str, found: list[Any]) -> Iterator[str]:
    if len(found) > MOST[name]:
        yield f"more than {MOST[name]} {name}"


def _rule(rule: dict[str, Any]) -> Iterator[str]:
    tags = rule.get("properties", {}).get("tags", [])
    yield from _many("tags", tags)
    if len({*tags}) != len(tags):
        yield "a tag twice"
    for name, most in CHARS.items():
        text = rule.get(name, "")
        text = text if isinstance(text, str) else text["text"]
        if len(text) > most or (name in rule and not text):
            yield f"{name} of {len(text)} characters"


def _result(result: dict[str, Any]) -> Iterator[str]:
    if not result["message"].get("text"):
        yield "no message"
    locations = result.get("locations", [])
    yield from _many("locations", locations)
    if not locations:
        yield "no location"
    for one in locations:
        place = one.get("physicalLocation", {})
        if place.get("region", {}).get("startLine", 0) < 1:
            yield "no line"
        yield from _place(place.get("artifactLocation", {}).get("uri", ""))


def _place(uri: str) -> Iterator[str]:
    """A path below the root of the repository: no scheme, no host, and nothing that reads as one."""
    if not uri:
        yield "no place"
        return
    try:
        parts = urlsplit(uri)
    except ValueError:  # an IPv6 host that is not whole
        yield f"not a URI: {uri[:60]}"
        return
    if parts.scheme or parts.netloc or uri.startswith("/"):
        yield f"not relative: {uri[:60]}"
    if ":" in uri.partition("/")[0].partition("?")[0]:
        yield f"a colon in the first segment: {uri[:60]}"
    if ".." in unquote(parts.path).split("/"):
        yield f"above the root: {uri[:60]}"
    if any(char in ' <>"{}|\\^`[]#' or not 0x20 < ord(char) < 0x7F for char in uri):
        yield f"characters that no URI has: {uri[:60]}"
