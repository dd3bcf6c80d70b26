"""What happens while a fix is proposed; part of `fleet.events.model.Event`."""

from __future__ import annotations

from typing import Literal

from fleet.events.run_event import RunEvent


class FixStepTaken(RunEvent):
    """One step of the fix gate: whether it passed, and what was seen, in words."""

    type: Literal["fix.step"] = "fix.step"
    step: str
    passed: bool
    words: str
    item: str


class ProposalMoved(RunEvent):
    """A proposal of a fix is now in this state; `ref` is where it is, `why` the reason in words."""

    type: Literal["proposal.moved"] = "proposal.moved"
    proposal: str
    item: str
    state: str
    ref: str = ""
    why: str = ""
