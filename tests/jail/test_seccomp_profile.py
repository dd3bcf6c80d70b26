"""The engine's filter answers as ours does, call by call, but for the one socket of the way in."""

from __future__ import annotations

import errno
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import JailError
from fleet.jail.docker.seccomp_profile import profile
from fleet.jail.seccomp import MACHINES
from fleet.jail.syscalls import ABSENT, CHECKED, DENIED
from tests.jail.test_seccomp import ALLOW, ERRNO, verdict

UNIX, SEQPACKET = 1, 5
SMALL = st.integers(0, 64)
WORDS = st.tuples(*[SMALL | st.integers(0, 2**32 - 1) | st.sampled_from([0x5412, 0x541C])] * 2)


@cache
def rules(machine: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(profile(machine))["syscalls"]
    return found


def holds(test: dict[str, Any], words: tuple[int, ...]) -> bool:
    """As libseccomp compares: 64 bits."""
    seen, value = words[test["index"]], test["value"]
    match test["op"]:
        case "SCMP_CMP_MASKED_EQ":
            return bool(seen & value == test["valueTwo"])
        case "SCMP_CMP_GE":
            return bool(seen >= value)
        case "SCMP_CMP_NE":
            return bool(seen != value)
    raise AssertionError(test)


def answer(machine: str, name: str, *words: int) -> int:
    for rule in rules(machine):
        if name in rule["names"] and all(holds(test, words) for test in rule["args"]):
            return ERRNO | int(rule["errnoRet"])
    return ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_every_refused_call_is_refused_alike(machine: str) -> None:
    column = MACHINES[machine].column
    for table, code in ((DENIED, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for name, numbers in table.items():
            wanted = ERRNO | code if numbers[column] is not None else ALLOW
            assert answer(machine, name, 0, 0) == wanted, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", CHECKED)
@given(words=WORDS, high=st.sampled_from([0, 1 << 32, 1 << 63]))
def test_a_call_with_arguments_is_answered_alike(
    machine: str, name: str, words: tuple[int, int], high: int
) -> None:
    """With anything in the high halves it is at least as strict: the kernel does not look at them."""
    given_words = (words[0] | high, words[1] | high)
    ours = verdict(machine, CHECKED[name][MACHINES[machine].column], *given_words)
    theirs = answer(machine, name, *given_words)
    if name == "socket" and words[0] == UNIX:
        assert theirs == ALLOW if words[1] & 0xF == SEQPACKET and not high else theirs != ALLOW
    elif high:
        assert theirs != ALLOW or ours == ALLOW
    else:
        assert theirs == ours


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architectures_door_is_closed(machine: str) -> None:
    whole = json.loads(profile(machine))
    assert (whole["defaultAction"], len(whole["architectures"])) == ("SCMP_ACT_ALLOW", 1)


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(JailError, match="riscv64"):
        profile("riscv64")
