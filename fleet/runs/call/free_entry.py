"""`qa_report`: the one tool that the trusted side executes itself, without a jail."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from fleet.errors import ChainError, FleetError, Refused, Unreachable
from fleet.findings.envelope import MAX_BYTES, read
from fleet.runs.context import RunContext
from fleet.text import clean, cut_bytes
from sandbox.tools.qa_report import Result

_CLASSES: tuple[tuple[type[FleetError], str], ...] = (
    (Refused, "refused"),
    (Unreachable, "unreachable"),
    (ChainError, "reverted"),
    (FleetError, "internal"),
)


async def post_free_entry(context: RunContext, text: str) -> dict[str, Any]:
    """Post one free entry under the fleet's identity: mask, cut, sign, read back.

    Refuses text in the form of a finding: the outbox posts findings after their proof.
    """
    world = context.fleet
    started = world.clock.monotonic()
    shown = cut_bytes(world.redactor.text(clean(text, newlines=True)).strip(), MAX_BYTES)
    answer = Result(ok=False, error_class="bad_request", error="/args/text: empty")
    if read(shown).grammar != "free":
        answer = replace(answer, error="/args/text: findings are posted automatically after their proof")
    elif shown:
        try:
            posted = await world.chain.log.post(shown, run=context.run, charge="reports")
            answer = Result(ok=True, tx=posted.tx, index=posted.index, read_back=True)
        except FleetError as error:
            word = next(word for kind, word in _CLASSES if isinstance(error, kind))
            answer = replace(answer, error_class=word, error=clean(str(error), 500))
    return asdict(replace(answer, latency_ms=(world.clock.monotonic() - started) * 1000))
