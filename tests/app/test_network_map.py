"""The network around a profile's hosts: segments, and what lies beside them."""

from __future__ import annotations

import json
from pathlib import Path

from fleet.app.network_map import network_map, routes
from fleet.broker.known_names import known_names
from fleet.config import Platform, WebSection

TABLE = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t007100CB\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
"""


def test_routes_are_read_but_for_the_default_and_loopback() -> None:
    assert [str(one) for one in routes(TABLE)] == ["10.0.0.0/24", "203.0.113.0/24"]
    assert routes("") == []


def test_hosts_are_in_segments_and_what_lies_beside_them_is_named(tmp_path: Path) -> None:
    platform = Platform(name="x", web=WebSection(site="http://shop.test", ranges=("203.0.113.0/24",)))
    file = tmp_path / "names.json"
    file.write_text(json.dumps({"shop.test": ["203.0.113.7", "cdn.shop.test"], "api.test": ["198.51.100.9"]}))
    assert network_map(platform, known_names(file), TABLE) == {
        "segments": {
            "198.51.100.0/24 (not stated in web.ranges)": ["api.test 198.51.100.9"],
            "203.0.113.0/24 (in web.ranges)": ["shop.test 203.0.113.7"],
        },
        "beside": ["10.0.0.0/24"],
    }
    assert known_names(tmp_path / "none.json") == {}
