"""Agents that are not called through the proxy: one table `[agents.NAME]` of a profile each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from fleet.config.section import ActPath, Section

AgentName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$")]
_BELOW = {"chat": "/chat/completions"}
"""Where below its URL an agent is called, by its wire."""


class AgentSection(Section):
    """One agent, called from the rung `exercise` up. Its callers are the two accounts of `[accounts]`, whose
    secrets are sent as tokens; without that table it is called without one, and by nobody else."""

    wire: Literal["chat", "a2a-1.0", "a2a-0.3"]
    """What it speaks: the OpenAI API's chat completions, or that version of A2A over JSON-RPC."""
    url: ActPath
    """Where: the endpoint of A2A, or the base of the API, such as `{site}/v1`; on the site, the proxy or one
    of `web.hosts`."""
    model: Annotated[str, StringConstraints(max_length=200)] = ""
    """What a chat calls it; by default its name."""

    @property
    def path(self) -> str:
        """`url` with what its wire adds."""
        return self.url.rstrip("/") + _BELOW.get(self.wire, "")
