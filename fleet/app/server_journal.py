"""A journal on PostgreSQL beside backups of the state directory: the server's own tools copy it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from fleet.app.archive import Manifest
from fleet.errors import Refused
from fleet.store.location import shown, without_password

JOURNAL = "fleet.db"
"""The journal in a backup, and in the state directory, unless it is on a server."""


def dump_line(place: str, file: Path) -> str:
    """The command that copies the journal beside a backup; the password is libpq's business (~/.pgpass)."""
    target = quote(f"{file}.pgdump")
    return f"pg_dump --format=custom --no-owner --file={target} {quote(without_password(place))}"


def restore_line(place: str, file: Path) -> str:
    """The command that puts it into an empty database."""
    options = "--no-owner --exit-on-error --single-transaction"
    return f"pg_restore {options} --dbname={quote(without_password(place))} {quote(f'{file}.pgdump')}"


async def check_place(manifest: Manifest, place: Path | str, file: Path) -> None:
    """Refused unless the journal is where the backup had it: in the backup itself, or on the server by now.

    Without its journal a fleet forgets what it owes and what it reported.
    """
    inside = manifest.journal == JOURNAL
    if isinstance(place, Path):
        if not inside:
            raise _refused(
                f"the backup's journal is on {manifest.journal}, and fleet.toml names no server",
                "name the server in [store] url of fleet.toml",
            )
        return
    if inside:
        raise _refused(
            f"the backup has its journal in it, and fleet.toml names {shown(place)}",
            "remove url and url_file from [store] in fleet.toml",
        )
    from fleet.store.sql.server_look import has_journal  # the driver is an extra

    if not await has_journal(place):
        raise _refused(f"{shown(place)} has no journal yet", f"first: {restore_line(place, file)}")


def _refused(why: str, remedy: str) -> Refused:
    return Refused(why, rule="restore", remedy=remedy)
