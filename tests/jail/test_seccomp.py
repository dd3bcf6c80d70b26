"""The filter, run by an interpreter of classic BPF on every call and on chosen arguments."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import JailError
from fleet.jail.seccomp import MACHINES, seccomp_filter
from fleet.jail.syscalls import ABSENT, CHECKED, DENIED, LAST_KNOWN

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, NO_FAMILY = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.EAFNOSUPPORT
FILTERS = {name: list(struct.iter_unpack("<HBBI", seccomp_filter(name))) for name in MACHINES}
HIGH = st.integers(0, 2**32 - 1).map(lambda high: high << 32)


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel would answer for `struct seccomp_data` (seccomp(2))."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, MACHINES[machine].audit if audit is None else audit, 0, *words)
    at, value = 0, 0
    for _ in range(1000):
        code, yes, no, operand = FILTERS[machine][at]
        at += 1
        if code == 0x20:
            value = int.from_bytes(data[operand : operand + 4], "little")
        elif code == 0x54:
            value &= operand
        elif code == 0x05:
            at += operand
        elif code == 0x06:
            return int(operand)
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += yes if holds else no
    raise AssertionError("the filter does not end")


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_has_its_answer(machine: str) -> None:
    column = MACHINES[machine].column
    denied = {numbers[column] for numbers in DENIED.values()}
    absent = {numbers[column] for numbers in ABSENT.values()}
    checked = {numbers[column] for numbers in CHECKED.values()}
    assert not denied & absent - {None}
    for number in range(LAST_KNOWN + 1):
        if number not in checked:
            wanted = EPERM if number in denied else ENOSYS if number in absent else ALLOW
            assert verdict(machine, number) == wanted, number


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(LAST_KNOWN + 1, 0x3FFFFFFF))
def test_the_future_is_absent(machine: str, number: int) -> None:
    assert verdict(machine, number) == ENOSYS


@given(number=st.integers(0x40000000, 0x7FFFFFFF))
def test_x32_is_killed(number: int) -> None:
    assert verdict("x86_64", number) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 600), audit=st.integers(0, 2**32 - 1))
def test_another_architecture_is_killed(machine: str, number: int, audit: int) -> None:
    if audit != MACHINES[machine].audit:
        assert verdict(machine, number, audit=audit) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 60), high=HIGH)
def test_only_internet_sockets_are_made(machine: str, family: int, high: int) -> None:
    number = CHECKED["socket"][MACHINES[machine].column]
    assert verdict(machine, number, high | family) == (ALLOW if family in (2, 10) else NO_FAMILY)


@pytest.mark.parametrize("machine", MACHINES)
@given(
    family=st.integers(0, 60),
    kind=st.integers(0, 15),
    flags=st.sampled_from([0, 0o2000000, 0o4000]),
    high=HIGH,
)
def test_pairs_are_connected_unix_sockets(
    machine: str, family: int, kind: int, flags: int, high: int
) -> None:
    number = CHECKED["socketpair"][MACHINES[machine].column]
    wanted = NO_FAMILY if family != 1 else ALLOW if kind in (1, 5) else EPERM
    assert verdict(machine, number, high | family, high | kind | flags) == wanted


NEW = {0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("call", "extra"), [("clone", set()), ("unshare", {0x80})])
@given(flags=st.integers(0, 2**32 - 1), high=HIGH)
def test_no_namespace_is_made(machine: str, call: str, extra: set[int], flags: int, high: int) -> None:
    number = CHECKED[call][MACHINES[machine].column]
    wanted = EPERM if any(flags & bit for bit in NEW | extra) else ALLOW
    assert verdict(machine, number, high | flags) == wanted


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("request_", "wanted"), [(0x5412, EPERM), (0x541C, EPERM), (0x5413, ALLOW), (0, ALLOW)]
)
def test_nothing_is_typed_into_a_terminal(machine: str, request_: int, wanted: int) -> None:
    number = CHECKED["ioctl"][MACHINES[machine].column]
    assert verdict(machine, number, 0, request_) == wanted
    assert verdict(machine, number, 0, 1 << 40 | request_) == wanted


def test_threads_and_processes_can_be_made() -> None:
    assert verdict("x86_64", CHECKED["clone"][0], 0x3D0F00) == ALLOW  # pthread_create
    assert verdict("x86_64", CHECKED["clone"][0], 0x1200011) == ALLOW  # fork


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(JailError, match="riscv64"):
        seccomp_filter("riscv64")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "process"),
    [("prlimit64", None), ("sched_setaffinity", None), ("setpriority", 0), ("ioprio_set", 1)],
)
@given(which=st.integers(0, 5), who=st.integers(0, 3) | st.integers(0, 2**32 - 1), high=HIGH)
def test_the_first_process_is_out_of_reach(
    machine: str, call: str, process: int | None, which: int, who: int, high: int
) -> None:
    """By its number, and by a group or a user that may hold it; `process`: the kind that names a process."""
    number = CHECKED[call][MACHINES[machine].column]
    words = (high | who,) if process is None else (high | which, high | who)
    wanted = EPERM if who == 1 or (process is not None and which != process) else ALLOW
    assert verdict(machine, number, *words) == wanted


def test_the_numbers_of_what_reaches_another_process() -> None:
    """By hand, from the kernel's tables: a wrong number in the table above would refuse another call."""
    by_hand = {
        "prlimit64": (302, 261),
        "sched_setaffinity": (203, 122),
        "setpriority": (141, 140),
        "ioprio_set": (251, 30),
    }
    assert {name: CHECKED[name] for name in by_hand} == by_hand
    inotify = {"inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27)}
    assert {name: DENIED[name] for name in inotify} == inotify


def test_a_program_is_made_once_for_all_jails() -> None:
    assert seccomp_filter("x86_64") is seccomp_filter("x86_64")
