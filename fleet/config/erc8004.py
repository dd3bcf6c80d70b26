"""The table `[erc8004]` of a profile: the agent in an ERC-8004 registry that stands for the platform."""

from __future__ import annotations

from pydantic import Field

from fleet.config.section import Address, Section


class Erc8004Section(Section):
    """Its registration is looked at on any rung; of what its file names, only what the profile names too is
    asked. With `clients` also what `log = "erc8004:0x…"` needs, which names the Reputation registry."""

    identity: Address
    """The Identity registry, on `chain.id`; a Reputation registry that refers to another one is refused."""
    validation: Address | None = None
    """The Validation registry, where the agent has one: it must be of this Identity registry, and list
    validations of this agent alone. Where they are said to be is not asked."""
    agent: int = Field(ge=0)
    """Id of the platform's agent there. The fleet's identity may be neither its owner nor an operator of it:
    the registry takes no feedback about oneself."""
    clients: tuple[Address, ...] = Field((), max_length=64)
    """Addresses whose entries are read, the fleet's own identity among them. Anyone may write there, so what
    others write is not even asked for."""
    from_block: int = Field(default=0, ge=0)
    """Block from which entries are read: that of the agent's registration saves a search from the first."""
