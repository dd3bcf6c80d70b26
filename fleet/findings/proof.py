"""How many proofs a finding needs: the only place with that number, and what follows from it."""

from __future__ import annotations

TRIES = 3
"""Fresh jails, in each of which a finding must show to be confirmed. An item is run again this often before
it counts as gone, a suspect of a search is looked at this often, and a target is asked before it is down."""
EXTRA = 2
"""Extra looks of one proof, to replace inconclusive tries."""
MOST_LOOKS = TRIES + EXTRA
"""The most looks of one proof: the budget keeps this many calls for each step of a raised finding."""
ALL = f"{TRIES} of {TRIES}"
"""The rate of a confirmed finding, for people."""


def is_confirmed(shown: int, tries: int) -> bool:
    """Whether a finding that showed in `shown` of `tries` fresh jails is confirmed."""
    return shown == tries >= TRIES
