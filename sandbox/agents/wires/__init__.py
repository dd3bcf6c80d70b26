"""The wires that agents are called by: the explicit table, in the words of a profile's `[agents]`."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.agents.wires.a2a import A2aWire, A2aWire03
from sandbox.agents.wires.chat import MEANT, ChatWire
from sandbox.agents.wires.gemini import GeminiWire
from sandbox.agents.wires.port import AgentWire
from sandbox.errors import Deadline
from sandbox.spec import Context

KEYED: Mapping[str, type[ChatWire] | type[A2aWire]] = {
    "chat": ChatWire,
    "a2a-1.0": A2aWire,
    "a2a-0.3": A2aWire03,
}
"""By the word for the wire of an agent that the profile describes by itself; the others are called through
the proxy."""
LACKS: Mapping[str, Mapping[str, str]] = {"": GeminiWire.LACKS} | {
    name: wire.LACKS for name, wire in KEYED.items()
}
TOKENS: Mapping[str, tuple[str, ...]] = {"": GeminiWire.TOKENS} | {
    name: wire.TOKENS for name, wire in KEYED.items()
}
TAKEN: Mapping[str, frozenset[str]] = {"chat": MEANT}
"""Fields of a request that cannot hold a false sender."""


def wire_of(target: str, caller: str, ctx: Context, deadline: Deadline) -> AgentWire:
    """The wire of an agent, for this caller; Mistake where the profile does not say how it is called."""
    agent = ctx.agents.get(target)
    return KEYED[agent["wire"]](agent, ctx) if agent else GeminiWire(ctx, deadline, caller)
