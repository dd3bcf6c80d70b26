"""What no profile can put in scope."""

from __future__ import annotations

import pytest

from fleet.config import Platform
from fleet.config.load import parse
from fleet.config.never_hosts import EVERYBODYS, PORTS, everybodys
from fleet.errors import ConfigError

PROFILE = 'name = "x"\n[web]\nsite = "https://x.test"\n'


@pytest.mark.parametrize("host", [one.replace("*", "any") for one in EVERYBODYS.entries])
def test_where_other_people_log_in_or_pay_is_no_host_of_a_platform(host: str) -> None:
    spelled = f"{host.upper()}."
    for line in (
        f'hosts = ["{host}:443"]',
        f'proxy = "https://{spelled}/a"',
        f'face = "https://{host}/{{name}}"',
    ):
        with pytest.raises(
            ConfigError, match=r"where other people log in or pay .*: no profile puts it in scope"
        ):
            parse(Platform, f"{PROFILE}{line}\n", file="x.toml")


@pytest.mark.parametrize("port", PORTS)
def test_what_only_a_database_or_a_directory_speaks_is_no_port_of_a_platform(port: int) -> None:
    with pytest.raises(ConfigError, match=rf"port {port} of db\.test is of .*: no profile puts it in scope"):
        parse(Platform, f'{PROFILE}hosts = ["db.test:{port}"]\n', file="x.toml")
    parse(Platform, f'{PROFILE}hosts = ["127.0.0.1:{port}"]\n', file="x.toml")  # this machine's own


def test_ordinary_hosts_are_not_meant() -> None:
    for url in ("https://shop.test/", "https://notstripe.com/", "https://okta.com.shop.test/", "no URL"):
        assert everybodys(url, 443) == ""
