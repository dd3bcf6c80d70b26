"""The tables of the journal, in SQLAlchemy Core, without features of a single database.

Times are ISO texts in UTC, JSON documents are texts, hostile text is bytes (a log entry may contain NUL and
lone surrogates, which PostgreSQL refuses in a text). `sqlite_strict` is ignored by other dialects. A table
that holds one kind of row has its fields as columns (`_columns`), by their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, get_origin, get_type_hints

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
    func,
    literal_column,
)
from sqlalchemy.engine import Dialect

from fleet.store.rows import EffectRow, FindingRow, ProposalRow, RunRow, SkipRow

_ENCODER = json.JSONEncoder(allow_nan=False, sort_keys=True)


def plain(text: str) -> str:
    """Text that every database takes: lone surrogates and NUL are written as escapes; twice is once."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


class Words(TypeDecorator[str]):
    """A text that every database accepts and sorts alike, for values and for comparisons."""

    impl = Text().with_variant(Text(collation="C"), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's own signature
        return None if value is None else plain(value)


def pack(data: Mapping[str, Any]) -> str:
    """A JSON document in ASCII; ValueError for NaN and infinities, TypeError for what JSON cannot hold."""
    return _ENCODER.encode(data)


class JsonDocument(TypeDecorator[dict[str, Any]]):
    """A JSON object in a text; one that is a text already was packed before."""

    impl = Words
    cache_ok = True

    def process_bind_param(self, value: Mapping[str, Any] | str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's own signature
        return value if value is None or isinstance(value, str) else pack(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> dict[str, Any] | None:  # noqa: ARG002  SQLAlchemy's own signature
        data = None if value is None else json.loads(value)
        if data is not None and not isinstance(data, dict):
            raise TypeError("a journal document is an object")
        return data


METADATA = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only for the exact type INTEGER


def _text(name: str, default: str | None = None) -> Column[str]:
    return Column(name, Words, nullable=False, server_default=default)


def _int(name: str, default: str | None = None) -> Column[int]:
    return Column(name, _Id, nullable=False, server_default=default)


def _document(name: str) -> Column[dict[str, Any]]:
    return Column(name, JsonDocument, nullable=False)


def _columns(row: type[Any], *given: Column[Any], defaults: bool = False) -> Iterator[Column[Any]]:
    """A column for each field of a row, unless it is `given`; the given ones that are no field come first.

    `defaults`: a field's default is the server's too, so that a migration can add the column to a full table.
    """
    named = {column.name: column for column in given}
    kinds = get_type_hints(row)
    yield from (column for column in given if column.name not in kinds)
    for one in fields(row):
        kind = (
            JsonDocument if get_origin(kinds[one.name]) is dict else _Id if kinds[one.name] is int else Words
        )
        default = str(one.default) if defaults and one.default is not MISSING else None
        yield named.get(one.name, Column(one.name, kind, nullable=False, server_default=default))


META = Table("meta", METADATA, Column("key", Words, primary_key=True), _text("value"), sqlite_strict=True)

RUNS = Table(
    "runs",
    METADATA,
    *_columns(
        RunRow,
        Column("run_id", Words, primary_key=True),
        Column("key", Words, nullable=False, unique=True),
        defaults=True,
    ),
    Index("runs_by_state", "state"),
    Index("runs_by_persona", "persona", "state"),
    sqlite_strict=True,
)

SKIPS = Table(
    "skips", METADATA, *_columns(SkipRow, Column("skip_id", _Id, primary_key=True)), sqlite_strict=True
)
"""Skipped firings with their reasons."""

EFFECTS = Table(
    "effects",
    METADATA,
    *_columns(
        EffectRow,
        Column("effect_id", _Id, primary_key=True),
        Column("run_id", Words, ForeignKey("runs.run_id"), nullable=True),  # null: an operator's own action
        defaults=True,
    ),
    Index("effects_by_run", "run_id", "kind", "state"),
    Index("effects_by_kind", "kind", "state", "resolved"),
    sqlite_strict=True,
)

FINDINGS = Table(
    "findings",
    METADATA,
    *_columns(
        FindingRow,
        Column("finding_id", _Id, primary_key=True),
        Column("run_id", Words, ForeignKey("runs.run_id"), nullable=False),
    ),
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
    _document("held"),
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

HEAD = 24
"""Bytes of an entry by which it is found: they name its source."""
LOG_HEAD = func.substr(LOG.c.text, literal_column("1"), literal_column(str(HEAD)))
"""Of an entry, as the index has it: an index is not used for an expression with parameters."""
Index("log_by_head", LOG_HEAD)

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
    _document("data"),
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
    _document("data"),
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
    _document("data"),
    _text("at"),
    PrimaryKeyConstraint("platform", "fingerprint"),
    sqlite_strict=True,
)
"""The items of the last triage pass, for rooms below triage (re-runs); derived, never a source."""

PROPOSALS = Table(
    "proposals",
    METADATA,
    *_columns(
        ProposalRow,
        Column("proposal_id", Words, primary_key=True),
        *(_text(name, "") for name in ("base", "head", "ref", "why")),
    ),
    Index("proposals_item", "platform", "item"),
    sqlite_strict=True,
)
"""Proposals of fixes (rung `propose`), one for each run that made one."""
