"""The system call filter of a container, as the engine's JSON, from the tables of `fleet.jail.seccomp`.

It is the outer one of two. The engine's libseccomp leaves out the names that it does not know without a word
(2.5.4: statmount, listmount, open_tree_attr), and cannot say "above the last known number: ENOSYS"; and the
way in needs AF_UNIX until the listener is handed over. So whatever starts in the container before hostile
code gives itself `seccomp_filter()`, the very program of bubblewrap's jails (`sandbox.start.syscall_filter`):
filters add up, and the stricter answer holds. What is reachable is found by behaviour, in the self-check.

Of an `int` the kernel reads 32 bits, libseccomp compares 64: values are compared under a mask of 32 bits, or
everything above the last one is refused.
"""

from __future__ import annotations

import errno
import json
import platform
from functools import lru_cache
from typing import Any

from fleet.errors import JailError
from fleet.jail.seccomp import MACHINES
from fleet.jail.syscalls import ABSENT, DENIED

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
"""One each: a call by another architecture's door, x32 included, kills."""

_LOW = 0xFFFFFFFF
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_LAST_FAMILY = 45  # AF_MCTP (Linux 6.x)
_TYPE_MASK, _STREAM, _SEQPACKET = 0xF, 1, 5
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FIRST = 1
_NEW = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
_NEW_TIME = 0x80  # in `clone` part of the exit signal

_Test = dict[str, int | str]
_Rule = dict[str, Any]


@lru_cache(maxsize=2)
def profile(machine: str = "") -> str:
    """The text for `--security-opt seccomp=`, for this machine or a named one; JailError without a table."""
    name = machine or platform.machine()
    if name not in _ARCHITECTURES:
        raise JailError(f"no system call filter for {name}", remedy="run on x86_64 or aarch64")
    column = MACHINES[name].column
    rules = [
        _rule([call for call, numbers in DENIED.items() if numbers[column] is not None], errno.EPERM),
        _rule([call for call, numbers in ABSENT.items() if numbers[column] is not None], errno.ENOSYS),
        *(_rule(["clone"], errno.EPERM, _bit(0, bit)) for bit in _NEW),
        *(_rule(["unshare"], errno.EPERM, _bit(0, bit)) for bit in (*_NEW, _NEW_TIME)),
        *(_rule(["ioctl"], errno.EPERM, _is(1, request)) for request in (_TIOCSTI, _TIOCLINUX)),
        *_sockets(),
        *_spare_the_first_process(),
    ]
    whole = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [_ARCHITECTURES[name]], "syscalls": rules}
    return json.dumps(whole, separators=(",", ":"))


def _sockets() -> list[_Rule]:
    """Internet sockets; of AF_UNIX only what the way in is made of; pairs as in `fleet.jail.seccomp`."""
    rules = []
    for call, families, types in (
        ("socket", (_AF_UNIX, _AF_INET, _AF_INET6), (_SEQPACKET,)),
        ("socketpair", (_AF_UNIX,), (_STREAM, _SEQPACKET)),
    ):
        others = [family for family in range(_LAST_FAMILY + 1) if family not in families]
        rules += [_rule([call], errno.EAFNOSUPPORT, _is(0, family)) for family in others]
        rules.append(_rule([call], errno.EAFNOSUPPORT, _test(0, _LAST_FAMILY + 1, "SCMP_CMP_GE")))
        wrong = [kind for kind in range(_TYPE_MASK + 1) if kind not in types]
        rules += [
            _rule([call], errno.EPERM, _is(0, _AF_UNIX), _masked(1, _TYPE_MASK, kind)) for kind in wrong
        ]
    return rules


def _spare_the_first_process() -> list[_Rule]:
    rules = [_rule(["prlimit64", "sched_setaffinity"], errno.EPERM, _is(0, _FIRST))]
    for call, process in (("setpriority", 0), ("ioprio_set", 1)):
        rules.append(_rule([call], errno.EPERM, _test(0, process, "SCMP_CMP_NE")))
        rules.append(_rule([call], errno.EPERM, _is(1, _FIRST)))
    return rules


def _rule(names: list[str], code: int, *tests: _Test) -> _Rule:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code, "args": list(tests)}


def _test(index: int, value: int, op: str, second: int = 0) -> _Test:
    return {"index": index, "value": value, "valueTwo": second, "op": op}


def _masked(index: int, mask: int, value: int) -> _Test:
    return _test(index, mask, "SCMP_CMP_MASKED_EQ", value)


def _is(index: int, value: int) -> _Test:
    return _masked(index, _LOW, value)


def _bit(index: int, bit: int) -> _Test:
    return _masked(index, bit, bit)
