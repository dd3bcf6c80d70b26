"""The tables of the journal, in SQLAlchemy Core, without features of a single database.

Times are ISO texts in UTC, JSON documents are texts, hostile text is bytes (a log entry may contain NUL and
lone surrogates, which PostgreSQL refuses in a text). `sqlite_strict` is ignored by other dialects.
"""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect

SCHEMA_VERSION = 9
"""Written to `meta`; a journal with a higher one is refused, because this program would misread it."""


def plain(text: str) -> str:
    """Text that every database takes: lone surrogates and NUL are written as escapes; twice is once."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


class Words(TypeDecorator[str]):
    """A text that every database accepts and sorts alike, for values and for comparisons."""

    impl = Text().with_variant(Text(collation="C"), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)


METADATA = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only for the exact type INTEGER


def _text(name: str, default: str | None = None) -> Column[str]:
    return Column(name, Words, nullable=False, server_default=default)


def _int(name: str, default: str | None = None) -> Column[int]:
    return Column(name, _Id, nullable=False, server_default=default)


META = Table("meta", METADATA, Column("key", Words, primary_key=True), _text("value"), sqlite_strict=True)

RUNS = Table(
    "runs",
    METADATA,
    Column("run_id", Words, primary_key=True),
    _text("persona"),
    Column("key", Words, nullable=False, unique=True),
    _text("platform"),
    _text("trigger"),
    _text("rung"),
    _text("budget"),
    _text("state"),
    _text("outcome", ""),
    _text("detail", ""),
    _int("pid", "0"),
    _int("pid_start", "0"),
    _text("created"),
    _text("started", ""),
    _text("ended", ""),
    _int("priority", "0"),
    _text("due", ""),
    _text("cancel", ""),
    _text("daemon", ""),
    _int("discovered", "0"),
    Index("runs_by_state", "state"),
    Index("runs_by_persona", "persona", "state"),
    sqlite_strict=True,
)

SKIPS = Table(
    "skips",
    METADATA,
    Column("skip_id", _Id, primary_key=True),
    _text("persona"),
    _text("key"),
    _text("reason"),
    _text("at"),
    sqlite_strict=True,
)
"""Skipped firings with their reasons."""

EFFECTS = Table(
    "effects",
    METADATA,
    Column("effect_id", _Id, primary_key=True),
    Column("run_id", Words, ForeignKey("runs.run_id"), nullable=True),  # null: an operator's own action
    _text("kind"),
    _text("ref"),
    _text("state"),
    _text("data"),
    _text("at"),
    _text("resolved", ""),
    Index("effects_by_run", "run_id", "kind", "state"),
    Index("effects_by_kind", "kind", "state", "resolved"),
    sqlite_strict=True,
)

FINDINGS = Table(
    "findings",
    METADATA,
    Column("finding_id", _Id, primary_key=True),
    Column("run_id", Words, ForeignKey("runs.run_id"), nullable=False),
    _text("fingerprint"),
    _text("state"),
    _text("probe"),
    _text("persona"),
    _text("surface"),
    _text("severity"),
    _text("title"),
    _text("repro"),
    _text("envelope"),
    _text("evidence"),
    _int("times"),
    _int("confirmed"),
    _int("tries"),
    _text("tx"),
    _int("index"),
    _text("data"),
    _text("at"),
    UniqueConstraint("run_id", "fingerprint"),
    Index("findings_by_fingerprint", "fingerprint", "state"),
    sqlite_strict=True,
)

BUDGET = Table(
    "budget",
    METADATA,
    Column("run_id", Words, ForeignKey("runs.run_id"), nullable=False),
    _text("unit"),
    _int("spent"),
    PrimaryKeyConstraint("run_id", "unit"),
    sqlite_strict=True,
)
"""Spending by run."""

DAYS = Table(
    "days",
    METADATA,
    _text("day"),
    _text("owner"),
    _text("unit"),
    _int("spent"),
    PrimaryKeyConstraint("day", "owner", "unit"),
    sqlite_strict=True,
)
"""Spending by day (`2026-11-22`, UTC): of each persona, and of the whole fleet (owner "")."""

RESERVES = Table(
    "reserves",
    METADATA,
    Column("reserve_id", Words, primary_key=True),
    Column("run_id", Words, ForeignKey("runs.run_id"), nullable=False),
    _text("day"),
    _text("held"),
    _text("at"),
    sqlite_strict=True,
)
"""Amounts counted but not settled; those of a dead process stay here, and stay spent."""

LOG = Table(
    "log",
    METADATA,
    _int("epoch"),
    _int("index"),
    _text("sender"),
    _int("timestamp"),
    Column("text", LargeBinary, nullable=False),
    _text("digest"),
    PrimaryKeyConstraint("epoch", "index"),
    sqlite_strict=True,
)

EPOCHS = Table(
    "epochs",
    METADATA,
    Column("epoch", _Id, primary_key=True),
    _text("since"),
    _text("log", ""),
    _text("why", ""),
    sqlite_strict=True,
)
"""An epoch is one stretch of one log, between two times that it was cleared. `log` names the log (chain and
contract, or a file), `why` what began the epoch."""

HISTORY = Table(
    "history",
    METADATA,
    Column("note_id", _Id, primary_key=True),
    _text("metric"),
    Column("value", Float(53).with_variant(REAL(), "sqlite"), nullable=False),
    _text("at"),
    Index("history_by_metric", "metric", "note_id"),
    sqlite_strict=True,
)

SAMPLES = Table(
    "samples",
    METADATA,
    Column("sample_id", _Id, primary_key=True),
    _text("platform"),
    _text("measure"),
    _text("build"),
    _text("data"),
    _text("at"),
    Index("samples_by_measure", "platform", "measure", "sample_id"),
    sqlite_strict=True,
)
"""What each look measured, by its quantiles: enough for a rank test."""

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("decision_id", _Id, primary_key=True),
    Column("name", Words, nullable=False, unique=True),
    _text("platform"),
    _text("item"),
    _text("kind"),
    _text("data"),
    _text("reason"),
    _text("who"),
    _text("at"),
    _int("entry", "-1"),
    Index("decisions_by_platform", "platform", "decision_id"),
    sqlite_strict=True,
)
"""What persons decided about items; append-only. `entry` is its index on the log once it was published."""

ITEMS = Table(
    "items",
    METADATA,
    _text("platform"),
    _text("fingerprint"),
    _text("state"),
    _text("data"),
    _text("at"),
    PrimaryKeyConstraint("platform", "fingerprint"),
    sqlite_strict=True,
)
"""The items of the last triage pass, for rooms below triage (re-runs); derived, never a source."""

PROPOSALS = Table(
    "proposals",
    METADATA,
    Column("proposal_id", Words, primary_key=True),
    _text("platform"),
    _text("item"),
    _text("repository"),
    _text("branch"),
    _text("state"),
    _text("base", ""),
    _text("head", ""),
    _text("ref", ""),
    _text("why", ""),
    _text("data"),
    _text("created"),
    _text("updated"),
    Index("proposals_item", "platform", "item"),
    sqlite_strict=True,
)
"""Proposals of fixes (rung `propose`), one for each run that made one."""
