"""Cuts a question that shows a defect to the fewest calls and arguments that still show it.

Delta debugging (Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, 2002) over steps, then
over arguments and their texts, a few candidates at a time, so that they can share a jail: the proof that
follows is what counts. Bounded: what is not minimal within the bound is kept as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.personas.model import Probe, Step
from fleet.runs.call.guest_protocol import bad_args
from sandbox.spec import Effect
from sandbox.tools import TOOLS

MOST = 16
"""Executions for one question at most."""
ACTS = 12
"""Calls that act for cutting one question at most: each is one of the platform's own, and is taken from the
writes of the questions that are still to be asked."""
FEW = 4
"""The same for one whose texts were cut to a minimum before it was asked."""
SHORT = 24
"""Characters: a text of an argument up to here is not cut further."""

TOGETHER = 4
"""Candidates executed at a time, the first that shows it is taken; those that act go one at a time."""

StillShows = Callable[[Sequence[Probe]], Awaitable[Sequence[bool]]]
"""Executes smaller questions once: whether each shows the same."""


@dataclass(slots=True)
class Minimised:
    """The smallest question found, and the executions that it took."""

    probe: Probe
    tries: int = 0


async def minimise(probe: Probe, shows: StillShows, *, most: int = MOST) -> Minimised:
    """A smaller question that shows the same, one cut at a time until none holds or the bound is reached."""
    acts = sum(TOOLS[one.tool].effect_of(one.args) is Effect.ACT for one in probe.steps)
    found, refused, most = Minimised(probe), set[str](), min(most, ACTS // acts if acts else most)
    while taken := await _smaller_one(found, refused, shows, most):
        found.probe = taken
    return found


async def _smaller_one(found: Minimised, refused: set[str], shows: StillShows, most: int) -> Probe | None:
    """The first smaller question that shows the same; None when none does within the bound."""
    waiting = [steps for steps in cuts(found.probe.steps) if repr(steps) not in refused]
    acts = any(TOOLS[one.tool].effect_of(one.args) is Effect.ACT for one in found.probe.steps)
    while group := waiting[: min(1 if acts else TOGETHER, most - found.tries)]:
        del waiting[: len(group)]
        found.tries += len(group)
        smaller = [found.probe.model_copy(update={"steps": steps}) for steps in group]
        for one, shown in zip(smaller, await shows(smaller), strict=True):
            if shown:
                return one
            refused.add(repr(one.steps))
    return None


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
        if isinstance(value, str):
            yield from ({**args, name: shorter} for shorter in _fewer_parameters(value))
        if isinstance(value, str) and len(value) > SHORT and "{" not in value:
            middle, quarter = len(value) // 2, len(value) // 4
            yield {**args, name: value[:middle]}
            yield {**args, name: value[middle:]}
            for at in range(0, 4 * quarter, quarter):
                yield {**args, name: value[:at] + value[at + quarter :]}


def retold(title: str, before: Probe, after: Probe) -> str:
    """The title of a question after cuts: a URL that is no longer asked is the one that its page has now."""
    now = [str(step.args.get("url", "")) for step in after.steps]
    pages = {url.partition("?")[0]: url for url in now}
    for step in before.steps:
        url = str(step.args.get("url", ""))
        page, asks, _ = url.partition("?")
        if asks and url not in now and page in pages:
            title = title.replace(url, pages[page])
    return title


def _fewer_parameters(text: str) -> Iterator[str]:
    """A page's URL with one parameter of its query left out; nothing for another text."""
    base, asks, query = text.partition("?")
    if asks and query and base.startswith(("{", "http://", "https://")):
        parts = query.split("&")
        for at in range(len(parts)):
            rest = "&".join(parts[:at] + parts[at + 1 :])
            yield f"{base}?{rest}" if rest else base
