"""Is the platform down, or are we? Decided from what was tried, with controls. Pure.

A target is down when every look at it failed to get an answer: at least `TRIES` looks over at least five
seconds, each in a round in which a control of the same reach answered (another target, a page that the
profile names, or for loopback our own listener). A look that failed on our side (a broken jail, a refusal)
says nothing about the platform. A verdict needs a control.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fleet.findings.outage import WORD
from fleet.findings.proof import TRIES
from fleet.runs.call.targets import NODE, Reach, spoken, words
from fleet.severity import Severity
from fleet.text import counted
from fleet.unanswered import NO_NAME

PATIENCE_S = 7.0
SPREAD_S = 5.0
WORTH_S = 60.0
"""A shorter outage of the node is recorded but not posted afterwards."""
_PAUSES_S = tuple(PATIENCE_S * 2**at / (2**TRIES - 1) for at in range(TRIES))
_DEADLINES_S = (*[5.0] * TRIES, 15.0)
_SHORTEST_S = (*[2.0] * TRIES, 8.0)

How = Literal["answered", "silent", "ours"]


@dataclass(frozen=True, slots=True)
class Patience:
    """The looks at a target before it is reported down: `TRIES` and one, by default over seven seconds."""

    seconds: float = PATIENCE_S

    @property
    def pauses(self) -> tuple[float, ...]:
        """Pauses before the second look and each later one."""
        return tuple(pause * self._scale for pause in _PAUSES_S)

    @property
    def deadlines(self) -> tuple[float, ...]:
        """Deadline of each look. The last is long: a late answer means slow, not down."""
        return tuple(max(d * self._scale, s) for d, s in zip(_DEADLINES_S, _SHORTEST_S, strict=True))

    @property
    def spread_s(self) -> float:
        return SPREAD_S * self._scale

    @property
    def worth_s(self) -> float:
        return WORTH_S * self._scale

    @property
    def _scale(self) -> float:
        return self.seconds / PATIENCE_S


@dataclass(frozen=True, slots=True)
class TargetLook:
    """One look at one target. `at` in seconds since the first; `said` is its result in a few words."""

    target: str
    round: int
    at: float
    how: How
    said: str = ""
    what: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """Another host asked in a round. `named`: its host name had to be resolved."""

    name: str
    round: int
    reach: Reach
    named: bool
    answered: bool
    own: bool = False
    """Our own listener, a control for loopback only."""


@dataclass(frozen=True, slots=True)
class Up:
    """Every target answered, sooner or later."""

    answered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Down:
    """`since` in seconds after the first look; `tried` are the counted looks, `by` the controls."""

    targets: tuple[str, ...]
    since: float
    tried: tuple[TargetLook, ...]
    by: tuple[str, ...]
    answered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CouldNotTell:
    """No verdict about the platform."""

    why: str
    answered: tuple[str, ...] = ()


Verdict = Up | Down | CouldNotTell
Hosts = Mapping[str, tuple[Reach, bool]]
"""Reach of each target by name, in order, and whether its host is a name."""


def decide(
    looks: Sequence[TargetLook],
    controls: Sequence[Control],
    hosts: Hosts,
    patience: Patience = Patience(),
) -> Verdict:
    """The verdict on all targets. A target that answered in a round is a control of that round."""
    answered = _names((look for look in looks if look.how == "answered"), hosts)
    quiet = [look for look in looks if look.how == "silent" and look.target not in answered]
    silent = _names(quiet, hosts)
    if not silent:
        return (
            Up(answered) if answered or not looks else CouldNotTell(f"no look had a result: {_said(looks)}")
        )
    among = [
        *controls,
        *(Control(one.target, one.round, *hosts[one.target], True) for one in looks if one.how == "answered"),
    ]
    tried: list[TargetLook] = []
    by: list[str] = []
    for name in silent:
        good = [look for look in quiet if look.target == name]
        shown = [(look, c) for look in good if (c := _control(look, hosts[name][0], among)) is not None]
        if len(shown) >= TRIES and shown[-1][0].at - shown[0][0].at >= patience.spread_s:
            tried += [look for look, _ in shown]
            by += [control.name for _, control in shown]
    down = _names(tried, hosts)
    if down:
        return Down(down, min(look.at for look in tried), tuple(tried), tuple(dict.fromkeys(by)), answered)
    return CouldNotTell(_why(quiet, among, hosts), answered)


def _control(look: TargetLook, reach: Reach, controls: Iterable[Control]) -> Control | None:
    """The first control that shows that an answer to this look was possible."""
    return next((one for one in controls if one.answered and _fits(one, look, reach)), None)


def _fits(one: Control, look: TargetLook, reach: Reach) -> bool:
    """Whether an answer of this control would be evidence for this look."""
    far = one.reach is reach is Reach.LOOPBACK if one.own else one.reach >= reach
    return far and one.round == look.round and (one.named or look.said != NO_NAME)


def _why(silent: Sequence[TargetLook], controls: Sequence[Control], hosts: Hosts) -> str:
    what = f"{spoken(_names(silent, hosts))}: {_said(silent)}"
    fit = [c for c in controls if any(_fits(c, look, hosts[look.target][0]) for look in silent)]
    if any(one.answered for one in fit):
        return f"{what}; too few looks with a control that answered"
    asked = words(tuple(dict.fromkeys(one.name for one in fit)))
    return f"our network or machine: {what}; {f'{asked} did not answer either' if asked else 'no control'}"


def _names(looks: Iterable[TargetLook], hosts: Hosts) -> tuple[str, ...]:
    found = {look.target for look in looks}
    return tuple(name for name in hosts if name in found)


def _said(looks: Iterable[TargetLook]) -> str:
    return words(tuple(word for word, _ in Counter(look.said for look in looks).most_common(3)))


def severity(down: Collection[str], all_: Collection[str]) -> Severity:
    """Critical when everything or the node is down; high when a part is."""
    return Severity.CRITICAL if NODE in down or set(down) >= set(all_) else Severity.HIGH


def title(verdict: Down, since: str) -> str:
    """The observation in one line."""
    do = "does" if _one(verdict.targets) else "do"
    told = {name: _said(look for look in verdict.tried if look.target == name) for name in verdict.targets}
    how = next(iter(told.values()))
    if len(set(told.values())) > 1:
        how = "; ".join(f"{name}: {said}" for name, said in told.items())
    count = max(Counter(look.target for look in verdict.tried).values())
    span = max(look.at for look in verdict.tried) - verdict.since
    others = f"; {spoken(verdict.answered)} {'answers' if _one(verdict.answered) else 'answer'}"
    over = f"{counted(count, 'look')} over {span:.{0 if span >= 2 else 1}f} s"
    rest = others if verdict.answered else f"; {words(verdict.by)} answered"
    return f"{WORD}: {spoken(verdict.targets)} {do} not answer: {how}, {over}, since {since}{rest}"


def _one(names: tuple[str, ...]) -> bool:
    return len(names) == 1 and " and " not in names[0]
