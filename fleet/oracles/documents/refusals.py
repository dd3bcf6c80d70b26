"""Oracle of refusals: what a refusal says is accepted is not refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from fleet.oracles.echoes import family, gave
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.severity import Severity

REFUSED = (400, 422)
_RANGE = re.compile(
    r"(?<![\w-])([A-Za-z][\w-]{0,39})[\"'`]?,? (?:must|should|has to|needs to|is to)\b(?! not)"
    r"([^.;\n\d-]{0,40})\b(?:from|between) (-?\d{1,15}) (?:to|and|through) (-?\d{1,15})(?![\w.,]\d)"
)
_NUMBER = re.compile(
    r"(?i)\s*(?:be )?(?:(?:an? |the )?(?:whole |positive )?(?:number|integer|int|value) )?"
    r"(?:in the range |in range |within )?"
)
_ENDED = re.compile(
    r"(?i),? ?\(?(?:inclusive(?:ly)?)?\)?(?:\s*$|\s*[.;!\"'`}<\]\n]|,? (?:got|but|not|received)\b)"
)
"""Around a range that says all: `an even number from`, `from 3 to 20 characters`, `exclusive` say more."""


def ranges(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, least and most value of each parameter whose range a refusal states."""
    for hit in _hits(text):
        yield hit[1], int(hit[3]), int(hit[4])


def _hits(text: str) -> Iterator[re.Match[str]]:
    yield from (hit for hit in _RANGE.finditer(text[:2_000]) if int(hit[3]) < int(hit[4]))


def _asked(value: str) -> tuple[Exchange, ...]:
    said: Mapping[str, Any] = {"status": 400, "text": '{"error": "size must be a number from 1 to 60"}'}
    return (Exchange("qa_fetch", {"url": "{site}/notes?size=" + value}, said),)


@oracle(
    id="refused-in-range",
    says="a value within the range that a refusal states is not refused by it",
    severity=Severity.LOW,
    surface="ux",
    judges=("page",),
    example=_asked("60"),
    control=_asked("61"),
)
def refused_in_range(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """A whole number within the range that the refusal itself states for its parameter, and no more."""
    last, text = seen[-1], str(seen[-1].result.get("text", ""))
    if last.result.get("status") not in REFUSED or str(last.args.get("method", "GET")) != "GET":
        return
    given = parse_qsl(urlsplit(str(last.args.get("url", ""))).query, keep_blank_values=True)
    names = [name for name, _ in given]
    stated = [hit for hit in _hits(text) if names.count(hit[1]) == 1]
    if len(stated) != 1 or gave(last.args, text):
        return
    (hit,) = stated
    name, least, most = hit[1], int(hit[3]), int(hit[4])
    plain = _NUMBER.fullmatch(hit[2]) and _ENDED.match(text, hit.end())
    value = dict(given)[name]
    if plain and re.fullmatch(r"-?[1-9]\d{0,14}|0", value) and least <= int(value) <= most:
        title = f"{last.asked} is refused; its refusal allows {name} from {least} to {most}"
        key = f"refused-in-range {family(last.args)} {name}"
        yield observed(title, key, "status", "text", where={"field": name})
