"""What an answer calls a thing, and what of a record is sent as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from sandbox import http
from sandbox.sites import sessions

WAS = "{was}"
"""Stands for the value that a field of this name had in the record that was read last; sent, it changes
nothing."""
IDENT = re.compile(r"(?:_?id|Id|ID|[-_]?uuid|Uuid)$")
IDENTS = ("id", "uuid", "_id", "key", "slug")


def id_of(reply: http.HttpReply, ident: str, path: str) -> str:
    """What an answer calls the thing that it made: its `id` (or `ident`, or `petId` where pets are made),
    else the end of its Location, else the id of the one object in it that has one, by depth; "" if it names
    nothing, or several things."""
    made = sessions.document(reply)
    names = (ident, *IDENTS) if ident else IDENTS
    placed = urlsplit(reply.headers.get("location", "")).path.rstrip("/").rpartition("/")[2]
    level = [made] if isinstance(made, dict) else []
    for depth in range(4):
        found = [text for one in level if (text := named_in(one, (*names, *own_ident(one, path))))]
        if depth and len(found) > 1:
            return placed
        if found or (not depth and placed):
            return found[0] if found else placed
        level = [inner for one in level for inner in one.values() if isinstance(inner, dict)][:20]
    return ""


def own_ident(table: Mapping[str, Any], path: str) -> list[str]:
    """The names of a thing's ids that are called after its collection: `petId` of `/pets`."""
    last = re.split(r"[/#]", path.partition("?")[0].rstrip("/"))[-1].lower().replace("-", "").replace("_", "")
    stems = ((name, IDENT.sub("", name).lower().replace("_", "")) for name in table if IDENT.search(name))
    return [name for name, stem in stems if len(stem) > 2 and stem in last]


def named_in(table: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if isinstance(table.get(name), str | int) and not isinstance(table.get(name), bool):
            return str(table[name])
    return ""


def snake(name: str) -> str:
    """`teamId` as `team_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def as_was(given: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is sent, with the values of a record in place of WAS; None where it has none."""
    made: dict[str, Any] = {}
    for name, value in given.items():
        inner = record.get(name)
        if value == WAS and (name not in record or isinstance(inner, dict | list)):
            return None
        if isinstance(value, dict) and WAS in str(value):
            inner = as_was(value, inner if isinstance(inner, dict) else record)
            if inner is None:
                return None
        made[name] = inner if WAS in str(value) else value
    return made
