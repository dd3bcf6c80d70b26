"""What a search has learned over its rounds: inputs, suspects, statistics. Pure: no I/O and no clock.

A round is one call of qa_fuzz in one jail; what it answers is a claim. Nothing here is a finding: a suspect
becomes one only when single calls in fresh jails show it to the oracles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from random import Random
from typing import Any

from fleet.fuzzing.claims import INPUT_BYTES, PARTS, RoundClaim, fits, round_claim
from fleet.fuzzing.inputs import MOST_INPUTS, KeptInputs
from fleet.fuzzing.suspects import Suspect
from sandbox.judging.crash_place import same_recursion

VERSION = 1
MOST_SUSPECTS = 200
FEWEST_INPUTS = 24
SENT_CHARS, ROUGH_CHARS = 90_000, 2 * INPUT_BYTES
"""Of all inputs of a round, and of rough ones: together less than qa_fuzz takes."""
MOST_ROUGH = 3
"""Defects whose shrink was cut short that a round is sent, besides, to go on: a shrink has a share of it."""
SLOW, SMALL = frozenset({"hang", "memory"}), 64
"""Kinds of defects of which each step of a shrink takes long, and bytes from which on no round takes more."""
SLOW_TURN = 3
"""One in this many rounds of a part goes on with slow ones: they take a quarter of it."""
MOST_DRY = 3
"""Dry rounds in a row that count against a part's turn."""
REPLAY = 0.25
"""The share of a round that its corpus may take: every input of it is executed first."""


@dataclass(slots=True)
class PartStatistics:
    """The sums over all rounds of one part. `dry`: rounds in a row without new behaviour. `seeds_done`: how
    many of the guest's own suspicious programs were executed."""

    rounds: int = 0
    executions: int = 0
    accepted: int = 0
    behaviours: int = 0
    seconds: float = 0.0
    dry: int = 0
    seeds_done: int = 0

    def count(self, claim: RoundClaim, *, new: bool) -> None:
        """Add one round."""
        self.rounds += 1
        self.executions += claim.executions
        self.accepted += claim.accepted
        self.behaviours += claim.behaviours if new else 0
        self.seconds += claim.seconds
        self.dry = 0 if new else self.dry + 1
        self.seeds_done = max(self.seeds_done, claim.seeds_done)

    @property
    def rate(self) -> float:
        """Executions a second; 0 when unknown."""
        return self.executions / self.seconds if self.seconds else 0.0

    @classmethod
    def of(cls, data: object) -> PartStatistics:
        """What `asdict` gave; zeros for anything else."""
        names = [one.name for one in fields(cls)]
        if not isinstance(data, Mapping) or set(data) != set(names):
            return cls()
        if any(type(data[name]) not in (int, float) or data[name] < 0 for name in names):
            return cls()
        return cls(**data)


class Campaign:
    """One search on one program, over rounds of its parts."""

    def __init__(self) -> None:
        self.rounds = 0
        """Rounds begun, those without an answer included: the number of the next one."""
        self.asked: dict[str, int] = dict.fromkeys(PARTS, 0)
        """Rounds begun of each part since the campaign was read."""
        self.of_part: dict[str, PartStatistics] = {part: PartStatistics() for part in PARTS}
        self._inputs: dict[str, KeptInputs] = {part: KeptInputs() for part in PARTS}
        self._suspects: dict[tuple[str, str], Suspect] = {}

    @property
    def dry(self) -> int:
        """Rounds since new behaviour, of the part that dried up last; 0 before any round."""
        return min((one.dry for one in self.of_part.values() if one.rounds), default=0)

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """All, in the order of their signatures."""
        return tuple(self._suspects[key] for key in sorted(self._suspects))

    @property
    def waiting(self) -> tuple[Suspect, ...]:
        """Those to look at next, the shortest first."""
        found = [one for one in self.suspects if one.waits and one.steps()]
        return tuple(sorted(found, key=lambda one: (one.looks, one.size)))

    def inputs(self, part: str) -> KeptInputs:
        """What rounds of a part start from."""
        return self._inputs[part]

    def due(self, parts: Sequence[str]) -> str:
        """The part that the next round should be of: in turns, one that dried up every few only."""
        return min(parts, key=lambda part: self.asked[part] * (1 + min(self.of_part[part].dry, MOST_DRY)))

    def begin_round(self, part: str, *, seed: int, seconds: float, grammar: str = "") -> dict[str, Any]:
        """Arguments of the next call of qa_fuzz; `seed` is the search's own."""
        number = seed + self.rounds
        self.rounds += 1
        self.asked[part] += 1
        past = self.of_part[part]
        most = int(past.rate * seconds * REPLAY) if past.rounds else 0  # a first round runs the guest's seeds
        most = min(max(most, FEWEST_INPUTS), MOST_INPUTS) if past.rounds else 0
        corpus = self._inputs[part].best(most, SENT_CHARS, Random(number))
        mine = [one for one in self.suspects if one.part == part]
        slow_too = self.asked[part] % SLOW_TURN == 1
        rough = [
            one
            for one in mine
            if not one.minimal and (one.kind not in SLOW or (slow_too and one.size > SMALL))
        ]
        going_on = _some([one for one in rough if fits(one.source, part, INPUT_BYTES)], Random(number))
        known = [one.signature for one in mine if one not in going_on]
        sent = [one.source for one in going_on]
        args = {"part": part, "seed": number, "seconds": float(seconds), "seeds_done": past.seeds_done}
        return args | {"corpus": [*sent, *corpus], "known": known, "grammar": grammar}

    def merge(self, asked: Mapping[str, Any], result: Mapping[str, Any]) -> RoundClaim:
        """Take in the answer to a round; what was taken of it."""
        part = str(asked["part"])
        claim = round_claim(result, part)
        inputs = self._inputs[part]
        inputs.credit(asked.get("corpus", ()), claim.behaviours)
        fresh = inputs.add(claim.corpus)
        self.of_part[part].count(claim, new=bool(fresh and claim.behaviours))
        for one in claim.defects:
            if known := self._known(part, one.signature):
                known.meet(one)
            else:
                self._suspects[part, one.signature] = Suspect(part=part, **asdict(one))
        self._cut()
        return claim

    def _known(self, part: str, signature: str) -> Suspect | None:
        if found := self._suspects.get((part, signature)):
            return found
        alike = (key for key in self._suspects if key[0] == part and same_recursion(key[1], signature))
        return self._suspects.get(next(alike, (part, "")))

    def start_from(self, part: str, texts: Iterable[str]) -> None:
        """Inputs of the operator's own."""
        self._inputs[part].add(one for one in texts if fits(one, part, INPUT_BYTES))

    def looked(self, suspect: Suspect, *, shown: bool) -> None:
        """One look at a suspect in fresh jails."""
        suspect.looks += 1
        suspect.shown += shown

    def ask_again(self) -> None:
        """Every suspect waits again: what was seen of another build may be true no longer."""
        for one in self._suspects.values():
            one.looks = one.shown = 0

    def forget(self, suspect: Suspect) -> None:
        """A round may claim it again."""
        self._suspects.pop((suspect.part, suspect.signature), None)

    def _cut(self) -> None:
        """Bound the suspects: those that were given up go first, then the longest."""
        if len(self._suspects) <= MOST_SUSPECTS:
            return
        ranked = sorted(
            self._suspects.items(),
            key=lambda item: (not item[1].shown, not item[1].waits, item[1].size, item[0]),
        )
        self._suspects = dict(ranked[:MOST_SUSPECTS])

    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "version": VERSION,
            "rounds": self.rounds,
            "statistics": {part: asdict(one) for part, one in self.of_part.items()},
            "inputs": {part: one.as_data() for part, one in self._inputs.items()},
            "suspects": [one.as_data() for one in self.suspects],
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Campaign:
        """What `state` gave; one that it does not understand is ignored."""
        made = cls()
        rounds, version = state.get("rounds"), state.get("version")
        tables = [state.get("statistics"), state.get("inputs")]
        if version != VERSION or type(rounds) is not int or not all(isinstance(one, dict) for one in tables):
            return made
        made.rounds = max(rounds, 0)
        for part in PARTS:
            made.of_part[part] = PartStatistics.of(state["statistics"].get(part))
            made._inputs[part] = KeptInputs.of(state["inputs"].get(part), part)
        listed = state.get("suspects")
        for one in map(Suspect.of, listed if isinstance(listed, list) else ()):
            if one is not None:
                made._suspects[one.part, one.signature] = one
        made._cut()
        return made


def _some(rough: list[Suspect], chance: Random) -> list[Suspect]:
    """In each round others; the first one always fits."""
    chance.shuffle(rough)
    found, room = list[Suspect](), ROUGH_CHARS
    for one in rough:
        if len(found) < MOST_ROUGH and len(one.source) <= room:
            found.append(one)
            room -= len(one.source)
    return found
