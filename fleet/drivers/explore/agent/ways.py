"""How one agent is called, and what of a question its wire has no place for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from fleet.config import Platform
from fleet.oracles.model import Exchange
from sandbox.agents.wires import LACKS, TAKEN, TOKENS
from sandbox.agents.wires.port import CHARGES, GIVEN, LISTS, OTHER, OWNER, SIGNATURES, TASKS, TOOLS, TURNS

STREAMS = "streams"
NO_STREAM = (-32004, -32601)
"""Codes by which an agent says that it does not stream."""
_OF_KEYS = {
    "count": TURNS,
    "price": CHARGES,
    "tool": TOOLS,
    "planted-tool": TOOLS,
    "given-tool": TOOLS,
    "spelling": TOOLS,
    "turns": TURNS,
}
"""By the first word of a question's key: what its answer is judged by."""
_OF_TASKS = ("then", "card", "running", "version", "push_to")


@dataclass(slots=True)
class AgentWay:
    """`wire` as `[agents]` names it, "" for the proxy; `lacks` with reasons, `missed` those that were asked
    for."""

    wire: str = ""
    lacks: dict[str, str] = field(default_factory=dict)
    missed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, platform: Platform, name: str) -> Self:
        """The way to an agent of a profile."""
        wire = platform.agents[name].wire if name in platform.agents else ""
        lacks = dict(LACKS[wire])
        if wire and not platform.accounts:
            lacks[OTHER] = "the profile names no accounts, so nobody is known to it"
        return cls(wire, lacks)

    @property
    def taken(self) -> frozenset[str]:
        """Fields of a request that cannot hold a false sender."""
        return TAKEN.get(self.wire, frozenset())

    def learn(self, one: Exchange) -> None:
        """Take in a refusal of streams; the card is asked about that once."""
        if one.args.get("stream") and one.result.get("code") in NO_STREAM:
            self.lacks[STREAMS] = "it refuses to stream"

    def has(self, key: str, args: Mapping[str, object]) -> bool:
        """Whether the wire has what a call of a question needs."""
        wanted = [one for one in _needs(key, args, TOKENS[self.wire]) if one in self.lacks]
        if self.wire or not {TASKS, GIVEN} & {*wanted}:
            self.missed |= {one: self.lacks[one] for one in wanted}
        return not wanted


def _needs(key: str, args: Mapping[str, object], tokens: tuple[str, ...]) -> Iterator[str]:
    if what := _OF_KEYS.get(key.rpartition("?")[2].partition("/")[0]):
        yield what
    claim, token = args.get("claim_from"), args.get("token", "good")
    if args.get("caller", "caller") != "caller" or claim in ("caller", "other") or args.get("then_as"):
        yield OTHER
    if token != "good" or args.get("unsigned"):
        yield OTHER  # without a token that is known, none can be broken
    if token not in tokens:
        yield SIGNATURES
    if claim == "owner":
        yield OWNER
    if args.get("twice"):
        yield CHARGES
    if args.get("stream") and not args.get("card"):  # what a card declares is asked all the same
        yield STREAMS
    if args.get("given"):
        yield GIVEN
    if any(map(args.get, _OF_TASKS)):
        yield TASKS
    if args.get("then") == "list":
        yield LISTS
