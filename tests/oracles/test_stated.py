"""Functions as documents state them: what is read of a text, and what is said of a contract that differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fleet.oracles.chain import interfaces
from fleet.oracles.chain.fourbyte import selector_of
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge

RESERVED, OWNED = "tune(uint256)", "paint(uint256,uint256)"
HIVE = "0x" + "0" * 24 + "77" * 20
GUIDE = (
    "| `tune(uint256 pitch)` | sets the pitch; only the beekeeper may call it |\n"
    "| `beekeeper()` | is an address |\n"
    "| `paint(uint256,uint256)` | paints a hive, from 2 to 9; for the owner of the hive only |\n"
    "| `keeperOf(uint256)` | is the owner of a hive |\n"
    "| `hives()` | is how many hives there are; ids from 1 to it |\n"
    "| `try(uint256)` | for testing only |\n"
)


def page(text: str = GUIDE, status: int = 200) -> Exchange:
    return Exchange("qa_fetch", {"url": "{site}/guide"}, {"status": status, "text": text})


def called(signature: str, *given: str, **more: Any) -> Exchange:
    watch: Mapping[str, Any] = more.pop("watch", {})
    kinds = [one for one in signature.partition("(")[2].rstrip(")").split(",") if one]
    args = {"simulate": selector_of(signature), "types": kinds, "args": list(given), "watch": list(watch)}
    read = list(watch.values())
    answer = {"ok": True, "by": "0x" + "57" * 20, "succeeded": True, "returned": "0x"}
    sender = {"sender": more.pop("sender")} if "sender" in more else {}
    return Exchange("qa_chain", args | sender, answer | {"before": read, "after": read} | more)


def told(*seen: Exchange) -> list[str]:
    return [one.sighting.title for one in judge(seen, Facts(site="http://h"))]


OWNER = {f"{selector_of('keeperOf(uint256)')}({1:064x})": HIVE}


@pytest.mark.parametrize(
    ("text", "reserved", "of"),
    [
        ("`f(uint)` sets it; for the owner only", "owner", ""),
        ("f(uint256 a) external onlyOwner {", "Owner", ""),
        ("`f(uint256)`: admin-only", "admin", ""),
        ("f(uint256) is restricted to the operator", "operator", ""),
        ("`f(uint256)` for the owner of the boat only", "owner", "boat"),
        ("`f(uint256)` may be called by the skipper only\n`skipper()` is an address", "skipper", ""),
        ("`f(uint256)` by the skipper only", "", ""),  # no view says who that is
        ("`f(uint256)` works for the testnet only", "", ""),
        ("`f(uint256)` for anyone", "", ""),
        ("`f(uint256)` is a read-only function", "", ""),
    ],
)
def test_for_whom_a_function_is(text: str, reserved: str, of: str) -> None:
    one = interfaces.functions(text)[selector_of("f(uint256)")]
    assert (one.reserved.lower(), one.of) == (reserved.lower(), of)


def test_an_abi_is_read_as_a_document() -> None:
    abi = '[{"type": "function", "name": "f", "inputs": [{"type": "uint256"}], "stateMutability": "view"}]'
    one = interfaces.functions(abi)[selector_of("f(uint256)")]
    assert (one.signature, one.reads) == ("f(uint256)", True)


def test_what_is_reserved_refuses_a_stranger() -> None:
    (title,) = told(page(), called(RESERVED, "7"))
    assert title == "tune(), for the beekeeper, works"
    assert told(page(), called(RESERVED, "7", succeeded=False)) == []
    assert told(page(), called(RESERVED, "7", returned="0x" + "0" * 64)) == []  # false
    assert told(page(), called(RESERVED, "7", returned=HIVE)) == []  # as a view does
    assert told(page(), called(RESERVED, "7", sender="owner")) == []
    assert told(page(status=404), called(RESERVED, "7")) == []
    assert told(called(RESERVED, "7")) == []
    assert told(page(), called("try(uint256)", "7")) == []


def test_the_owner_of_a_thing_is_shown_first() -> None:
    assert len(told(page(), called(OWNED, "1", "5", watch=OWNER))) == 1
    assert told(page(), called(OWNED, "1", "5")) == []  # whose it is was not read
    mine = dict.fromkeys(OWNER, "0x" + "0" * 24 + "57" * 20)
    assert told(page(), called(OWNED, "1", "5", watch=mine)) == []
    assert told(page(), called(OWNED, "2", "5", watch=OWNER)) == []  # another thing's owner


def test_beyond_a_stated_range() -> None:
    within, sender = called(OWNED, "1", "9", sender=HIVE[-40:]), HIVE[-40:]
    (title,) = told(page(), within, called(OWNED, "1", "10", sender=sender))
    assert title == "paint() accepts 10; {site}/guide states 2 to 9"
    assert told(page(), within, called(OWNED, "1", "10", sender=sender, succeeded=False)) == []
    assert told(page(), called(OWNED, "1", "10", sender=sender)) == []  # without a control
    refused = replace(within, result={**within.result, "succeeded": False})
    assert told(page(), refused, called(OWNED, "1", "10", sender=sender)) == []
    assert told(page(), within, called(OWNED, "1", "8", sender=sender)) == []


def read(total: int, *owners: str) -> Exchange:
    views = [f"{selector_of('keeperOf(uint256)')}({at:064x})" for at in range(1, len(owners) + 1)]
    values = {selector_of("hives()"): f"0x{total:064x}", **dict(zip(views, owners, strict=True))}
    return Exchange("qa_chain", {"watch": list(values)}, {"ok": True, "before": list(values.values())})


NOBODY = "0x" + "0" * 64


def test_a_total_is_how_many_have_an_owner() -> None:
    assert told(page(), read(2, HIVE, HIVE, NOBODY)) == []
    assert told(page(), read(0, NOBODY)) == []
    (title,) = told(page(), read(3, HIVE, HIVE, NOBODY, NOBODY))
    assert title.startswith("hives() is 3, but 2 of the ids up to 4 have an owner")
    assert told(page(), read(3, HIVE, HIVE)) == []  # not all of them were read
