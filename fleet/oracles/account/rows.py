"""The row of requests of one `qa_account`, read step by step. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fleet.oracles.documents.openapi import Operation, operations
from fleet.oracles.documents.worded import description as description_of
from fleet.oracles.echoes import host
from fleet.oracles.model import Exchange, Oracle

REFUSED = (401, 403, 404)
_MINE = r"(?:my|mine|your|yours|own|private|personal|caller's)"
_MAKER = r"(?:owner|maker|author|creator)s?"
_ALONE = re.compile(
    r"(?i)\bonly (?:(?:visible|readable|available|accessible|shown|given|served) )?(?:(?:to|by|for) )?"
    rf"(?:(?:the|its|their|an?) )?{_MAKER}\b"
    rf"|\b(?:to|by|for) (?:(?:the|its|their) )?{_MAKER}[ -](?:only|alone)\b"
    rf"|\({_MAKER}[ -]only\)|\bone of (?:mine|yours)\b|\bof the caller\b|\b(?:only you|you alone|you only)\b"
)
"""Words by which a document says that one account alone reads a thing."""
_OTHERS = re.compile(
    r"(?i)\b(?:any(?:one|body)?|every(?:one|body)?|all|public(?:ly)?|shared?|others?|members?|open|unlisted|link"
    r"|teams?|groups?|organi[sz]ations?|workspaces?|company|tenants?|colleagues?)\b"
    r"|\b(?:chang|edit|delet|updat|modif|remov|writ)\w*"
)
"""Words by which it may say that others read it, or speaks of something other than reading."""
_BY_NATURE = re.compile(
    r"(?i)(?:order|invoice|bill|payment|payout|receipt|refund|transaction|transfer|booking|reservation"
    r"|appointment|prescription|payslip|salary|wallet|basket|cart|address|card|credential|secret"
    r"|message|mail|purchase|withdrawal|deposit|loan|claim)"
)
"""Things that are one account's, unless a description says that others read them: that its list has them for
their maker alone, and they are refused without a token, must be so as well."""
_NOT_YOURS = re.compile(
    rf"(?i)\b(?:not|n't)\b[^.;]{{0,30}}\b(?:{_MAKER}|yours|mine|owned)\b"
    r"|\b(?:another|other|else's) (?:account|user|member|person|owner|maker|author|creator)"
    r"|\bbelongs to (?:another|some(?:one|body))\b|\bsome(?:one|body) else's\b"
)
"""What the description of a refusal says where it is for other accounts."""


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

    def reads(self, path: str) -> bool:
        return self.method == "GET" and self.path == path

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


def closed(steps: Sequence[PlayedStep], to: PlayedStep) -> bool:
    """Whether the same request is refused without a token."""
    return any(step.who == "anonymous" and step.same(to) and step.status in REFUSED for step in steps)


def described(seen: Sequence[Exchange], path: str, method: str) -> Iterator[tuple[int, Operation]]:
    """An operation by each description before the last call, with the position of the description.

    A path may be below a server's; of several paths that end so, the longest is meant.
    """
    for at, source in enumerate(seen[:-1]):
        document = description_of(str(source.result.get("text", ""))) or {}
        fits = [
            (len(folded), one.method == method, one)
            for one in operations(document)
            if path.endswith(folded := re.sub(r"\{[^{}/]+\}(?=/?$)", "{id}", one.path))
        ]
        _, named, one = max(fits, key=lambda fit: fit[:2], default=(0, False, None))
        if one is not None and named:
            yield at, one


def private(seen: Sequence[Exchange], path: str) -> tuple[int, ...]:
    """Where a description says that a thing is its maker's: in what it says of reading it, or of a 403."""
    for at, read in described(seen, path, "GET"):
        refusal = str(read.answer(403).get("description", ""))
        if _NOT_YOURS.search(refusal) or _ones_own(read.text, path):
            return (at,)
    return ()


def _ones_own(said: str, path: str) -> bool:
    """Whether words on a path's thing say that it is one account's, `your note`, never `your token`; or it is
    so by nature, as an order is."""
    thing = re.split(r"[-_]", path.rstrip("/").removesuffix("/{id}").rpartition("/")[2])[-1]
    stem = re.escape(re.sub(r"(?:ies|(?<=[sxh])es|s)$", "", thing))
    named = re.search(rf"(?i)\b{_MINE} (?:\w+ ){{0,2}}{stem}\w{{0,3}}\b", said) if len(stem) > 1 else None
    own = named or _ALONE.search(said) or _BY_NATURE.fullmatch(stem.replace("\\", ""))
    return bool(own) and not _OTHERS.search(said)


MINE: dict[str, Any] = {"status": 200, "one": True, "other": False, "named": True, "facts": {}}
NONE: dict[str, Any] = {"status": 200, "one": False, "other": False, "named": False, "facts": {}}
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


def on(last: Exchange, path: str, method: str = "GET") -> dict[str, str]:
    """The route of a kind's place: a path of a row on the host of the row, its method if it is another."""
    return {"route": f"{'' if method == 'GET' else f'{method} '}{host(last.args)}{path}"}


oracle = partial(Oracle, surface="security", judges=("account",))
