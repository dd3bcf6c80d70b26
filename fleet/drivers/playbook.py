"""The driver without a model: a persona's probes, one after the other, a turn each."""

from __future__ import annotations

from fleet.drivers.desk import RUN_PROBE, Desk


async def playbook(desk: Desk) -> str:
    """Drive a run: each open probe once, as the plan has them; RunOver passes through."""
    while probe := desk.next_probe():
        try:
            async with desk.turn() as turn:
                await turn.ask(probe, RUN_PROBE, {"probe": probe})
        except TimeoutError:
            continue  # recorded as such, and the plan offers it again only for a reason
    return ""
