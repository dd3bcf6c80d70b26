"""Asks the platform whether the words of an error that a finding rests on are only quoted.

One comparison before a finding is proven, and before an item that shows again counts as open.
"""

from __future__ import annotations

from fleet.oracles.web.quotations import ShownWords, comparisons, quoted
from fleet.runs.call.batch import QuestionRound
from fleet.runs.call.session import RunSession


async def quoted_on_request(session: RunSession, words: ShownWords, *, spare: int = 0) -> str:
    """Why nothing in the question causes these words; "" if it may, or if fewer than `spare` calls would be
    left to the run. RunOver passes through."""
    bindings = session.bindings(fresh_name=False)
    asked = [[(step.tool, bindings.resolve(dict(step.args)))] for step in comparisons(words)]
    if await session.calls_left() < len(asked) + spare:
        return ""
    posed = await QuestionRound(session, asked)()
    answers = [one[0].result for one in posed if one and not one[0].denied and not one[0].lost]
    return quoted(words, answers)
