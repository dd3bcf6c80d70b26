"""What no profile can put in scope: who other people log in with, pay with, and what only a database speaks.

An operator's own list is `[web] never`; this one is everybody's. This machine's own ports are not meant.
"""

from __future__ import annotations

from types import MappingProxyType

from fleet.config.section import is_loopback
from fleet.config.url_list import UrlList, host_of

IDENTITY = (
    "login.microsoftonline.com",
    "login.microsoft.com",
    "login.live.com",
    "accounts.google.com",
    "appleid.apple.com",
    "idmsa.apple.com",
    "*.okta.com",
    "*.oktapreview.com",
    "*.auth0.com",
    "*.onelogin.com",
    "*.duosecurity.com",
    "*.b2clogin.com",
    "*.ciamlogin.com",
    "*.pingidentity.com",
    "*.pingone.com",
    "signin.aws.amazon.com",
    "sts.amazonaws.com",
)
PAYMENT = (
    "*.stripe.com",
    "*.paypal.com",
    "*.braintreegateway.com",
    "*.braintree-api.com",
    "*.adyen.com",
    "*.squareup.com",
    "*.authorize.net",
    "*.worldpay.com",
    "*.klarna.com",
    "*.checkout.com",
)
EVERYBODYS = UrlList.of((*IDENTITY, *PAYMENT), site="", proxy="")
PORTS = MappingProxyType(
    {
        **dict.fromkeys(
            (1433, 1521, 3306, 5432, 5433, 6379, 9042, 11211, 27017, 27018, 27019, 50000), "a database"
        ),
        **dict.fromkeys((53, 67, 68, 123, 547), "infrastructure of a network (DNS, DHCP, NTP)"),
        **dict.fromkeys((88, 389, 464, 636, 3268, 3269), "a directory or its authentication"),
        **dict.fromkeys((102, 502, 1911, 4840, 20000, 44818, 47808), "a control system"),
    }
)
"""Ports that name what listens there."""


def everybodys(url: str, port: int = 0) -> str:
    """Why a URL is never asked, whatever a profile says; "" when it may be. `port` where the URL has one."""
    host = host_of(url)
    if not host or is_loopback(host):
        return ""
    if entry := EVERYBODYS.match(url):
        return f"{host} is where other people log in or pay ({entry})"
    return f"port {port} of {host} is of {PORTS[port]}" if port in PORTS else ""
