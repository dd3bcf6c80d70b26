"""Whether a server's database has a journal; nothing is created, so a dump can still be restored there."""

from __future__ import annotations

import psycopg
from anyio import to_thread

from fleet.store.location import shown
from fleet.store.sql.postgres_errors import translate

CONNECT_S = 5


async def has_journal(url: str) -> bool:
    """Whether the journal's first table is there; ConfigError or TryAgain as when a journal is opened."""

    def look() -> bool:
        with psycopg.connect(url, connect_timeout=CONNECT_S) as link:
            return link.execute("SELECT to_regclass('meta') IS NOT NULL").fetchone() == (True,)

    try:
        return await to_thread.run_sync(look)
    except psycopg.Error as error:
        raise translate(error, shown(url)) from None
