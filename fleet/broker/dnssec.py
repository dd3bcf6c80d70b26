"""Whether the addresses of a name are what its zone signed, as the resolver of our own network found.

The resolver validates (RFC 4035): it says so by the bit AD, and answers what does not hold with an error. It
is asked by TCP, once a dial, and believed only on loopback or at a private address, where nobody between can
set a bit. A zone that is not signed has no signature in its answer, and nothing to validate.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import anyio
from dns import asyncquery, flags, message
from dns.exception import DNSException
from dns.rcode import NOERROR, NXDOMAIN
from dns.rdatatype import AAAA, CNAME, RRSIG, A, RdataType
from dns.resolver import NoResolverConfiguration, Resolver

from fleet.broker.rpc_policy import Denied

RESOLV = Path("/etc/resolv.conf")
ANSWER_S = 5.0


def resolver_of(file: Path) -> str:
    """The first resolver that a resolv.conf names; "" for none."""
    try:
        return str(next(iter(Resolver(str(file)).nameservers), ""))
    except NoResolverConfiguration:
        return ""


async def require_valid(
    host: str, found: tuple[str, ...], *, resolver: str = "", port: int = 53
) -> tuple[tuple[str, ...], int | None]:
    """Each name on the way to a name's addresses, and for how many seconds all of that holds (None without
    a record); Denied unless its zone is not signed, or the resolver validated these addresses."""

    async def asked(kind: RdataType) -> message.Message:
        """For one kind of record, with a wish for signatures (DO) and validation (AD)."""
        query = message.make_query(host, kind, want_dnssec=True, flags=flags.RD | flags.AD)
        return await asyncquery.tcp(query, resolver, port=port)

    try:
        resolver = resolver or resolver_of(RESOLV)
        if not resolver or ip_address(resolver.partition("%")[0]).is_global:
            raise Denied(
                "dnssec", f"the resolver {resolver or 'none'} is not of this network: its word is no proof"
            )
        with anyio.fail_after(ANSWER_S):
            both = [await asked(kind) for kind in (A, AAAA)]
    except (DNSException, OSError, ValueError, EOFError, TimeoutError) as error:
        raise Denied("dnssec", f"{host}: the resolver does not say whether it is valid: {error}") from None
    if any(one.rcode() not in (NOERROR, NXDOMAIN) for one in both):
        raise Denied("dnssec", f"{host}: its signatures do not hold, or its resolver failed")
    rows = [(each.rdtype, row) for one in both for each in one.answer for row in each]
    aliases = dict.fromkeys(
        row.target.to_text(omit_final_dot=True).lower() for kind, row in rows if kind == CNAME
    )
    signed = [one for one in both if any(each.rdtype == RRSIG for each in one.answer)]
    ttl_s = min((each.ttl for one in both for each in one.answer if each.rdtype != RRSIG), default=None)
    if not signed:
        return tuple(aliases), ttl_s
    if not all(one.flags & flags.AD for one in signed):
        raise Denied("dnssec", f"{host} is signed, and the resolver {resolver} does not validate")
    valid = {str(ip_address(row.address)) for kind, row in rows if kind in (A, AAAA)}
    if strange := sorted({*found} - valid):
        raise Denied("dnssec", f"{host} resolves to {', '.join(strange)}, which its zone did not sign")
    return tuple(aliases), ttl_s
