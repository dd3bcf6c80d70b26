"""The row of requests of one `qa_account`, read step by step. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fleet.oracles.documents.openapi import Operation, operations
from fleet.oracles.documents.worded import description as description_of
from fleet.oracles.echoes import family, host
from fleet.oracles.model import Exchange, Oracle
from fleet.text import line

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
_MAKERS = re.compile(
    r"(?i)\b(?:its|their|the|his|her|a|that) (?:own )?"
    r"(?:owner|maker|author|creator|writer|seller|uploader|sender)\b"
    r"|\bwho (?:uploaded|wrote|made|created|sent) (?:it|them)\b|\b(?:my|your) (?:own )?\w+"
)
"""Words by which it says whose to change a thing is."""
_OTHERS_TOO = re.compile(
    r"(?i)\b(?:any(?:one|body)?|every(?:one|body)?|all|others?|members?|teams?|groups?|organi[sz]ations?|shared?)\b"
)
"""Words by which others may as well."""
_NOT_YOURS = re.compile(
    rf"(?i)\b(?:not|n't)\b[^.;]{{0,30}}\b(?:{_MAKER}|yours|mine|owned)\b"
    r"|\b(?:another|other|else's) (?:account|user|member|person|owner|maker|author|creator)"
    r"|\bbelongs to (?:another|some(?:one|body))\b|\bsome(?:one|body) else's\b"
)
"""What the description of a refusal says where it is for other accounts."""


_OURS = re.compile(r"\{(?:id-\d+|listed(?:-2)?(?::[^{}]*)?|one-tag|(?:one|other)(?:\.[\w-]+)?)\}")
"""Words of ours in a path that stand for an id."""


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

    @property
    def taken(self) -> bool:
        """Whether it was not refused: a form leads on."""
        return 200 <= self.status < 400

    @property
    def plain(self) -> str:
        """The path without its query and without words of ours, as a person writes it."""
        return re.sub(
            r"\{(?:id-\d+|listed(?:-2)?(?::[^{}]*)?|one-tag|(?:one|other)(?:\.[\w-]+)?)\}",
            "{id}",
            self.path.partition("?")[0],
        )

    @property
    def called(self) -> str:
        """The request as a title names it."""
        _, graphql, field = self.path.partition("#")
        if graphql:
            return f"GraphQL field {line(field.partition('/')[0], 60)}"
        query = self.path.partition("?")[2]
        names = "&".join(part.partition("=")[0] for part in query.split("&")) if query else ""
        return f"{self.method} {line(self.plain, 90)}{'?' * bool(names)}{line(names, 40)}"

    @property
    def refers(self) -> bool:
        """Whether it names that account, or a thing that `one` made in a row of several."""
        named = f"{self.path} {list(self.given.values())}"
        return any(word in named for word in ("{id-", "{one}", "{one-tag}", "{one."))

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
            if _below(path).endswith(folded := _below(one.path))
        ]
        _, named, one = max(fits, key=lambda fit: fit[:2], default=(0, False, None))
        if one is not None and named:
            yield at, one


def _below(path: str) -> str:
    """A path with each value of it as {id}; a field of GraphQL is described as a path of its own."""
    return re.sub(r"\{[^{}]+\}", "{id}", path.partition("?")[0].replace("#", "/"))


def private(seen: Sequence[Exchange], path: str) -> tuple[int, ...]:
    """Where a description says that a thing is its maker's: in what it says of reading it, or of a 403."""
    for at, read in described(seen, path, "GET"):
        refusal = str(read.answer(403).get("description", ""))
        if _NOT_YOURS.search(refusal) or _ones_own(read.text, path):
            return (at,)
    return ()


def makers_own(seen: Sequence[Exchange], path: str, method: str) -> bool:
    """Whether a description says that a request is for who made the thing, and for nobody else but a role."""
    said = [one.text for _, one in described(seen, path, method)]
    return any(_MAKERS.search(one) and not _OTHERS_TOO.search(one) for one in said)


def _ones_own(said: str, path: str) -> bool:
    """Whether words on a path's thing say that it is one account's, `your note`, never `your token`; or it is
    so by nature, as an order is."""
    thing = re.split(r"[-_#.]", path.rstrip("/").removesuffix("/{id}").rpartition("/")[2])[-1]
    stem = re.escape(re.sub(r"(?:ies|(?<=[sxh])es|s)$", "", thing))
    named = re.search(rf"(?i)\b{_MINE} (?:\w+ ){{0,2}}{stem}\w{{0,3}}\b", said) if len(stem) > 1 else None
    own = named or _ALONE.search(said) or _BY_NATURE.fullmatch(stem.replace("\\", ""))
    return bool(own) and not _OTHERS.search(said)


def own_thing(
    seen: Sequence[Exchange], steps: Sequence[PlayedStep], step: PlayedStep, *, record: bool
) -> tuple[int, ...]:
    """Where a description names an operation that shows a thing of one's own; () if it may be anyone's."""
    found = list(described(seen, step.path, step.method))
    if not found or any(_SHARED.search(one.text) for _, one in found):
        return ()
    own_word = any(_OWN_WORD.search(one.text) or _ones_own(one.text, step.plain) for _, one in found)
    if record:
        return (found[-1][0],) if own_word else ()
    theirs = [one for one in steps if one.who == "other" and one.refers and not one.same(step)]
    refused = [one for one in theirs if one.status in (403, 404) and _served_to_one(steps, one)]
    for one in steps:
        listed = one.shows("one") or (one.good and one.got.get("many"))
        if one.who == "one" and one.method == "GET" and not one.refers and listed:
            others = [two for two in steps if two.who == "other" and two.same(one) and two.good]
            alone = bool(others) and not any(two.got.get("one") for two in others)
            alone &= one.shows("one") or not any(two.got.get("many") for two in others)
            word = own_word or any(
                _OWN_WORD.search(said.text) for _, said in described(seen, one.path, "GET")
            )
            if alone and word:
                return (found[-1][0],)
    return (found[-1][0],) if refused else ()


def _served_to_one(steps: Sequence[PlayedStep], refused: PlayedStep) -> bool:
    return any(one.who == "one" and one.same(refused) and one.good for one in steps)


_OWN_WORD = re.compile(rf"(?i)\b{_MINE}\b(?! token)")
_SHARED = re.compile(
    r"(?i)\b(?:any(?:one|body)|every(?:one|body)|public(?:ly)?|shared?|other (?:members|users)|unlisted)\b"
)


MINE: dict[str, Any] = {"status": 200, "one": True, "other": False, "named": True, "facts": {}}
NONE: dict[str, Any] = {"status": 200, "one": False, "other": False, "named": False, "facts": {}}
NO = NONE | {"status": 401}
GONE = NONE | {"status": 404}
ITEM, LIST, ME = "/api/things/{id}", "/api/things", "/api/me"


def row(*steps: tuple[str, str, str, dict[str, Any], dict[str, Any]]) -> tuple[Exchange, ...]:
    args = {"url": "{site}/api/accounts", "steps": [list(step[:4]) for step in steps]}
    return (Exchange("qa_account", args, {"ok": True, "answers": [step[4] for step in steps]}),)


def description(*, more: Mapping[str, Any] | None = None, **operations: dict[str, Any]) -> Exchange:
    """What says that a thing is one's own, and what the own record takes; for examples."""
    paths = {ITEM: {"get": {"summary": "One of my things"}}, ME: operations, **(more or {})}
    text = json.dumps({"openapi": "3.1.0", "paths": paths})
    return Exchange("qa_fetch", {"url": "{site}/openapi.json"}, {"status": 200, "text": text})


def on(last: Exchange, path: str, method: str = "GET") -> dict[str, str]:
    """The route of a kind's place: a path of a row, without its query and its numbers, on the host of the
    row; its method if it is another. A field of GraphQL stands behind `#`."""
    page, mark, name = path.partition("#")
    spelled = f"{host(last.args)}{family({'url': page})}{mark}{name}"
    return {"route": spelled if method == "GET" else f"{method} {spelled}"}


oracle = partial(Oracle, surface="security", judges=("account",))
