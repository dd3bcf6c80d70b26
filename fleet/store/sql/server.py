"""A PostgreSQL server: the settings of every session in any pool, and its errors as ours; waits are bounded.

A daemon that stops (SIGSTOP, a frozen machine) keeps its TCP sessions, and the server would keep its locks
for as long. So no session may idle in a transaction, and a vanished peer is noticed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import psycopg
from anyio import to_thread

from fleet.errors import ConfigError, FleetError, TryAgain, UsageError
from fleet.store.location import shown

_LINK: Mapping[str, str] = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # ms: a peer that vanished is noticed, not waited for
    "application_name": "qa-fleet",
    "client_encoding": "utf8",
}
"""Connection parameters of libpq; the URL may override them."""

SESSION = """
SELECT set_config('statement_timeout', '30s', false),
       set_config('idle_in_transaction_session_timeout', '10s', false),
       set_config('lock_timeout', %s, false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
           WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
"""
"""Its one parameter is the lock timeout. Transactions await nothing but the server, so one that idles for
10 s belongs to a stopped daemon; its peers' writes wait for longer than that."""


def link(given: Container[str]) -> dict[str, str]:
    """The options of a connection, except those `given` by the URL."""
    return {key: value for key, value in _LINK.items() if key not in given}


_BUSY = ("others are writing the same", "try again")
_AWAY = ("the database does not answer", "start it or wait for it, then try again")
_DENIED = ("access denied", "check user, password and rights of the database URL")
_SCHEMA = (
    "the tables or functions are not those of this version",
    "name another database, or restore its tables",
)

_STATES: tuple[tuple[str, type[FleetError], tuple[str, str]], ...] = (
    ("40", TryAgain, _BUSY),
    ("55P03", TryAgain, _BUSY),
    ("57014", TryAgain, _BUSY),
    ("25P03", TryAgain, _AWAY),
    ("08", TryAgain, _AWAY),
    ("57P", TryAgain, _AWAY),
    ("53100", TryAgain, ("its disk is full; what was recorded before is safe", "free some space there")),
    ("53", TryAgain, ("the database has no free connection", "raise max_connections, or try again")),
    ("58", TryAgain, ("the disk of the database refused", "check its disk, then try again")),
    ("25006", ConfigError, ("read-only", "name the primary, not a standby")),
    ("28", ConfigError, _DENIED),
    ("42501", ConfigError, _DENIED),
    ("3D000", ConfigError, ("no such database", "create it: createdb --encoding=UTF8")),
    ("3F000", ConfigError, _SCHEMA),
    ("42P01", ConfigError, _SCHEMA),
    ("42703", ConfigError, _SCHEMA),
    ("42P07", ConfigError, _SCHEMA),
    ("42883", ConfigError, _SCHEMA),
    ("42704", ConfigError, _SCHEMA),
    ("42804", ConfigError, _SCHEMA),
    ("XX001", ConfigError, ("damaged", "restore a backup; nothing was changed")),
    ("XX002", ConfigError, ("damaged", "restore a backup; nothing was changed")),
    ("23503", UsageError, ("no such run", "name a run that the journal knows")),
)

_SAID: tuple[tuple[str, type[FleetError], tuple[str, str]], ...] = (
    ("authentication failed", ConfigError, _DENIED),
    ("no password supplied", ConfigError, _DENIED),
    ("no pg_hba.conf entry", ConfigError, _DENIED),
    ("permission denied for database", ConfigError, _DENIED),
    ("is not permitted to log in", ConfigError, _DENIED),
    ('role "', ConfigError, _DENIED),
    ('database "', ConfigError, ("no such database", "create it: createdb --encoding=UTF8")),
    ("invalid connection option", ConfigError, ("an option unknown to libpq", "correct the URL")),
    ("invalid value", ConfigError, ("an option with an invalid value", "correct the URL")),
    ("invalid port", ConfigError, ("an invalid port", "correct the URL")),
    (
        "certificate",
        ConfigError,
        ("its certificate is not the one expected", "check sslmode and sslrootcert"),
    ),
)


def translate(error: BaseException, where: str) -> BaseException:
    """Known conditions become FleetErrors with a remedy; anything else is our bug and stays unchanged."""
    state = getattr(error, "sqlstate", None)
    if state is None:
        text = str(error)
        for words, kind, (what, remedy) in _SAID:
            if words in text:
                return kind(f"{where}: {what}", remedy=remedy)
        away = type(error).__name__ in _TRANSPORT
        return TryAgain(f"{where}: {_AWAY[0]}", remedy=_AWAY[1]) if away else error
    for prefix, kind, (what, remedy) in _STATES:
        if state.startswith(prefix):
            return kind(f"{where}: {what}", remedy=remedy)
    return error


_TRANSPORT = frozenset({"OperationalError", "ConnectionTimeout", "InterfaceError"})
"""psycopg's exceptions when the connection, not the statement, failed."""


def is_lost(error: BaseException) -> bool:
    """Whether the connection is lost, so that the last statement's result is unknown."""
    state = getattr(error, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))


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
