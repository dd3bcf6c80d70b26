"""Shared by all handlers of a generated platform: blueprint, chain, switches, state."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.findings.blueprint import Blueprint
from bench.findings.switches import Switch
from fleet.clock import Clock, SystemClock
from fleet.devnet.platform.chain import ChainPort

VERSION = "4.7.1"


@dataclass(kw_only=True)
class GeneratedSite:
    """One running platform."""

    blueprint: Blueprint
    chain: ChainPort
    chain_id: int
    diamond: str
    url: str
    switches: Iterable[Switch] = ()
    clock: Clock = field(default_factory=SystemClock)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)
    """What agents keep for callers."""
    sent: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The last message of each caller, and when."""
    hits: Counter[str] = field(default_factory=Counter)
    entries: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self._on = {one.klass: one for one in self.switches}
        self.entries = sqlite3.connect(":memory:", check_same_thread=False)
        self.entries.execute(
            "CREATE TABLE entry (id INTEGER PRIMARY KEY, title TEXT, author TEXT, hidden INTEGER)"
        )
        rows = [
            (number, title, self.blueprint.agents[number % 2], int(number == 8))
            for number, title in enumerate(self.blueprint.titles, 1)
        ]
        self.entries.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", rows)

    def on(self, klass: str, place: str = "") -> Switch | None:
        """The switch of a class, if it is on, at this place."""
        found = self._on.get(klass)
        return found if found and place in ("", found.place) else None

    def fact(self, source: str, name: str) -> str:
        """A fact as a source states it: all agree unless the switch makes this one differ."""
        plan = self.blueprint
        true = {
            "price": plan.price,
            "price_wei": str(plan.price_wei),
            "lifetime": str(plan.lifetime_s),
            "top": str(plan.top),
            "longest": str(plan.longest),
            "chain": str(self.chain_id),
            "diamond": self.diamond,
        }[name]
        wrong = self.on("documents-disagree", source)
        if wrong is None or wrong.kind != name.removesuffix("_wei"):
            return true
        return str(wrong.data["wei"]) if name == "price_wei" else str(wrong.data["says"])

    def select(self, where: str, term: str, limit: int) -> list[dict[str, object]]:
        """Visible entries whose title has the term; sqlite3.Error for a malformed condition."""
        loose = self.on("sql-injection", where)
        if loose:
            query = f"SELECT id, title, author FROM entry WHERE hidden = 0 AND title LIKE '%{term}%'"
            rows = self.entries.execute(f"{query} ORDER BY id LIMIT {limit}")
        else:
            query = (
                "SELECT id, title, author FROM entry WHERE hidden = 0 AND instr(lower(title), lower(?)) > 0"
            )
            rows = self.entries.execute(f"{query} ORDER BY id LIMIT ?", (term, limit))
        return [{"id": one, "title": title, "by": author} for one, title, author in rows]

    def computed(self, where: str, text: str) -> str:
        """The text; with the switch, sums of two numbers in its delimiters are worked out."""
        found = self.on("template-expression", where)
        if not found:
            return text
        left, right = (re.escape(str(found.data[side])) for side in ("left", "right"))
        return re.sub(rf"{left}\s*(\d{{1,6}})\s*([*+-])\s*(\d{{1,6}})\s*{right}", _worked_out, text)


def _worked_out(found: re.Match[str]) -> str:
    one, other = int(found[1]), int(found[3])
    return str(one * other if found[2] == "*" else one + other if found[2] == "+" else one - other)
