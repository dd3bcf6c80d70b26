"""Logs for the triage tests: who wrote what, and a scripted log that can change under the reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fleet.chain.node.codec import Entry
from fleet.findings.envelope import Envelope, write
from fleet.findings.fingerprint import fingerprint
from fleet.findings.repro import ReproCall
from fleet.store.rows import MirroredEntry
from fleet.triage.items.cluster import Cluster
from fleet.triage.items.index import TriageIndex
from fleet.triage.items.listed import item_of
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.items.rank import SURFACES, ItemFacts, checked, judge
from fleet.triage.items.worklist import WorklistItem

FLEET = "0x" + "aa" * 20
HUMAN = "0x" + "11" * 20
TRUSTED = frozenset({FLEET})
START = 1_781_259_648
EV = "5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592"

LONG = " ".join(map(str, range(1_000)))
"""Too long for an entry, and without a repetition that would make it short."""

FALSE_PREMISES = {
    31: "[BUG] uint256 parsed as JS Number -> NaN",
    32: "[BUG] the call trigger is an un-tabbable div",
    33: "[BUG] wallet-connect is broken, passkeys do not work",
    34: "[FEATURE] the #[tool] macro's error messages are unreadable",
    35: "[FEEDBACK] raw-wei .price(10_000_000_000_000_000) builder is error prone",
    36: "[BUG] keys are in LocalStorage and can be exfiltrated by XSS",
}
"""platform-facts 1.12: claims whose premise is wrong; nothing may promote them."""

NOT_DEFECTS = {
    37: "[FEATURE] claim + publish should be one command",
    38: "[FEEDBACK] this is great, well done",
    39: "[FEEDBACK] a $5 VPS runs circles around this",
}


def finding(
    source: str = "{site}",
    *,
    title: str = "compile panics",
    sev: Any = "high",
    surface: str = "compiler",
    run: str = "r1",
    rate: tuple[int, int] | None = (3, 3),
    calls: bool = True,
    seen: str = "",
    former: Sequence[str] = (),
) -> str:
    """A canonical envelope as the fleet writes it; `seen`: fingerprint version 2, of what was seen; with
    `former`, version 3 and what version 2 called it."""
    repro = (ReproCall("qa_compile", {"source": source}),) if calls else ()
    made = Envelope(
        source="qa-fuzz",
        sev=sev,
        surface=surface,
        run=run,
        fp=seen or fingerprint(surface, repro, title),
        was=fingerprint(surface, repro, title) if seen else "",
        former=tuple(former) if seen else (),
        rate=rate,
        ev=EV,
        title=title,
        repro=repro,
    )
    return write(made)


def log(*texts: str | tuple[str, str], epoch: int = 0) -> list[MirroredEntry]:
    """A mirrored log, one entry a minute; plain text is the fleet's, a pair is (sender, text)."""
    pairs = [(FLEET, text) if isinstance(text, str) else text for text in texts]
    return [
        MirroredEntry(epoch=epoch, index=n, sender=sender, timestamp=START + 60 * n, text=text)
        for n, (sender, text) in enumerate(pairs)
    ]


def folded(entries: Sequence[MirroredEntry]) -> list[Cluster]:
    """The clusters of a log, in order of first sight."""
    index = TriageIndex(TRUSTED)
    index.add(entries)
    return [one.cluster() for one in index.items()]


def rank(clusters: Iterable[Cluster], weights: Mapping[str, float] = SURFACES) -> tuple[WorklistItem, ...]:
    """The items of these clusters alone, best first, as a first pass lists them."""
    judged = [judge(one, checked(weights), ItemFacts()) for one in clusters]
    return tuple(item_of(one, at) for at, one in enumerate(sorted(judged, key=lambda one: one.order), 1))


def inputs(**more: Any) -> PassInputs:
    """What a pass on the day of the log's beginning knows."""
    return PassInputs(now=datetime.fromtimestamp(START, UTC), **more)


class ScriptedLog:
    """A log on chain; `between` runs before every read, so that a test can change it at any moment."""

    def __init__(
        self, entries: Sequence[Entry] = (), between: Callable[[ScriptedLog], None] | None = None
    ) -> None:
        self.entries = list(entries)
        self.between = between or (lambda _: None)
        self.reads = 0

    def post(self, text: str, sender: str = FLEET) -> None:
        self.entries.append(Entry(sender, START + 60 * len(self.entries), text))

    async def count(self) -> int:
        self.reads += 1
        self.between(self)
        return len(self.entries)

    async def range(self, start: int, count: int, /) -> list[Entry]:
        self.reads += 1
        self.between(self)
        return self.entries[start : start + count]
