"""What explorers find on MCP servers and agents made from seeds: each defect at each of its places.

    make bench-agents [ARGS="--what mcp --seed 1000 --clean 20 --only query,orders"]

A house is one MCP server with a few defects; an agent has one, and words and a wire by its seed. A defect is
found when an oracle of it speaks at its place, by one visit without a proof; what is reported anywhere else,
or of a clean house or agent, is false. docs/bench/mcp.md has the first results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from fleet.devnet.surfaces.harbour import open_office
from fleet.devnet.surfaces.herbarium_wires import open_herbarium
from sandbox.agents.wires import KEYED
from sandbox.tools import qa_mcp
from tests.drivers.mcp_visits import listened, profile, visited, way_out
from tests.drivers.test_agent_wires import ORACLE
from tests.drivers.test_agent_wires import SEEN as SHOWN
from tests.drivers.wire_visits import explored
from tests.drivers.wire_visits import profile as wire_profile
from tests.practice.dialects import FORMS, dialect
from tests.practice.guild_mcp import (
    AT_TOOLS,
    DEFECTS,
    ENDS,
    IN_TEXTS,
    OF_ACCOUNTS,
    PLACES,
    Guild,
)

CALLS = 300
"""Of one visit of an agent."""
ALSO: Mapping[str, tuple[str, ...]] = {"task-open": ("task-read", "task-cancelled", "task-listed")}
"""Oracles that report a defect of an agent besides the one of its name."""
TOGETHER = 4
"""Defects of one house at most."""
ALONE = ("hangs", "dies")
"""Defects that take their server away for a while."""
ORACLES: Mapping[str, tuple[str, ...]] = {
    "query": ("mcp-condition",),
    "command": ("mcp-command", "mcp-listener-command"),
    "template": ("mcp-expression",),
    "path": ("mcp-climb",),
    "address": ("mcp-listener",),
    **dict.fromkeys(AT_TOOLS[:3], ("mcp-input",)),
    **dict.fromkeys(AT_TOOLS[3:5], ("mcp-output",)),
    **dict.fromkeys(("secret-answered", "secret-listed"), ("mcp-secret",)),
    **dict.fromkeys(("header-unchecked", "version-unchecked"), ("mcp-header",)),
    **dict.fromkeys(("session-is-token", "session-is-caller"), ("mcp-session",)),
    **dict.fromkeys(("state-altered", "state-open"), ("mcp-state",)),
    "trace": ("mcp-trace",),
    "list-changes": ("mcp-changed",),
    "list-by-client": ("mcp-list-differs",),
    "hangs": ("mcp-hangs",),
    "dies": ("mcp-ends",),
    "hidden-text": ("mcp-hidden",),
    "orders": ("mcp-orders",),
    "origin-unchecked": ("mcp-origin",),
    "climb-resource": ("mcp-climb",),
    "token-ignored": ("mcp-token",),
    "tool-without-token": ("mcp-open-tool",),
    "draft-open": ("mcp-handle",),
    "letter-open": ("mcp-foreign-resource",),
}
"""The oracles that report a defect."""
SESSIONS = ("list-changes", "session-is-token", "session-is-caller", "version-unchecked", "list-by-client")
"""Defects that only a wire with sessions shows, or both."""
Seen = tuple[str, str]
"""An oracle, and the place and the title of what it reports."""


def houses(named: Sequence[str], chance: Random) -> Iterator[dict[str, int]]:
    """Every named defect at each of its places, a few to a house; those of accounts by themselves."""
    placed = {*ENDS, *AT_TOOLS, *IN_TEXTS}
    left = [(one, at) for one in named for at in range(PLACES)]
    chance.shuffle(left)
    open_: list[dict[str, int]] = []
    for defect, at in left:
        kinds = set(ORACLES[defect])
        fits = (
            one
            for one in open_
            if len(one) < TOGETHER
            and not {*ALONE, defect} & {*one, *((defect,) if defect in ALONE else ())}
            and (defect in OF_ACCOUNTS) is bool({*one} & {*OF_ACCOUNTS})
            and not any(kinds & set(ORACLES[other]) for other in one)
        )
        house = next((one for one in fits if defect not in one), None) if defect not in ALONE else None
        if house is None:
            open_.append(house := {})
        house[defect] = at if defect in placed else 0
    yield from open_


def look(seed: int, at: Mapping[str, int], *, acts: bool = True) -> tuple[Guild, list[Seen]]:
    """One visit of a server: the house, and what is reported."""
    guild, chance = Guild(seed, at), Random(seed + 1)
    accounts = bool({*at} & {*OF_ACCOUNTS}) or (not at and chance.random() < 0.3)
    wire = chance.choice(("old", "new", "both"))
    wire = "both" if {"header-unchecked", "state-altered", "state-open", *SESSIONS} & {*at} else wire
    with open_office(wire=wire, stream=chance.random() < 0.3, protected=accounts, harbour=guild) as office:
        platform = profile(office.url, accounts=accounts)
        with way_out(platform, "exercise" if acts else "observe"), listened(platform) as hears:
            found, _, _ = visited(platform, acts=acts, calls=2_000, seed=seed, hears=hears)
    seen = [(one.oracle, " ".join((*one.sighting.where.values(), one.sighting.title))) for one in found]
    return guild, seen


@dataclass
class Tally:
    """What was found, missed and false, as lines for a person."""

    of: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    def defect(self, name: str, seen: Iterable[Seen], mine: Iterable[Seen]) -> None:
        """One defect: what its server is reported for, and what of that is this one."""
        ok = bool([*mine])
        self.of, self.found = self.of + 1, self.found + ok
        self.missed += [] if ok else [name]
        print("found " if ok else "MISSED", name, len([*seen]), flush=True)

    def others(self, name: str, seen: Iterable[Seen]) -> None:
        """What is reported and is none of a server's defects."""
        self.false += [f"{name}: {one}" for one in sorted(set(seen))]


def servers(named: Sequence[str], seed: int, clean: int) -> Tally:
    """MCP servers: houses with defects, and clean ones."""
    tally, usual = Tally(), (qa_mcp.CALL_S, qa_mcp.ALIVE_S)
    for number, at in enumerate(houses(named, Random(seed))):
        qa_mcp.CALL_S, qa_mcp.ALIVE_S = (1.5, 0.7) if {*at} & {*ALONE} else usual
        guild, seen = look(seed + number, at)
        explained = set[Seen]()
        for defect in at:
            where = guild.where(defect)
            mine = {one for one in seen if one[0] in ORACLES[defect] and where in one[1]}
            explained |= mine
            tally.defect(f"{defect} at {at[defect]} ({where}), seed {seed + number}", seen, mine)
        tally.others(f"{at}, seed {seed + number}", set(seen) - explained)
    qa_mcp.CALL_S, qa_mcp.ALIVE_S = usual
    for one in range(seed + 500, seed + 500 + clean):
        tally.others(f"clean seed {one}", look(one, {})[1])
    return tally


def talk(seed: int, wire: str, *defects: str) -> list[Seen]:
    """What is reported of one agent with words of its own."""
    chance = Random(seed)
    words = dialect(chance, chance.randrange(len(FORMS)))
    how = {"chatty": chance.random() < 0.3, "brief": chance.random() < 0.3 and not defects}
    opens = chance.choice(("", "page", "links")) if not defects else ""
    with open_herbarium(wire, *defects, words=words, opens=opens, **how) as office:
        platform = wire_profile(office)
        with way_out(platform):
            found, _, _ = explored(platform, calls=CALLS, seed=str(seed))
    return [(key, one.sighting.title) for key, one in found.items()]


def agents(named: Sequence[str], seed: int, clean: int) -> Tally:
    """Agents: each defect by wires that can show it, three times, and clean ones."""
    tally, chance = Tally(), Random(seed)
    able = {one: [wire for wire, defect in SHOWN if defect == one] for _, one in SHOWN}
    for number, (defect, _) in enumerate((one, at) for one in able for at in range(PLACES)):
        if defect in named:
            wire = chance.choice(able[defect])
            seen = talk(seed + number, wire, defect)
            mine = {one for one in seen if one[0] in (ORACLE.get(defect, defect), *ALSO.get(defect, ()))}
            tally.defect(f"{defect} by {wire}, seed {seed + number}", seen, mine)
            tally.others(f"{defect} by {wire}, seed {seed + number}", set(seen) - mine)
    for one in range(seed + 500, seed + 500 + clean):
        wire = chance.choice([*KEYED])
        tally.others(f"clean {wire}, seed {one}", talk(one, wire))
    return tally


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", default="mcp,agents")
    parser.add_argument("--seed", type=int, default=1_000)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    wrong = False
    for what, work, every in (
        ("mcp", servers, DEFECTS),
        ("agents", agents, tuple(dict.fromkeys(one for _, one in SHOWN))),
    ):
        if what in chosen.what.split(","):
            started = time.monotonic()
            tally = work(chosen.only.split(",") if chosen.only else every, chosen.seed, chosen.clean)
            print(json.dumps({"missed": tally.missed, "false": tally.false}, indent=1))
            took = time.monotonic() - started
            print(f"{what}: {tally.found}/{tally.of}, {len(tally.false)} false, {took:.0f} s", flush=True)
            wrong = wrong or bool(tally.false)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
