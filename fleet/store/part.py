"""What every part of the journal stands on: the database, the clock, and plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fleet.clock import Clock, iso
from fleet.store.database import Database
from fleet.store.plain import plain
from fleet.store.units import INT_MAX

__all__ = ["INT_MAX", "Part", "pack", "plain", "unpack"]

_ENCODER = json.JSONEncoder(allow_nan=False, sort_keys=True)


class Part:
    """One group of tables with the methods that read and write them; `Journal` puts the groups together."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def _now(self) -> str:
        return iso(self._clock.now())


def pack(data: Mapping[str, Any]) -> str:
    """A JSON document in ASCII; ValueError for NaN and infinities, TypeError for what JSON cannot hold."""
    return _ENCODER.encode(data)


def unpack(text: str) -> dict[str, Any]:
    """What `pack` wrote."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise TypeError("a journal document is an object")
    return data
