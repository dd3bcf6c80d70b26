"""The base of every table of a configuration file."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, tzinfo
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$")]
ActPath = Annotated[
    str,
    StringConstraints(
        pattern=r"^(\{site\}|\{proxy\}|https?://[a-z0-9.:\[\]-]{1,253})(/[A-Za-z0-9._~!$&'()*+,=:@-]*)+$"
    ),
]
CertificateFile = Annotated[str, StringConstraints(pattern=r"^(/[!-~]{1,500})?$")]
UrlPath = Annotated[str, StringConstraints(pattern=r"^/[!-~]{0,500}$")]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]


def time_zone(name: str) -> tzinfo:
    """The zone of an IANA name; ValueError for one that this machine does not know."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is not a time zone of this machine: write one such as Europe/Berlin"
        ) from None


def _zone_name(name: str) -> str:
    time_zone(name)
    return name


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    return pattern


TimeZone = Annotated[str, AfterValidator(_zone_name)]
REGEX = AfterValidator(_compiles)


class Section(BaseModel):
    """A frozen table of a configuration file; an unknown key is an error.

    The string below a key documents it (`json_schema.py`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or address alone."""
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def in_the_clear(url: str) -> str:
    """Validator: ValueError for plain http to another machine."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        if not url.startswith("http://") or host == "localhost" or ip_address(host).is_loopback:
            return url
    raise ValueError("plain http to another machine: use https")
