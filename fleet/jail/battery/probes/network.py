"""N: the network; I: System V and POSIX objects of the host."""

from __future__ import annotations

import os
import socket
import time

from .registry import Escaped, Facts, probe, refused, require
from .system import call

_FAMILIES = {
    "UNIX": 1,
    "NETLINK": 16,
    "PACKET": 17,
    "TIPC": 30,
    "BLUETOOTH": 31,
    "ALG": 38,
    "VSOCK": 40,
    "KCM": 41,
    "QIPCRTR": 42,
    "XDP": 44,
}


def _connect(family: int, address: tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as out:
        out.settimeout(2)
        out.connect(address)


@probe("N01")
def tcp(facts: Facts) -> str:
    started = time.monotonic()
    refused("ECONNREFUSED", _connect, socket.AF_INET, ("127.0.0.1", facts["port"]))
    refused("ECONNREFUSED EADDRNOTAVAIL ENETUNREACH", _connect, socket.AF_INET6, ("::1", facts["port"]))
    refused("ENETUNREACH", _connect, socket.AF_INET, ("169.254.169.254", 80))
    return require(time.monotonic() - started < 1, "at once")


@probe("N02")
def other_protocols(facts: Facts) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        refused("ENETUNREACH", out.sendto, b"x", ("192.0.2.1", 53))
    refused("EPERM", socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
    return refused("EACCES EPERM", socket.socket, socket.AF_INET, socket.SOCK_DGRAM, 1)


@probe("N03")
def names(facts: Facts) -> str:
    started = time.monotonic()
    try:
        socket.getaddrinfo("example.com", 80)
    except socket.gaierror as error:
        return require(time.monotonic() - started < 1, error)
    raise Escaped("a name was resolved")


@probe("N04")
def abstract_sockets(facts: Facts) -> str:
    """Connected pairs stay usable, but none may be turned towards another address."""
    refused("EPERM", socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with one, other:
        return refused("EISCONN ECONNREFUSED EINVAL", one.connect, "\0" + facts["abstract"])


@probe("N05")
def socket_files(facts: Facts) -> str:
    require(not os.path.exists(facts["socket"]), "visible")
    return refused("EAFNOSUPPORT", socket.socket, socket.AF_UNIX, socket.SOCK_STREAM)


@probe("N06")
def families(facts: Facts) -> str:
    for number in _FAMILIES.values():
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            refused("EAFNOSUPPORT", socket.socket, number, kind)
    return "EAFNOSUPPORT"


@probe("N10")
def interfaces(facts: Facts) -> str:
    with open("/proc/net/dev") as text:
        names = [line.split(":")[0].strip() for line in text if ":" in line]
    return require(names == ["lo"], names)


@probe("I01")
def shared_objects(facts: Facts) -> str:
    refused("EPERM", call, "shmget", facts["shm_key"], 4096, 0)
    refused("EPERM", call, "mq_open", b"qa", 0o102, 0o600, 0)
    return require(os.listdir("/dev/shm") == [], os.listdir("/dev/shm"))
