"""The row of requests of one `qa_account`, read step by step. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fleet.findings.sighting import Sighting
from fleet.oracles.model import Exchange, Observation, Oracle
from fleet.oracles.passages import parsed

REFUSED = (401, 403, 404)
_OWN = re.compile(r"(?i)\b(?:my|mine|own|your|yours|private|personal|owner)\b")


class PlayedStep(NamedTuple):
    """One request and its answer."""

    who: str
    method: str
    path: str
    given: Mapping[str, Any]
    got: Mapping[str, Any]

    @property
    def status(self) -> int:
        return int(self.got.get("status", 0))

    @property
    def facts(self) -> Mapping[str, Any]:
        return dict(self.got.get("facts", {}))

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    def same(self, other: PlayedStep) -> bool:
        """Whether both are the same request, by any caller."""
        return (self.method, self.path, self.given) == (other.method, other.path, other.given)

    def shows(self, mark: str) -> bool:
        return self.good and bool(self.got.get(mark))


def played(last: Exchange) -> list[PlayedStep]:
    """The steps of a row that were made, with their answers."""
    pairs = zip(last.args.get("steps", ()), last.result.get("answers", ()), strict=False)
    steps = [PlayedStep(one[0], one[1], one[2], one[3], got) for one, got in pairs if len(one) == 4]
    return [one for one in steps if one.status]


def observed(title: str, signature: str, *, led: tuple[int, ...] = ()) -> Observation:
    return Observation(Sighting(title, signature, whole=True), frozenset({"answers"}), led=led)


def closed(steps: Sequence[PlayedStep], to: PlayedStep) -> bool:
    """Whether the same request is refused without a token."""
    return any(step.who == "anonymous" and step.same(to) and step.status in REFUSED for step in steps)


def described(
    seen: Sequence[Exchange], path: str
) -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    """The operations of a path, by each description before the last call: at, operations, description."""
    for at, source in enumerate(seen[:-1]):
        document = parsed(str(source.result.get("text", "")))
        paths = document.get("paths") if isinstance(document, dict) and "openapi" in document else None
        for template, item in paths.items() if isinstance(paths, dict) else ():
            if isinstance(item, dict) and path.endswith(re.sub(r"\{[^{}/]+\}$", "{id}", template)):
                yield at, item, document


def private(seen: Sequence[Exchange], path: str) -> tuple[int, ...]:
    """Where a description says that a thing is its maker's: by that word, or by a 403 for reading it."""
    for at, item, _ in described(seen, path):
        read = item.get("get")
        if isinstance(read, dict) and (
            "403" in map(str, read.get("responses", ()))
            or _OWN.search(f"{read.get('summary', '')} {read.get('description', '')}")
        ):
            return (at,)
    return ()


MINE: dict[str, Any] = {"status": 200, "one": True, "other": False, "facts": {}}
NONE: dict[str, Any] = {"status": 200, "one": False, "other": False, "facts": {}}
NO = NONE | {"status": 401}
GONE = NONE | {"status": 404}
ITEM, LIST, ME = "/api/things/{id}", "/api/things", "/api/me"


def row(*steps: tuple[str, str, str, dict[str, Any], dict[str, Any]]) -> tuple[Exchange, ...]:
    args = {"url": "{site}/api/accounts", "steps": [list(step[:4]) for step in steps]}
    return (Exchange("qa_account", args, {"ok": True, "answers": [step[4] for step in steps]}),)


def description(**operations: dict[str, Any]) -> Exchange:
    """What says that a thing is one's own, and what the own record takes; for examples."""
    paths = {ITEM: {"get": {"summary": "One of my things"}}, ME: operations}
    text = json.dumps({"openapi": "3.1.0", "paths": paths})
    return Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})


def oracle(
    id: str, says: str, severity: Any, reference: str, judge: Any, example: Any, control: Any
) -> Oracle:
    return Oracle(
        id=id,
        says=says,
        severity=severity,
        surface="security",
        reference=reference,
        judges=("account",),
        judge=judge,
        example=example,
        control=control,
    )
