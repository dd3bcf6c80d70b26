"""An oracle of what documents promise of a call that is sent twice: charged once is charged once. Pure.

Only a sentence that names the repetition and says that it is free is such a promise; one with a condition (a
key of idempotency, a failure before it) is left out, for the question does not meet it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fleet.findings.field_words import amount
from fleet.oracles.agent.dialogue import agent, answered, number
from fleet.oracles.echoes import OWN, route
from fleet.oracles.model import Exchange, Facts, Observation, observed, oracle
from fleet.oracles.texts import is_html, visible
from fleet.severity import Severity

DOCUMENT = 60_000
"""Characters of a document that are read."""
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n{2,}|\n(?=\s*[-*#|])")
_AGAIN = re.compile(
    r"\b(?:twice|again|(?:a )?second time|repeat(?:ed|s|ing)?|retr(?:y|ies|ied|ying)|duplicates?|duplicated"
    r"|re-?sen[dt](?:s|ing)?|replay(?:s|ed)?)\b",
    re.IGNORECASE,
)
_ONCE = re.compile(
    r"\b(?:charged|billed|debited|paid)(?: for)? (?:only |just |exactly )?once\b"
    r"|\bone (?:charge|debit|payment)\b"
    r"|\b(?:not|never|n't)(?: be)? (?:charged|billed|debited)\b"
    r"|\bno (?:second|further|extra|additional|new) (?:charge|debit|payment)\b|\b(?:is|are|stays?) free\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:unless|keys?|ids?|idempoten\w*|header|nonce|within|while|fail\w*|error\w*|refus\w*|reject\w*"
    r"|lost|drop\w*|time-?out\w*|timed out|network|disconnect\w*|interrupt\w*|unanswered"
    r"|no (?:answer|reply|response)|once (?:per|every|each|a) )"
    r"|(?<!not )(?<!never )(?<!n't )(?<!not be )(?<!never be )"
    r"(?:charged|billed|debited|paid) (?:again|each|every)\b",
    re.IGNORECASE,
)
_KEPT = re.compile(r"\b(?:remember\w*|notes?|memor(?:y|ies)|keeps?|kept)\b", re.IGNORECASE)
_ALONE = re.compile(
    r"\b(?:nobody|no[ -]one|no other \w+)(?: else)? (?:can |may |will |ever )?(?:recall|read|see|hear)s?\b"
    r"|\b(?:recalled|read|seen|shown|visible)(?: \w+)? only (?:to |by )?"
    r"(?:you|its|the (?:caller|author|owner))",
    re.IGNORECASE,
)
_UNLESS = re.compile(r"\b(?:unless|if|except|until|share\w*|public|without)\b", re.IGNORECASE)
_CALL = re.compile(r"\b(?:messages?|calls?|requests?|prompts?)\b", re.IGNORECASE)


def charged_once(text: str, *, html: bool = False) -> str:
    """The sentence by which a call that is sent twice is charged once; "" for none."""
    for raw in _SENTENCE.split((visible(text) if html else text)[:DOCUMENT]):
        said = " ".join(raw.split())
        named = len(said) <= 300 and _CALL.search(said) and _AGAIN.search(said) and _ONCE.search(said)
        if named and not _CONDITION.search(said):
            return said
    return ""


def kept_private(text: str, *, html: bool = False) -> str:
    """The sentence by which what a caller has an agent keep is read by that caller alone; "" for none."""
    for raw in _SENTENCE.split((visible(text) if html else text)[:DOCUMENT]):
        said = " ".join(raw.split())
        if len(said) <= 300 and _KEPT.search(said) and _ALONE.search(said) and not _UNLESS.search(said):
            return said
    return ""


def promising(page: Exchange, promise: Callable[..., str] = charged_once) -> str:
    """The promise in a document of the platform's own; "" for any other answer."""
    plain = page.tool == "qa_fetch" and set(page.args) == {"url"} and page.result.get("status") == 200
    if not plain or OWN.search(str(page.args["url"])):
        return ""
    return promise(str(page.result.get("text", "")), html=is_html(page.result))


def _asked(text: str, again: int) -> tuple[Exchange, ...]:
    page = Exchange("qa_fetch", {"url": "{site}/llms.txt"}, {"status": 200, "text": text})
    answer = {"ok": True, "status": 200, "reply": "x", "charged": 5, "status_again": 200}
    args = {"target": "a", "message": "hello there", "twice": True}
    return page, Exchange("qa_call", args, answer | {"charged_again": again})


_PROMISE = "One message, one charge, also when it is sent twice."


@oracle(
    id="charged-again",
    says="a call that is sent twice is charged once where a document promises it",
    severity=Severity.HIGH,
    surface="on-chain",
    judges=("reply",),
    yields_to=("overcharged",),
    example=_asked(_PROMISE, 5),
    control=_asked(_PROMISE, 0),
)
def charged_again(seen: Sequence[Exchange], _facts: Facts) -> Iterator[Observation]:
    """[a document that promises it, a call that is sent twice and charged twice]."""
    last = seen[-1]
    if not last.args.get("twice") or not answered(last) or not 200 <= number(last, "status_again") < 300:
        return
    first, second = number(last, "charged"), number(last, "charged_again")
    if first <= 0 or second <= 0:
        return
    for at, page in enumerate(seen[:-1]):
        if promising(page):
            title = f"{agent(last)} charges {amount(second)} again, against {route(page.args)}"
            yield observed(title, "charged-again", "charged", "charged_again", led=(at,))
            return
