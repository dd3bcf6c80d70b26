"""Settings of every session on a PostgreSQL server, in any pool: every wait is bounded.

A daemon that stops (SIGSTOP, a frozen machine) keeps its TCP sessions, and the server would keep its locks
for as long. So no session may idle in a transaction, and a vanished peer is noticed.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

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


def link(said: Container[str]) -> dict[str, str]:
    """The options of a connection, except those that the URL has `said`."""
    return {key: value for key, value in _LINK.items() if key not in said}
