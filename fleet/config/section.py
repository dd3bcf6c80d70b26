"""The base of every table of a configuration file."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints

Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$")]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]


class Section(BaseModel):
    """A frozen table of a configuration file; an unknown key is an error.

    The string below a key documents it (`json_schema.py`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


def in_the_clear(url: str) -> str:
    """Validator: ValueError for plain http to another machine."""
    if url.startswith("http://") and not _is_loopback(urlsplit(url).hostname or ""):
        raise ValueError("plain http to another machine: use https")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
