"""Ranges of addresses in CIDR: where the hosts of a platform may be, `[web] ranges`.

Pure. Loopback, links, multicast and cloud metadata cannot be ranges of a platform, whatever is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_address,
    ip_network,
)

from fleet.text import counted

Network = IPv4Network | IPv6Network

METADATA = (
    IPv4Address("169.254.169.254"),
    IPv4Address("169.254.170.2"),
    IPv4Address("100.100.100.200"),
    IPv4Address("168.63.129.16"),
    IPv4Address("192.0.0.192"),
    IPv6Address("fd00:ec2::254"),
    IPv6Address("fd20:ce::254"),
)
"""Metadata services of clouds (AWS, ECS, Alibaba, Azure, Oracle; AWS and Google by IPv6)."""
METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal")
"""Names of theirs."""


@dataclass(frozen=True, slots=True)
class AddressRanges:
    """Networks that do not overlap, in order; without any, every public address."""

    networks: tuple[Network, ...] = ()
    doubled: tuple[str, ...] = ()
    """Pairs as written of which one holds the other."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> AddressRanges:
        """From CIDR, such as `203.0.113.0/24` or `2001:db8::/32`; ValueError for what is not CIDR, or that no
        platform can be in."""
        found = [_network(text) for text in texts]
        pairs = [(one, other) for at, one in enumerate(found) for other in found[:at] if _overlap(one, other)]
        fours = [one for one in found if isinstance(one, IPv4Network)]
        sixes = [one for one in found if isinstance(one, IPv6Network)]
        whole: tuple[Network, ...] = (*collapse_addresses(fours), *collapse_addresses(sixes))
        return cls(whole, tuple(f"{one} and {other}" for one, other in pairs))

    def holds(self, address: str) -> bool:
        """Whether an address is in one of them; an IPv4 address in IPv6's clothes is that very address."""
        ip = ip_address(address.partition("%")[0])
        plain = (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip
        return any(plain.version == one.version and plain in one for one in self.networks)

    def remarks(self) -> Iterator[str]:
        """What a person should know of them: their size, private networks, doubled ones."""
        for one in self.networks:
            size = counted(one.num_addresses, "address", "addresses")
            private = ", a private network: it may be another in another place" if one.is_private else ""
            yield f"{one}: {size}{private}"
        for pair in self.doubled:
            yield f"{pair} overlap: one of them is enough"


NO_RANGES = AddressRanges()


def _network(text: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no range in CIDR such as 203.0.113.0/24: {error}") from None
    if any(
        network.version == one.version and one in network and network.num_addresses <= 256 for one in METADATA
    ):
        raise ValueError(f"{text} is where a cloud's metadata service is, which is never asked")
    if network.is_loopback or network.is_link_local or network.is_multicast or network.is_unspecified:
        raise ValueError(f"{text} is a range of loopback, links or multicast: no platform is there")
    return network


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)
