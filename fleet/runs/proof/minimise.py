"""Cuts a question that shows a defect to the fewest calls and arguments that still show it.

Delta debugging (Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, 2002) over steps, then
over arguments and their texts, each candidate executed like any look. Bounded: what is not minimal within the
bound is kept as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleet.personas.model import Probe, Step
from fleet.runs.call.guest_protocol import bad_args
from sandbox.tools import TOOLS

MOST = 16
"""Executions for one question at most."""
FEW = 4
"""The same for one whose texts were cut to a minimum before it was asked."""
SHORT = 24
"""Characters: a text of an argument up to here is not cut further."""

StillShows = Callable[[Probe], Awaitable[bool]]
"""Executes a smaller question once: whether it shows the same."""


@dataclass(slots=True)
class Minimised:
    """The smallest question found, and the executions that it took."""

    probe: Probe
    tries: int = 0


async def minimise(probe: Probe, shows: StillShows, *, most: int = MOST) -> Minimised:
    """A smaller question that shows the same, one cut at a time until none holds or the bound is reached."""
    found, refused = Minimised(probe), set[tuple[Step, ...] | str]()
    while True:
        for steps in cuts(found.probe.steps):
            key = repr(steps)
            if key in refused:
                continue
            if found.tries >= most:
                return found
            found.tries += 1
            smaller = found.probe.model_copy(update={"steps": steps})
            if await shows(smaller):
                found.probe = smaller
                break
            refused.add(key)
        else:
            return found


def cuts(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Every question that is one cut smaller, large cuts first; each is valid for its tools."""
    half = len(steps) // 2
    if half > 1:
        yield steps[half:]
    for at in range(len(steps) - 1):
        yield steps[:at] + steps[at + 1 :]
    for at in reversed(range(len(steps))):
        step = steps[at]
        for args in _smaller(step.args):
            if bad_args(TOOLS[step.tool], args) is None:
                yield (*steps[:at], step.model_copy(update={"args": args}), *steps[at + 1 :])


def _smaller(args: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments with one of them left out, one of its members left out, or a part of a text left out."""
    for name, value in args.items():
        yield {key: one for key, one in args.items() if key != name}
        if isinstance(value, Mapping):
            for member in value:
                yield {**args, name: {key: one for key, one in value.items() if key != member}}
        if isinstance(value, str) and len(value) > SHORT and "{" not in value:
            middle, quarter = len(value) // 2, len(value) // 4
            yield {**args, name: value[:middle]}
            yield {**args, name: value[middle:]}
            for at in range(0, 4 * quarter, quarter):
                yield {**args, name: value[:at] + value[at + quarter :]}
