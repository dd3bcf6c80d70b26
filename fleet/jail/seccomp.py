"""The system call filter of the jail: a deny-list as classic BPF, made without a library.

`bwrap --seccomp FD` wants the bare array of `struct sock_filter`. Only the low 32 bits of an argument are
compared: the kernel ignores the high half of an `int`, so a filter that checked it could be bypassed
(CVE-2019-10063). A foreign architecture, x32 included, is killed: `int $0x80` reaches every denied call.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from fleet.errors import JailError
from fleet.jail.syscalls import ABSENT, CHECKED, DENIED, LAST_KNOWN

_LOAD, _JUMP, _EQUAL, _GE, _SET, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_TYPE_MASK, _STREAM, _SEQPACKET = 0xF, 1, 5
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_NEW_TIME = 0x80
_FIRST = 1  # the jail's PID 1
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1  # the other kinds, a group or a user, hold PID 1 as well
_NEW_ANY = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; CLONE_NEWTIME shares its bit with the exit signal of `clone`."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture: its audit number and its column in the tables of numbers."""

    name: str
    audit: int
    column: int


MACHINES = {"x86_64": Machine("x86_64", 0xC000003E, 0), "aarch64": Machine("aarch64", 0xC00000B7, 1)}

_Op = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


@lru_cache(maxsize=4)
def seccomp_filter(machine: str = "") -> bytes:
    """Return the filter program for this machine, or for the named one; JailError for an unknown one."""
    name = machine or platform.machine()
    if name not in MACHINES:
        raise JailError(f"no system call filter for {name}", remedy="run on x86_64 or aarch64")
    target = MACHINES[name]
    ops = [*_prelude(target), *_refuse(_numbers(DENIED, target), errno.EPERM)]
    ops += _refuse(_numbers(ABSENT, target), errno.ENOSYS)
    number = {call: numbers[target.column] for call, numbers in CHECKED.items()}
    ops += _when(number["clone"], 0, [(_SET, _NEW_ANY)], errno.EPERM)
    ops += _when(number["unshare"], 0, [(_SET, _NEW_ANY | _NEW_TIME)], errno.EPERM)
    ops += _when(number["ioctl"], 1, [(_EQUAL, _TIOCSTI), (_EQUAL, _TIOCLINUX)], errno.EPERM)
    ops += _unless(number["socket"], 0, [_AF_INET, _AF_INET6], errno.EAFNOSUPPORT)
    ops += _unless(number["socketpair"], 0, [_AF_UNIX], errno.EAFNOSUPPORT)
    ops += _unless(number["socketpair"], 1, [_STREAM, _SEQPACKET], errno.EPERM, mask=_TYPE_MASK)
    ops += _spare_the_first_process(number)
    ops.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *op) for op in ops)


def _spare_the_first_process(number: dict[str, int]) -> list[_Op]:
    """PID 1 runs as the guest's user: its limits, processors and priority must not be set from inside."""
    first = [(_EQUAL, _FIRST)]
    ops = _when(number["prlimit64"], 0, first, errno.EPERM)
    ops += _when(number["sched_setaffinity"], 0, first, errno.EPERM)
    for call, process in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        ops += _unless(number[call], 0, [process], errno.EPERM)
        ops += _when(number[call], 1, first, errno.EPERM)
    return ops


def _numbers(table: dict[str, tuple[int | None, int | None]], target: Machine) -> list[int]:
    found = (numbers[target.column] for numbers in table.values())
    return sorted(number for number in found if number is not None)


def _prelude(target: Machine) -> list[_Op]:
    ops: list[_Op] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, target.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    if target.name == "x86_64":
        ops += [(_GE, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    return [*ops, (_GE, 0, 1, LAST_KNOWN + 1), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]


def _refuse(numbers: list[int], code: int) -> list[_Op]:
    """Compare each number and meet in one return; a jump reaches 255 instructions, far above any table."""
    return _match([(_EQUAL, number) for number in numbers], code)


def _match(tests: Iterable[tuple[int, int]], code: int) -> list[_Op]:
    listed = list(tests)
    chain = [(test, len(listed) - at, 0, value) for at, (test, value) in enumerate(listed)]
    return [*chain, (_JUMP, 0, 0, 1), (_RETURN, 0, 0, _ERRNO | code)]


def _when(number: int, argument: int, tests: list[tuple[int, int]], code: int) -> list[_Op]:
    """Refuse the call when a test on one argument holds; leaves the number loaded again."""
    body: list[_Op] = [(_LOAD, 0, 0, 16 + 8 * argument), *_match(tests, code), (_LOAD, 0, 0, 0)]
    return [(_EQUAL, 0, len(body), number), *body]


def _unless(number: int, argument: int, allowed: list[int], code: int, *, mask: int = 0) -> list[_Op]:
    """Refuse the call unless one argument, masked, is one of a few values; leaves the number loaded again."""
    load: list[_Op] = [(_LOAD, 0, 0, 16 + 8 * argument)]
    if mask:
        load.append((0x54, 0, 0, mask))
    # reaching the end of the chain refuses; a match jumps over the return
    chain = [(_EQUAL, len(allowed) - at, 0, value) for at, value in enumerate(allowed)]
    body: list[_Op] = [*load, *chain, (_RETURN, 0, 0, _ERRNO | code), (_LOAD, 0, 0, 0)]
    return [(_EQUAL, 0, len(body), number), *body]
