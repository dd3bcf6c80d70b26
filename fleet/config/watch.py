"""What is watched of the contracts: `[watch]` in a platform's profile."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from fleet.config.section import Address, Section

ViewName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
ViewText = Annotated[str, StringConstraints(pattern=r"^(0x[0-9a-fA-F]{40} )?[A-Za-z_$][!-~ ]{0,400}$")]
InvariantName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]


class InvariantSection(Section):
    """What always holds of views that are read at one block."""

    views: dict[ViewName, ViewText] = Field(min_length=1, max_length=16)
    """Each view by the name that `holds` uses: `0xCONTRACT name(types)(type) ARGUMENTS`, such as
    `0x… balanceOf(address)(uint256) 0x…`. The diamond's without a contract; `0x… balance` is its native
    coin."""
    holds: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    """CEL over these names, such as `treasury >= owed`; integers have any size. Broken is what is false at
    three blocks in a row."""


class WatchSection(Section):
    """Contracts whose upgrades, owners, roles, pauses, timelocks and Safes are watched between runs, at any
    rung.

    The diamond is always among them, and so are the accounts and contracts that own, administer or upgrade
    them.
    """

    contracts: tuple[Address, ...] = Field((), max_length=16)
    """More contracts to watch."""
    since: int | None = Field(default=None, ge=0)
    """First block whose events are read for members of roles and queues of timelocks; without it, the first
    look's."""
    expected: tuple[Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40} [!-~ ]{1,200}$")], ...] = ()
    """Changes that are announced: `0xCONTRACT PART VALUE` as `fleet check posture` writes them, such as
    `0x… implementation 0x…`; without the value, any change of that part."""
    invariants: dict[InvariantName, InvariantSection] = Field(
        {}, max_length=32, json_schema_extra={"additionalProperties": False}
    )
    """What always holds, as `[watch.invariants.NAME]`."""
