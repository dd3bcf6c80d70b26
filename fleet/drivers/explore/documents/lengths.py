"""What an open operation is asked so that its time shows whether it grows faster than its input. Pure.

A text is sent short, long, four times as long, and short again: the last is the control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleet.drivers.desk import Question
from fleet.drivers.explore.account.api_inputs import OperationInputs
from fleet.oracles.documents.lengths import LENGTHS, LETTER
from fleet.oracles.documents.openapi import operations
from fleet.personas.model import Step
from sandbox.spec import SAFE

MOST, MOST_ACTS = 8, 3
"""Inputs of one description that are asked so, by a GET, and by another method."""


def lengthened(document: Mapping[str, Any], url_of: Callable[[str], str]) -> Iterator[Question]:
    """`url_of` gives the URL of a path; "" where the operation may not be asked."""
    left = {True: MOST, False: MOST_ACTS}
    for one in operations(document):
        safe, inputs = one.method in SAFE, OperationInputs.of(one, one.path)
        lengths = LENGTHS["GET" if safe else "POST"]
        for name in inputs.texts() if not one.secured and one.method in ("GET", "POST") else ():
            where, said = inputs.all[name]
            longest = said.get("maxLength")
            bounded = isinstance(longest, int) and longest < max(lengths)
            rows = [inputs.row("anonymous", {name: LETTER * length}, marked=False) for length in lengths]
            if bounded or where != ("query" if safe else "body") or not left[safe] or not all(rows):
                continue
            steps = [_step(url_of(f"{one.method} {row[2]}"), row) for row in rows if row]
            if all(step.args["url"] for step in steps):
                left[safe] -= 1
                yield Question(tuple(steps), minimal=True)


def _step(url: str, row: list[Any]) -> Step:
    sent = {} if row[1] == "GET" else {"method": row[1], "fields": row[3]}
    return Step(tool="qa_fetch", args={"url": url, **sent})
