"""Who outside of the operator's house gets something of the fleet's, and whether somebody vetted them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from fleet.chain.keys import read_private
from fleet.config import FleetConfig, Platform, notify_files
from fleet.config.notify import ROLES
from fleet.config.section import is_loopback
from fleet.store.location import store_place

_CLEAR = frozenset({"http", "json", "xml", "form", "mailto", "ntfy"})
"""Schemes that may send without TLS."""
_HOSTED = frozenset(
    {"http", "https", "json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos", "ntfy", "ntfys"}
)
"""Schemes of Apprise whose host is the receiver's; others may have a token there."""


def _urls(config: FleetConfig, state: Path) -> dict[str, str]:
    """What each key or file of the configuration sends to. ConfigError for a file that cannot be read."""
    urls = {
        "model": config.model.url if config.model else "",
        "notify.webhook": config.notify.webhook,
        "otel.endpoint": config.otel.endpoint,
        "store": str(store_place(config.store, state)),
        **{f"sinks.{name}": one.url for name, one in config.sinks.items()},
        **{f"repositories.{name}": one.url for name, one in config.repositories.items()},
        **{
            f"repositories.{name}.github.api": one.github.api
            for name, one in config.repositories.items()
            if one.github
        },
    }
    path = notify_files(config, state)["urls_file"]
    if os.path.lexists(path):
        for number, text in enumerate(_lines(path), 1):
            urls[f"{path.name}:{number}"] = (
                "" if text.startswith("#") else text.split()[-1] if text.split() else ""
            )
    return urls


def outside(config: FleetConfig, state: Path) -> dict[str, str]:
    """The host that each key or file of the configuration sends to, but this machine and private networks.

    ConfigError for a file of URLs that cannot be read.
    """
    urls = _urls(config, state)
    hosts = {key: _host(url) for key, url in urls.items() if "://" in url and not url.startswith("file://")}
    return {key: host for key, host in hosts.items() if not _ours(host)}


def unvetted(config: FleetConfig, platform: Platform, state: Path, today: date) -> Iterator[str]:
    """Why nothing may be sent to somebody who gets something, each with the key that sends it."""
    by_host = {host: (name, one) for name, one in platform.providers.items() for host in one.hosts}
    for key, host in outside(config, state).items():
        name, one = by_host.get(host, ("", None))
        model = config.model.name if key == "model" and config.model else ""
        faults = ["no [providers] names it"] if one is None else one.faults(today, model)
        yield from (f"{key} sends to {host}{f' (providers.{name})' if name else ''}: {why}" for why in faults)


def uses(config: FleetConfig, platform: Platform, state: Path) -> Mapping[str, list[str]]:
    """By provider, the keys that send to it."""
    found = outside(config, state)
    return {
        name: [key for key, host in found.items() if host in one.hosts]
        for name, one in platform.providers.items()
    }


def unready(config: FleetConfig, state: Path) -> Iterator[str]:
    """What a signed scope needs besides: receivers for each role, and a key for copies of the state."""
    path = notify_files(config, state)["urls_file"]
    told = {text.partition(" ")[0] for text in _lines(path)} if os.path.lexists(path) else set()
    yield from (
        f"{path.name}: no line `{role} URL`, so nobody is told as {role}"
        for role in ROLES
        if role not in told
    )
    for key, url in _urls(config, state).items():
        scheme = url.partition("://")[0].lower()
        if scheme in _CLEAR and key in outside(config, state):
            yield f"{key} sends without TLS ({scheme}): write {scheme}s"
    if not config.keep.sealed_for:
        yield "keep.sealed_for: no key that a copy of the state is sealed for"


def _lines(path: Path) -> list[str]:
    return read_private(path).decode("utf-8", "replace").splitlines()


def _host(url: str) -> str:
    scheme, host = url.partition("://")[0].lower(), urlsplit(url).hostname or ""
    named = scheme in _HOSTED or scheme.startswith("postgres")
    return host.lower() if named and host else scheme


def _ours(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_private
    return is_loopback(host)
