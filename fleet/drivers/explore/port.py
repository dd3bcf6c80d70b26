"""The interface of every explorer: it asks questions and learns from their answers. No I/O.

An explorer never judges: the oracles do, at the desk. It decides only what to ask next, from its seed and
the answers it got; so a run can be repeated, and what it knows of a platform is kept between runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, runtime_checkable

from fleet.chain.node.abi import Function
from fleet.config import Platform
from fleet.drivers.desk import Left, Question
from fleet.fuzzing.inputs import SearchStart

Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerContext:
    """The platform as an explorer starts from it, and what this run may do.

    `tools` are those that the persona is granted and that can be called here; `acts`: the dial and the
    budget permit acts.
    """

    platform: Platform
    tools: frozenset[str]
    acts: bool
    offered: frozenset[str] = field(default_factory=frozenset)
    """Views that the diamond is known to offer; empty when unknown."""
    seconds: float = 0.0
    """What the run has left for new questions; 0 when unknown."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """Functions of the contract by the profile's own ABI, by selector."""
    start: SearchStart = field(default_factory=SearchStart)
    """What the profile names for a search of its compiler."""


class Explorer(Protocol):
    """Asks within its own part of a platform."""

    def ask(self, most: int) -> Sequence[Question]:
        """The next questions, with at most `most` calls together; none when it has nothing new to ask now."""

    def learn(self, question: Question, results: Results) -> None:
        """The answers to a question, in order; fewer than its steps when one was refused or failed.

        What they hold is untrusted data.
        """

    def state(self) -> Mapping[str, Any]:
        """What it knows, as JSON; given back to its next instance on this platform."""


@runtime_checkable
class Discoverer(Protocol):
    """An explorer that knows whether a run taught it something, though nothing is wrong."""

    @property
    def discovered(self) -> bool:
        """Whether the platform still behaved in a new way at the end: the next run comes soon."""


@runtime_checkable
class Reporter(Protocol):
    """An explorer that knows what of its part of the platform it met and cannot ask."""

    def left(self) -> Sequence[Left]:
        """What it leaves, asked for at the end of a run; texts of the platform are cleaned by the desk."""


class MakeExplorer(Protocol):
    """Makes an explorer; a `state` that it does not understand is ignored."""

    def __call__(self, context: ExplorerContext, chance: Random, state: Mapping[str, Any], /) -> Explorer: ...
