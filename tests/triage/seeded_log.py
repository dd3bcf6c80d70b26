"""A log made from a seed: every grammar, strangers, edited wordings, records, and what is no entry at all."""

from __future__ import annotations

import random

from fleet.clock import iso_seconds
from fleet.findings.records import ItemRecord, write_record
from fleet.store.rows import MirroredEntry
from tests.triage.triage_log import EV, FLEET, START, finding

_WORDS = (
    "deploy publish wallet balance timeout crash header cache quota token stale missing wrong slow empty"
    " button page facet route compile before after not never without fails shows returns accepts rejects"
    " transaction nonce 404 500 GET /api/facets compile_source() E0412 --release 0xdeadbeef 32 bytes, . "
)
_SURFACES = ("security", "on-chain", "compiler", "ux", "perf", "docs")
_SEVERITIES = ("critical", "high", "medium", "low", "info")


class SeededLog:
    """The same entries for the same seed, on any machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._titles: list[str] = []
        self._texts: list[str] = []
        self.names: list[str] = []
        """Fingerprints of the fleet's items so far."""

    def entries(self, count: int) -> list[MirroredEntry]:
        """This many entries from index 0, thirty seconds apart."""
        found = []
        for index in range(count):
            at = START + 30 * index
            ours = self._random.random() < 0.5
            sender = FLEET if ours else f"0x{self._random.randrange(60):040X}"
            text = self._ours(at) if ours else self._theirs()
            self._texts.append(text)
            found.append(MirroredEntry(epoch=0, index=index, sender=sender, timestamp=at, text=text))
        return found

    def _title(self) -> str:
        """A title: a new one, an earlier one, or an earlier one with a word edited."""
        pick = self._random
        if self._titles and pick.random() < 0.6:
            words = pick.choice(self._titles).split(" ")
            if pick.random() < 0.5:
                words[pick.randrange(len(words))] = pick.choice(_WORDS.split())
            title = " ".join(words)
        else:
            title = " ".join(pick.choices(_WORDS.split(), k=pick.randrange(3, 14)))
        self._titles.append(title)
        return title

    def _ours(self, at: int) -> str:
        pick = self._random
        if self.names and pick.random() < 0.08:
            return self._record(at)
        if pick.random() < 0.1:
            return self._theirs()
        name = (
            pick.choice(self.names) if self.names and pick.random() < 0.5 else f"{pick.getrandbits(48):012x}"
        )
        tries = pick.randrange(1, 5)
        text = finding(
            f"{{site}}/{pick.randrange(200)}",
            title=self._title(),
            sev=pick.choice(_SEVERITIES),
            surface=pick.choice(_SURFACES),
            run=f"r{pick.randrange(400)}",
            rate=pick.choice([None, (tries, tries), (pick.randrange(tries + 1), tries)]),
            calls=pick.random() < 0.8,
            seen=name if pick.random() < 0.7 else "",
        )
        self.names.append(text.partition(" fp=")[2][:12])
        return text

    def _record(self, at: int) -> str:
        pick = self._random
        item, when = pick.choice(self.names), iso_seconds(at)
        record = pick.choice(
            [
                ItemRecord(kind="verified-fixed", item=item, at=when, who="r9", runs=3),
                ItemRecord(kind="seen", item=item, at=when, runs=pick.randrange(1, 50), days=3, last=when),
                ItemRecord(kind="dismiss", item=item, at=when, who="ann", reason="by design"),
                ItemRecord(kind="reopen", item=item, at=when, who="ann", reason="not yet"),
                ItemRecord(
                    kind="merge",
                    item=item,
                    at=when,
                    who="bob",
                    reason="one cause",
                    other=pick.choice(self.names),
                ),
            ]
        )
        return write_record(record, surface="ux", title=self._title())

    def _theirs(self) -> str:
        pick, title = self._random, self._title()
        severity, surface = pick.choice(_SEVERITIES), pick.choice(_SURFACES)
        repro = pick.choice(
            ["", "\nrepro: none", "\nrepro: ev", '\nrepro: qa_fetch(url="{site}/1")', "\nrepro: x("]
        )
        head = f"qa/v1 source=qa-ux sev={severity}"
        return pick.choice(
            [
                f"[BUG] {title}",
                f"{title}\nSteps: {self._title()}",
                f"{head} {title}",
                f"{head}\n{title}{repro}",
                f"{head} surface={surface}\n{title}\nIt was seen again.{repro}",
                f"{head} surface={surface} run=r{pick.randrange(9)} fp={pick.getrandbits(48):012x} rate=1/3"
                f" ev=sha256:{EV}\n{title}{repro}",
                f"{head} surface={surface} fp=xyz\n{title}",
                f"qa/v1 source=qa-ux v2: {title}",
                f"\x1b[31m{title}\u202e \ud800",
                "",
                pick.choice(self._texts or [title]),
            ]
        )
