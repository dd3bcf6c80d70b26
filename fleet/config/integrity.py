"""How an operator shows what a system under test consists of: `[integrity]` in `fleet.toml`."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints

from fleet.config.section import Section

Category = Literal["files", "accounts", "records", "configuration", "processes"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
_Command = tuple[Annotated[str, StringConstraints(min_length=1, max_length=4096)], ...]


class IntegritySection(Section):
    """Commands of the operator's whose lines are compared before the first test and after the last: started
    by the service on this machine, without a shell, in `/`, with PATH and HOME alone in their environment;
    what leaves this machine does so by their hand (`ssh app@host sha256sum …`)."""

    files: _Command = ()
    """Prints the checksums of files, one a line: `["ssh", "app", "sha256sum", "/srv/app/main.py"]`."""
    accounts: _Command = ()
    """Prints the accounts of users and services, one a line."""
    records: _Command = ()
    """Prints how many records each table has."""
    configuration: _Command = ()
    """Prints the configuration, or checksums of it."""
    processes: _Command = ()
    """Prints the names of the running processes, without their numbers."""
    assets: _Command = ()
    """Prints the hosts of the platform by its inventory, one a line, first the host, then what else is known
    of it (owner, tags): looked at before the first run and each half hour. What is new is named and not
    tested; a host of the scope that is gone is left out."""
    seconds: int = Field(default=60, strict=True, ge=1, le=3_600)
    """The most that each of these may take."""

    @property
    def commands(self) -> dict[Category, tuple[str, ...]]:
        """Those that are stated."""
        return {one: command for one in CATEGORIES if (command := getattr(self, one))}
