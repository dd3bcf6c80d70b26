"""Whether words of an error are only quoted: by a static page, or by a gate that refuses every attack. Pure.

One comparison for every oracle that judges such words (SQL, stack traces, templates, paths, libraries): what
shows them must be caused by the question. Requests beside the one that showed them tell, all by GET.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict

from fleet.oracles.model import Exchange
from fleet.oracles.web.pages import leak
from fleet.oracles.web.variations import neutral
from fleet.personas.model import Step
from fleet.personas.needs import strings

TOOL = "qa_fetch"
ATTACKS = ("<script>qa(1)</script>", "../../../../etc/passwd", "x' AND '1'='2")
"""Three kinds, in a parameter that no program reads: only a gate in front answers them with an error."""
GATE = 2
"""Of ATTACKS: a program may fail at one in whatever parameter, a gate refuses most."""
_VARIES = re.compile(r"\b(?:0x)?[0-9a-fA-F]{8,}\b|\d+(?:\.\d+)?")
_PARTS = re.compile(r"(\{[^{}]*\}|https?://[^/?#]+)([^?#]*)")
_NATURAL = re.compile(r"[\w.~{}:@+/-]*")


class ShownWords(BaseModel):
    """Words of an error that a question showed, as its row keeps them."""

    model_config = ConfigDict(frozen=True)

    url: str
    status: int
    kinds: tuple[str, ...]
    speaks: bool
    """Whether they stand where a platform speaks of its own failure: not in the text of a page."""
    answer: str
    """Digest of what the answer says, apart from what was sent, numbers and hashes."""

    @classmethod
    def of(cls, seen: Sequence[Exchange]) -> Self | None:
        """Those of the last answer with any."""
        for one in reversed(seen):
            found = leak(one) if one.tool == TOOL else None
            if found is not None:
                return cls(
                    url=str(one.args["url"]),
                    status=int(one.result.get("status", 0)),
                    kinds=(found.trace.kind,),
                    speaks=found.speaks,
                    answer=answer_of(one),
                )
        return None

    @property
    def natural(self) -> bool:
        """Whether its path is one that a page has: no way up, in whatever spelling, and no other host."""
        found = _PARTS.match(self.url)
        path = unquote(found[2]) if found else ".."
        return _NATURAL.fullmatch(path) is not None and ".." not in path and "//" not in path


def answer_of(call: Exchange) -> str:
    """Digest of what an answer says, whatever was sent and whatever varies in it."""
    text = str(call.result.get("text", ""))
    sent = {value for given in strings(call.args) for value in (given, *re.split(r"[/?&=]", unquote(given)))}
    for value in sorted((one for one in sent if len(one) > 3), key=len, reverse=True):
        text = neutral(text, value)
    said = f"{call.result.get('status')} {_VARIES.sub('0', text)}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


def comparisons(words: ShownWords) -> tuple[Step, ...]:
    """The requests: the page with a harmless parameter, a page beside it, the first page, and the page with
    each attack."""
    found = _PARTS.match(words.url)
    base, path = (found[1], found[2]) if found else ("", words.url.partition("?")[0])
    mark = "qa" + hashlib.sha256(words.url.encode()).hexdigest()[:10]
    front = base if base.startswith("{face:") else f"{base}/"
    page = f"{base}{path}" if words.natural else front
    asked = [f"{page}?{mark}=moss", f"{base}{path.rpartition('/')[0]}/{mark}", front]
    asked += [f"{page}?{mark}={quote(one, safe='')}" for one in ATTACKS]
    return tuple(Step(tool=TOOL, args={"url": url}) for url in asked)


def quoted(words: ShownWords, answers: Sequence[Mapping[str, Any]]) -> str:
    """Why nothing in the question caused these words, from the answers to its comparisons; "" if it may have.

    An answer that is missing says nothing.
    """
    asked = comparisons(words)
    leaks = [leak(Exchange(TOOL, step.args, result)) for step, result in zip(asked, answers, strict=False)]
    shown = [one is not None and one.trace.kind in words.kinds for one in leaks]
    if len(shown) < len(asked):
        return ""
    harmless, beside, front, *attacked = shown
    if not harmless and sum(attacked) >= GATE:
        return "every attack gets this answer, in a parameter that no program reads too: a gate quotes them"
    still = harmless and (front if beside else words.natural)
    if still and words.status < 400 and not words.speaks:
        return "the page says the same whatever is asked: it quotes them"
    return ""
