"""Oracles of a limit's edges: a length that a view states, a name that no face can show. Pure.

Each needs the same call with a short argument before it, which succeeds: then it is the length that decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from fleet.oracles.chain import fourbyte
from fleet.oracles.chain.simulated import STRANGER, Simulated, number, of
from fleet.oracles.model import Exchange, Facts, Observation, Oracle, observed
from fleet.severity import Severity

REGISTER = "0xf2c298be"
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)


def text_of(value: object) -> str | None:
    """A text argument as it is written: plain, or `{"repeat": "a", "times": 9}`; None for anything else."""
    if isinstance(value, Mapping):
        return str(value.get("repeat", "")) * min(int(value.get("times", 0)), 1 << 16)
    return value if isinstance(value, str) else None


def _alone(exchange: Exchange) -> tuple[Simulated, str] | None:
    """A stranger's call of one text, and that text."""
    call = of(exchange)
    if call is None or not call.plain or call.sender != STRANGER or len(call.args) != 1:
        return None
    text = text_of(call.args[0])
    return None if text is None or exchange.args.get("types") != ["string"] else (call, text)


def _accepted(seen: Sequence[Exchange], selector: str) -> Iterator[tuple[int, str]]:
    """Where the same function succeeded before, and with which text."""
    for at, exchange in enumerate(seen[:-1]):
        found = _alone(exchange)
        if found is not None and found[0].selector == selector and found[0].succeeded:
            yield at, found[1]


oracle = partial(Oracle, judges=("chain",), surface="on-chain")


def _called(selector: str, succeeded: bool, value: object, watch: str = "", stated: int = 0) -> Exchange:
    args: Mapping[str, Any] = {"simulate": selector, "types": ["string"], "args": [value]}
    answer: dict[str, Any] = {"ok": True, "succeeded": succeeded, "reverted": "" if succeeded else "too long"}
    if watch:
        args = {**args, "watch": [watch]}
        answer |= {"before": [stated], "after": [stated]}
    return Exchange("qa_chain", args, answer)


_NOTE, _STATED = fourbyte.selector_of("leaveNote(string)"), fourbyte.selector_of("maxNoteLength()")
_LONG = {"repeat": "a", "times": 65}


@oracle(
    id="limit-not-held",
    says="a length that a view states is the greatest that its function accepts",
    severity=Severity.MEDIUM,
    example=(_called(_NOTE, True, "aa"), _called(_NOTE, True, _LONG, _STATED, 64)),
    control=(_called(_NOTE, True, "aa"), _called(_NOTE, False, _LONG, _STATED, 64)),
)
def limit_not_held(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    found = _alone(seen[-1])
    if found is None or len(found[0].readings) != 1:
        return
    (call, text), (stated,) = found, found[0].readings
    limit, size = number(stated.before), len(text.encode())
    if stated.keys or not fourbyte.LENGTH.fullmatch(stated.name) or not limit or not text.isascii():
        return
    short = (at for at, other in _accepted(seen, call.selector) if 0 < len(other) <= limit // 2)
    if (control := next(short, None)) is None:
        return
    if size == limit + 1 and call.succeeded:
        words = f"{call.spoken} accepts {size} bytes; {stated.shown} is {limit}"
    elif size == limit and not call.succeeded and call.reverted != "no reason given":
        words = f"{call.spoken} refuses {size} bytes; {stated.shown} is {limit}"
    else:
        return
    yield observed(
        words,
        f"limit {call.selector} {stated.name} {call.succeeded}",
        "succeeded",
        "reverted",
        "before",
        led=(control,),
    )


@oracle(
    id="ghost-name",
    says="a name that is registered can be shown at its face",
    severity=Severity.MEDIUM,
    example=(_called(REGISTER, True, "ab"), _called(REGISTER, True, "")),
    control=(_called(REGISTER, True, "ab"), _called(REGISTER, False, "")),
)
def ghost_name(seen: Sequence[Exchange], facts: Facts) -> Iterator[Observation]:
    found = _alone(seen[-1])
    if found is None or found[0].selector != REGISTER or not found[0].succeeded:
        return
    text = found[1]
    if _LABEL.fullmatch(text) or (text and "{name}" not in urlsplit(facts.face).netloc):
        return
    names = (at for at, name in _accepted(seen, REGISTER) if _LABEL.fullmatch(name) and len(name) < 33)
    if (control := next(names, None)) is None:
        return
    how = "an empty name" if not text else f"a name of {len(text.encode())} bytes that no host can have"
    kind = "empty" if not text else "long" if len(text) > 63 else "spelling"
    yield observed(f"{found[0].spoken} accepts {how}", f"ghost-name {kind}", "succeeded", led=(control,))
