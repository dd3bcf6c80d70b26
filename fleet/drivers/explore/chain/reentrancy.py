"""Questions for re-entry: a function that pays its caller, called by code that calls it again. Pure.

The code is put at the caller's address for a simulation only; its twin takes what it is paid, and does
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from fleet.drivers.desk import Question
from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.chain.reentrancy import COIN, TAKES
from fleet.personas.model import Step
from sandbox.tools.qa_chain import SPEC

WEI = 1_000
"""What is deposited first, in the simulation."""
DEPOSITS = ("deposit()", "fund()", "topUp()", "depositCredits()", "addCredits()")
PAYS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("withdraw()", (), ()),
    ("withdraw(uint256)", ("uint256",), (str(WEI),)),
    ("withdrawAll()", (), ()),
    ("withdrawCredits()", (), ()),
    ("withdrawCredits(uint256)", ("uint256",), (str(WEI),)),
    ("withdrawDeposit()", (), ()),
    ("withdrawBalance()", (), ()),
    ("refund()", (), ()),
    ("claim()", (), ()),
    ("redeem(uint256)", ("uint256",), (str(WEI),)),
)
"""Functions that pay their caller, with types and arguments."""


def reentrances(selectors: Collection[str]) -> Iterator[tuple[str, Question]]:
    """A function and its question, for each deposit and each function that pays, of those that are there."""
    for deposit in map(selector_of, DEPOSITS):
        for signature, kinds, given in PAYS:
            selector = selector_of(signature)
            if deposit in selectors and selector in selectors:
                calldata = selector[2:] + "".join(f"{int(one):064x}" for one in given)
                codes = (TAKES, again(bytes.fromhex(calldata)))
                args: dict[str, Any] = {"simulate": selector, "setup": [[deposit, [], [], str(WEI)]]}
                if kinds:
                    args |= {"types": list(kinds), "args": list(given)}
                yield (
                    selector,
                    Question(
                        tuple(
                            Step(tool=SPEC.name, args=args | {"code": {"sender": code}, "watch": [COIN]})
                            for code in codes
                        )
                    ),
                )


def again(calldata: bytes) -> str:
    """Code that, called once, calls its caller with this calldata; called again, it does nothing."""
    code = bytes.fromhex("5f5415600757005b60015f55")  # only the first time: a slot of its own
    for at in range(0, len(calldata), 32):
        code += b"\x7f" + calldata[at : at + 32].ljust(32, b"\0") + b"\x60" + bytes([at]) + b"\x52"
    return (
        "0x" + (code + b"\x5f\x5f\x60" + bytes([len(calldata)]) + bytes.fromhex("5f5f335af1") + b"\0").hex()
    )
