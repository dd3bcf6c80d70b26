"""Where the hosts of a profile are on the network, and what lies beside them that nothing dials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from fleet.config import Platform

ROUTES = Path("/proc/net/route")


def own_routes() -> str:
    """This machine's table of routes; "" where it has none to read."""
    try:
        return ROUTES.read_text()
    except OSError:
        return ""


def routes(text: str) -> list[IPv4Network]:
    """Networks that a table of routes leads to, but for the default and loopback (proc(5): little-endian)."""
    found = list[IPv4Network]()
    for row in text.splitlines()[1:]:
        columns = row.split()
        if len(columns) < 8:
            continue
        address, mask = (int.from_bytes(bytes.fromhex(columns[at])[::-1], "big") for at in (1, 7))
        if mask and not (network := IPv4Network((address, mask.bit_count()), strict=False)).is_loopback:
            found.append(network)
    return sorted(set(found))


def network_map(platform: Platform, names: Mapping[str, Iterable[str]], table: str) -> dict[str, Any]:
    """Hosts by segment (a stated range, else /24 or /48), with the addresses that their names led to; and
    networks beside them, by this machine's routes, that no range has: an address there is refused at the
    dial, told as `fence`, and waits for a person where `scope` is in `[escalation]`."""
    ranges = platform.web.addresses.networks
    segments = dict[str, list[str]]()
    for host, found in sorted(names.items()):
        for text in sorted(found):
            try:
                at = ip_address(text.partition("%")[0])
            except ValueError:
                continue  # another name on the way
            usual = ip_network((at, 24 if at.version == 4 else 48), strict=False)
            segment = next((one for one in ranges if one.version == at.version and at in one), usual)
            stated = "in web.ranges" if segment in ranges else "not stated in web.ranges"
            segments.setdefault(f"{segment} ({stated})", []).append(f"{host} {text}")
    inside = [one for one in ranges if isinstance(one, IPv4Network)]
    beside = [one for one in routes(table) if not any(one.subnet_of(wide) for wide in inside)]
    return {"segments": segments, "beside": [str(one) for one in beside]}
