"""Ranges of addresses as an operator writes them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import Platform
from fleet.config.load import parse
from fleet.config.ranges import METADATA, METADATA_NAMES, AddressRanges
from fleet.errors import ConfigError

PROFILE = 'name = "x"\n[web]\nsite = "https://x.test"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("203.0.113.5/24", "host bits"),
        ("203.0.113.0/33", "no range in CIDR"),
        ("203.0.113.0-203.0.113.9", "no range in CIDR"),
        ("x.test", "no range in CIDR"),
        ("", "no range in CIDR"),
        ("2001:db8::1/32", "host bits"),
        ("127.0.0.0/8", "loopback"),
        ("::1/128", "loopback"),
        ("169.254.0.0/16", "loopback, links or multicast"),
        ("224.0.0.0/4", "multicast"),
        ("0.0.0.0/32", "loopback"),
        *((f"{one}/{one.max_prefixlen}", "metadata service") for one in METADATA),
        ("169.254.169.0/24", "metadata service"),
    ],
)
def test_what_is_no_range_of_a_platform_is_an_error_that_names_it(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"x\.toml: web\.ranges: .*{why}"):
        parse(Platform, f'{PROFILE}ranges = ["198.51.100.0/24", "{text}"]\n', file="x.toml")


def test_ranges_are_expanded_doubled_ones_and_private_ones_are_told() -> None:
    texts = (
        "198.51.100.8/30",
        "198.51.100.0/24",
        "10.0.0.0/31",
        "2001:db8::/32",
        "198.51.100.0/24",
        "1.1.1.1/32",
    )
    made = parse(Platform, f"{PROFILE}ranges = {list(texts)!r}\n", file="x.toml").web.addresses
    assert list(map(str, made.networks)) == ["1.1.1.1/32", "10.0.0.0/31", "198.51.100.0/24", "2001:db8::/32"]
    remarks = list(made.remarks())
    assert remarks[0] == "1.1.1.1/32: 1 address"
    assert remarks[1].startswith("10.0.0.0/31: 2 addresses, a private network")
    assert remarks[4:] == [
        "198.51.100.0/24 and 198.51.100.8/30 overlap: one of them is enough",
        "198.51.100.0/24 and 198.51.100.8/30 overlap: one of them is enough",
        "198.51.100.0/24 and 198.51.100.0/24 overlap: one of them is enough",
    ]
    inside = {
        host for host in map(str, ip_network("198.51.100.8/30")) if AddressRanges.of(texts[:1]).holds(host)
    }
    assert inside == {f"198.51.100.{last}" for last in (8, 9, 10, 11)}
    assert [made.holds(one) for one in ("10.0.0.1", "10.0.0.2", "2001:db8:1::9%eth0", "::ffff:1.1.1.1")] == [
        True,
        False,
        True,
        True,
    ]


@given(st.ip_addresses(v=4, network="11.0.0.0/9"), st.integers(10, 32))
def test_a_range_holds_exactly_its_own_addresses(address: object, bits: int) -> None:
    network = ip_network(f"{address}/{bits}", strict=False)
    made = AddressRanges.of([str(network)])
    assert [made.holds(str(one)) for one in (address, network[0], network[-1])] == [True] * 3
    assert [made.holds(str(one)) for one in (network[0] - 1, network[-1] + 1)] == [False] * 2


@pytest.mark.parametrize("host", [*METADATA_NAMES, "169.254.169.254", "[fd00:ec2::254]", "0xa9fea9fe"])
def test_a_metadata_service_is_no_host_of_a_platform(host: str) -> None:
    for line in (f'hosts = ["{host}"]', f'proxy = "http://{host}/a"'):
        with pytest.raises(ConfigError, match="metadata service, which is never asked"):
            parse(Platform, f"{PROFILE}{line}\n", file="x.toml")
