"""Whether a child that had to be stopped hangs, or whether this machine is busy.

Wall time says nothing on a machine that is shared. So the child's processor time is set against that of a
control: the same program, in the same jail, right after it, on input that is known to be good.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MUCH = 5
"""How many times the control's processor time a child must have used for a hang."""
SURE, LEAST_SURE_S = 40, 1.0
"""The same where the wall cap of a busy machine stopped it before its limit, and the seconds that it must
have used: nothing but a hang takes so much more than the control."""
AGAIN = 8
"""The limit of a second try, in the control's processor time."""
PROMPT = 4
"""How many times the control's wall time a child must have slept for a hang."""


class HangVerdict(StrEnum):
    HANG = "hang"
    AGAIN = "again"  # the program itself is slow: only a larger limit can tell
    UNKNOWN = "unknown"  # could not tell


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Seconds that one process group took. `queued_s`: ready to run, and kept waiting for a processor."""

    cpu_s: float
    wall_s: float
    queued_s: float
    ended: bool

    @property
    def asleep_s(self) -> float:
        """Neither running nor ready to run."""
        return max(self.wall_s - self.cpu_s - self.queued_s, 0.0)


def judge(child: ProcessorTime, control: ProcessorTime, limit_s: float) -> HangVerdict:
    """What to make of a child that was stopped after `limit_s` of processor time, or at the wall cap.

    A child that ran for as long as it may is a hang if the control needed far less; one that a busy machine
    kept from that, if it ran for SURE times as long as the control. One that hardly ran is a hang if it
    slept, on its own, for most of a time that is long for the control: then it is blocked. One that wanted to
    run and could not is starved, and says nothing. Without a control that ended, nothing does.
    """
    if not control.ended:
        return HangVerdict.UNKNOWN
    if child.cpu_s >= limit_s:
        return HangVerdict.HANG if child.cpu_s >= MUCH * control.cpu_s else HangVerdict.AGAIN
    if child.cpu_s >= max(SURE * control.cpu_s, LEAST_SURE_S):
        return HangVerdict.HANG
    blocked = child.asleep_s >= child.wall_s / 2 and child.asleep_s >= PROMPT * control.wall_s
    return HangVerdict.HANG if blocked else HangVerdict.UNKNOWN
