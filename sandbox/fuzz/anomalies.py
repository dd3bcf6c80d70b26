"""What was wrong in one round: what repeats is a defect, and is made minimal; a hang waits for the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.fuzz.port import MOST_DEFECTS, Enough, Shrink
from sandbox.fuzz.relate import Relation
from sandbox.fuzz.trials import SLOW, Trials
from sandbox.judging.crash_place import same_recursion
from sandbox.judging.port import ExecutionVerdict
from sandbox.programs.process import Ending
from sandbox.runners.port import Execution


@dataclass(slots=True)
class Found:
    """One defect: the first input that showed it, the smallest one, and how it was seen. `spent` counts
    executions of its shrink."""

    verdict: ExecutionVerdict
    first: bytes
    origin: str
    relation: Relation | None = None
    source: bytes = b""
    variant: bytes = b""
    cpu_s: float = 0.0
    seen: int = 1
    spent: int = 0
    minimal: bool = False

    @property
    def hangs(self) -> bool:
        return self.verdict.kind == Ending.HANG.value

    @property
    def slow(self) -> bool:
        """One whose executions take long: it is shrunk last."""
        return self.hangs or self.verdict.kind == Ending.MEMORY.value


AGAIN = 2
"""Executions that must show an anomaly once more before it is a defect."""
SHRINK_EXECUTIONS = 2_000
SLOW_EXECUTIONS = 60
"""Of those, executions that end at a limit while a hang, or too much memory, is shrunk."""
SHRINK_SHARE, LEAST_SHRINK_S = 0.15, 0.25
"""Of a round's time, for shrinking: half of what is left of it for each defect, if that is at least
LEAST_SHRINK_S. What finds no room waits for the round's end, or for the next round."""
FINISH_SHARE = 0.8
"""The same after the round's end, over all that are left."""
GRACE_S = 5.0
"""After the round's end, for shrinking what was found last; as much again for what hangs."""
MOST_HANGS = 6
"""Places in which inputs may hang, that one round looks at."""
SHAKY = 3
"""Anomalies of one signature that may fail to repeat before no other is executed again."""


@dataclass(slots=True)
class Anomalies:
    """Of one round. `known` need no other example; `unstable` counts those that did not repeat, `shrinking`
    executions spent on shrinking."""

    trials: Trials
    shrink: Shrink
    known: frozenset[str] = frozenset()
    defects: dict[str, Found] = field(default_factory=dict)
    hanging: dict[str, Found] = field(default_factory=dict)
    shrinking: int = 0
    shrinking_s: float = 0.0
    unstable: int = 0
    _waiting: dict[str, tuple[bytes, ExecutionVerdict, Execution, str]] = field(default_factory=dict)
    _shaky: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trials.hangs |= self.known

    def __len__(self) -> int:
        return len(self.defects) + len(self.hanging)

    def meet(
        self,
        source: bytes,
        verdict: ExecutionVerdict,
        done: Execution,
        origin: str,
        relation: Relation | None = None,
    ) -> None:
        """Count it, or make it a defect if it repeats; a hang waits for the end of the round."""
        known, signature = (*self.defects, *self.known), verdict.signature
        # a recursion is known whichever way round its cycle this one goes
        signature = next((one for one in known if same_recursion(one, signature)), signature)
        if signature in self.defects:
            self.defects[signature].seen += 1
            return
        if not _wrong(verdict) or signature in self.known or len(self.defects) >= MOST_DEFECTS:
            return
        found = Found(verdict, source, origin, relation, source=source, cpu_s=done.cpu_s)
        if found.hangs:
            # keep the smallest for the end of the round; inputs that hang there are from now on cut early
            self.trials.hangs.add(signature)
            before = self.hanging.get(signature)
            if before is None and len(self.hanging) < MOST_HANGS:
                self.hanging[signature] = found
            elif before is not None:
                smaller = found if len(found.first) < len(before.first) else before
                smaller.seen = before.seen + 1
                self.hanging[signature] = smaller
            return
        shaky = self._shaky.get(signature, 0)
        if shaky >= SHAKY or not all(self._shows(source, found) for _ in range(AGAIN)):
            self._shaky[signature] = shaky + 1
            self.unstable += 1
            return
        self.defects[signature] = found
        self.trials.hangs |= {signature} if found.slow else set()

    def settle(self) -> None:
        """Look at what came to light while something else was looked at."""
        while self._waiting:
            self.meet(*self._waiting.pop(next(iter(self._waiting))))

    def _shows(self, source: bytes, found: Found, cpu_s: float = 0.0) -> bool:
        """Whether an input shows this defect; another one that comes to light is looked at later."""
        signature = found.verdict.signature
        if found.relation is not None:
            for verdict, variant, _ in found.relation.broken(self.trials, source):
                if verdict.signature == signature:
                    found.variant = variant
                    return True
            return False
        verdict, done = self.trials.run(source, cpu_s)
        cut = cpu_s and done.ending is Ending.HANG
        if _wrong(verdict) and not cut and verdict.signature not in (signature, *self.defects, *self.known):
            self._waiting[verdict.signature] = (source, verdict, done, "shrinking")
        return verdict.signature == signature

    def shrink_in_turn(self) -> None:
        """Shrink what waits for it, as far as the round's share for it reaches."""
        for found in [one for one in self.defects.values() if not (one.minimal or one.slow)]:
            room = SHRINK_SHARE * (self.trials.seconds + self.trials.left_s) - self.shrinking_s
            if room / 2 >= LEAST_SHRINK_S and found.spent < SHRINK_EXECUTIONS:
                self._shrink(found, room / 2)

    def _shrink(self, found: Found, seconds: float) -> None:
        """Go on with the smallest input so far, for this long at most."""
        trials, slow = self.trials, 0
        began, began_s = trials.executions - found.spent, trials.seconds
        needed = 0.0 if found.hangs else SLOW * found.cpu_s  # a smaller input needs no more

        def still(candidate: bytes) -> bool:
            nonlocal slow
            found.minimal = False  # unless this is not the last question
            spent = trials.executions - began >= SHRINK_EXECUTIONS or slow >= SLOW_EXECUTIONS
            if spent or trials.seconds - began_s >= seconds:
                raise Enough
            shown = self._shows(candidate, found, max(trials.short_s(len(candidate)), needed))
            slow += shown and found.slow
            found.minimal = True
            return shown

        found.minimal = True
        found.source = self.shrink(found.source, still)
        self.shrinking += trials.executions - began - found.spent
        self.shrinking_s += trials.seconds - began_s
        found.spent = trials.executions - began

    def finish(self) -> None:
        """Make sure of what seems to hang, then shrink what the round's end left as it was found."""
        self.trials.grant(GRACE_S * (2 if self.hanging else 1) + max(self.trials.left_s, 0.0))
        for signature, found in self.hanging.items():
            if self._sure(found.first, found):
                self.defects[signature] = found
        self.settle()
        left = [found for found in self.defects.values() if not found.minimal]
        for at, found in enumerate(sorted(left, key=lambda one: one.slow)):
            self._shrink(found, FINISH_SHARE * max(self.trials.left_s, 0.0) / (len(left) - at))
            if found.hangs and not self._sure(found.source, found):
                found.source = found.first  # cut to what is slow in a search, and not in a single call

    def _sure(self, source: bytes, found: Found) -> bool:
        return self._shows(source, found, self.trials.sure_s(len(source)))


def _wrong(verdict: ExecutionVerdict) -> bool:
    """A verdict `unknown` says nothing: the machine was busy."""
    return not verdict.sound and verdict.kind != Ending.UNKNOWN.value
