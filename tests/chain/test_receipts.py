"""Whose word a receipt is: only the diamond's own event about the key that signed makes an id the run's."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fleet.chain.node import abi
from fleet.chain.ports import Log, Receipt
from fleet.chain.signing.broadcast import minted_id

DIAMOND, OTHER = "0x" + "d1" * 20, "0x" + "ee" * 20
OWNER, STRANGER = "0x" + "a1" * 20, "0x" + "b2" * 20


def topic(address: str) -> str:
    return "0x" + "0" * 24 + address[2:]


REAL = Log(address=DIAMOND, topics=(abi.REGISTERED, f"0x{7:064x}", topic(OWNER)), data=b"")
FORGED = {
    "another contract": replace(REAL, address=OTHER, topics=(REAL.topics[0], f"0x{8:064x}", REAL.topics[2])),
    "another owner": replace(REAL, topics=(abi.REGISTERED, f"0x{9:064x}", topic(STRANGER))),
    "another event": replace(REAL, topics=(abi.FEEDBACK_SUBMITTED, f"0x{10:064x}", topic(OWNER))),
    "an owner in its upper bytes": replace(
        REAL, topics=(abi.REGISTERED, f"0x{11:064x}", "0x" + "01" + "0" * 22 + OWNER[2:])
    ),
    "one topic more": replace(REAL, topics=(abi.REGISTERED, f"0x{12:064x}", topic(OWNER), f"0x{0:064x}")),
    "one topic fewer": replace(REAL, topics=(abi.REGISTERED, topic(OWNER))),
    "no topics": replace(REAL, topics=()),
}


def minted(*logs: Log) -> int:
    return minted_id(Receipt(tx="0x1", status=1, gas_used=1, block=1, logs=logs), DIAMOND, OWNER)


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_registration_counts_neither_before_nor_behind_the_real_one_nor_alone(kind: str) -> None:
    forged = FORGED[kind]
    assert (minted(forged, REAL), minted(REAL, forged), minted(forged)) == (7, 7, 0)


def test_the_real_one_is_found_wherever_it_stands_among_all_forged_ones() -> None:
    for place in range(len(FORGED) + 1):
        logs = [*FORGED.values()]
        logs.insert(place, REAL)
        assert minted(*logs) == 7
    assert minted(*itertools.chain(FORGED.values())) == 0
