"""Which names exist, and which of them a run may act on (platform-facts 1.3, acceptance row 30)."""

from __future__ import annotations

import re

from sandbox.spec import Context, Mistake

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_INDEX = re.compile(r"[1-9][0-9]{0,8}|0")


def is_name(name: str) -> bool:
    """1 to 63 bytes of a-z, 0-9 and `-`, neither first nor last a `-`."""
    return _NAME.fullmatch(name) is not None


def require_name(name: str, pointer: str) -> None:
    if not is_name(name):
        raise Mistake(f"{pointer}: not a name: 1-63 of a-z, 0-9 and '-', not first or last '-'")


def require_own(name: str, ctx: Context, pointer: str) -> None:
    """Only `qa-<run>-<n>` of this very run; checked before any traffic."""
    require_name(name, pointer)
    if not ctx.prefix or not name.startswith(ctx.prefix) or not _INDEX.fullmatch(name[len(ctx.prefix) :]):
        raise Mistake(f"{pointer}: only names {ctx.prefix or 'qa-<run>-'}<n> belong to this run")
