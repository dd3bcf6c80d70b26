"""What a person changes while runs go on: what is left out, what comes first, how fast; `steering.json`.

It is read at every decision of gate and broker, and only ever narrows what the profile permits: what it does
not name is as before. One that cannot be read leaves everything out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.config.escalation import Level
from fleet.config.url_list import UrlEntry, UrlList, UrlPattern
from fleet.errors import ConfigError
from fleet.files import UnfitFile, read_owned, write_atomic

STEERING = "steering.json"
_MOST = 65_536
"""Bytes."""


class Steering(BaseModel):
    """`leave` is not asked at all, `first` is asked before anything else, in this order; `share` of each
    host's rate is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    leave: tuple[UrlEntry, ...] = ()
    first: tuple[UrlEntry, ...] = ()
    share: float = Field(1.0, gt=0, le=1)


def read_steering(state: Path) -> Steering:
    """What holds now; ConfigError for a file that cannot be read, or that others can write."""
    return _read(state)[0]


def write_steering(state: Path, steering: Steering) -> None:
    """Replace it; it counts from the next decision on. ConfigError."""
    try:
        write_atomic(state / STEERING, steering.model_dump_json().encode() + b"\n")
    except OSError as error:
        remedy = "make the state directory writable, or: fleet stop"
        raise ConfigError(f"{state / STEERING}: {error.strerror}", remedy=remedy) from None


def left_out(state: Path) -> UrlList:
    """What nothing asks at this moment; never raises."""
    try:
        return _read(state)[1]
    except ConfigError as error:
        return UrlList((UrlPattern(str(error), "", below=False, port=0, parts=()),))


def steered_share(state: Path, share: Callable[[str, Level], float], host: str, impact: Level) -> float:
    """The share of a host's rate for calls of an impact, as a person has it at this moment."""
    try:
        return share(host, impact) * read_steering(state).share
    except ConfigError:  # then everything is left out
        return share(host, impact)


def order_now(state: Path) -> Callable[[Iterable[str]], int] | None:
    """The place of a question that asks these URLs, by what comes first: 0 is first, and what is in no place
    is last. None without an order."""
    try:
        first = _read(state)[2]
    except ConfigError:  # then everything is left out
        return None

    def place(urls: Iterable[str]) -> int:
        asked = list(urls)
        return min((n for n, one in enumerate(first) if any(map(one.match, asked))), default=len(first))

    return place if first else None


def _read(state: Path) -> tuple[Steering, UrlList, tuple[UrlList, ...]]:
    path = state / STEERING
    try:
        text = read_owned(path, _MOST, mode=0o022, mark="refuse")
    except FileNotFoundError:
        return _parsed(b"{}")
    except (UnfitFile, OSError) as error:
        raise ConfigError(f"{path}: {error.strerror}", remedy=f"remove {STEERING}, or mend it") from None
    try:
        return _parsed(text)
    except (ValidationError, ValueError):
        remedy = "remove it: then the profile alone counts; or: fleet runs steer"
        raise ConfigError(f"{path}: it is not as `fleet runs steer` writes it", remedy=remedy) from None


@lru_cache(maxsize=4)
def _parsed(text: bytes) -> tuple[Steering, UrlList, tuple[UrlList, ...]]:
    found = Steering.model_validate_json(text)
    first = tuple(UrlList.of([one], site="", proxy="") for one in found.first)
    return found, UrlList.of(found.leave, site="", proxy=""), first
